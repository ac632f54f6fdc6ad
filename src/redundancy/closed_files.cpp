#include "redundancy/closed_files.hpp"

namespace cairn {
namespace {

constexpr std::string_view remedy =
    "close every file (fclose, CLOSE, H5Fclose, munmap) before the call that completes the dataset";

}  // namespace

Status check_closed(Files& files, const RankRecord& record, const std::vector<std::string>& paths,
                    std::string* open_elsewhere) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& name = record.files[i].name;
    CAIRN_ASSIGN(const Writer writer, files.find_writer(paths[i]));
    if (writer == Writer::none) continue;
    if (writer == Writer::this_process)
      return fail(Code::invalid,
                  "{} of rank {} is still open for writing, so its end may be missing, and the "
                  "dataset is invalid; {}",
                  name, record.rank, remedy);
    if (open_elsewhere == nullptr)
      return fail(Code::invalid,
                  "another process of this node has {} open for writing, so its end may be "
                  "missing, and the dataset is invalid; wait until that process has closed it",
                  name);
    if (open_elsewhere->empty()) *open_elsewhere = name;
  }
  return {};
}

Status check_unchanged(Files& files, const RankRecord& record,
                       const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const FileEntry& was = record.files[i];
    CAIRN_ASSIGN(const FileInfo now, files.info(paths[i]));
    if (now.kind != Kind::file || now.size != was.size ||
        now.times.modify_ns != was.times.modify_ns)
      return fail(Code::invalid,
                  "{} of rank {} has changed while its checksums were taken, so the dataset is "
                  "invalid; {}",
                  was.name, record.rank, remedy);
  }
  return {};
}

}  // namespace cairn
