#include "rbio/collective_files.hpp"

namespace cairn::rbio {
namespace {

class EachForItself final : public CollectiveFiles {
 public:
  explicit EachForItself(std::shared_ptr<Files> files) : files_(std::move(files)) {}

  void join(Communicator&, int) override {}

  Status write(Communicator&, const std::string& path,
               const std::vector<FilePiece>& pieces) override {
    CAIRN_ASSIGN(const auto file, files_->open_for_update(path));
    for (const FilePiece& piece : pieces)
      if (!piece.data.empty()) CAIRN_TRY(file->write_at(piece.offset, piece.data));
    return file->sync();
  }

 private:
  const std::shared_ptr<Files> files_;
};

}  // namespace

std::unique_ptr<CollectiveFiles> make_collective_files(std::shared_ptr<Files> files) {
  return std::make_unique<EachForItself>(std::move(files));
}

}  // namespace cairn::rbio
