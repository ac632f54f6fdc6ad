#include "recovery/relocate.hpp"

#include <algorithm>
#include <memory>

#include "comm/activity.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

constexpr int length_tag = 201;
constexpr int manifest_tag = 202;
constexpr int piece_tag = 203;

/// A file on its way: its name within the rank's folder, and how many bytes follow.
struct Travelling {
  std::string name;
  std::uint64_t size = 0;
};

void add_files_below(Files& files, const std::string& root, const std::string& relative,
                     std::vector<Travelling>& found) {
  const std::string path = relative.empty() ? root : root + "/" + relative;
  const auto info = files.info(path);
  if (!info) return;
  if (info->kind == Kind::file) {
    found.push_back({relative, info->size});
  } else if (info->kind == Kind::folder) {
    const auto names = files.list(path);
    if (!names) return;
    for (const std::string& name : *names)
      add_files_below(files, root, relative.empty() ? name : relative + "/" + name, found);
  }
}

Blob encode_manifest(const std::vector<Travelling>& manifest) {
  Encoder out;
  out.u64(manifest.size());
  for (const Travelling& file : manifest) {
    out.text(file.name);
    out.u64(file.size);
  }
  return out.take();
}

std::vector<Travelling> decode_manifest(Bytes blob) {
  Decoder in(blob);
  std::vector<Travelling> manifest(in.count(12));
  for (Travelling& file : manifest) file = {in.text(), in.u64()};
  return manifest;
}

class Sender final : public Activity {
 public:
  Sender(Communicator& comm, Files& files, const OutgoingPart& part, std::size_t piece_bytes)
      : comm_(comm), files_(files), part_(part), piece_(piece_bytes) {
    add_files_below(files, part.folder.path, "", manifest_);
    blob_ = encode_manifest(manifest_);
    length_ = blob_.size();
    requests_.push_back(comm.isend(bytes_of(length_), part.to, length_tag));
    requests_.push_back(comm.isend(blob_, part.to, manifest_tag));
  }

  Step advance() override {
    for (Request& request : requests_)
      if (request && !request->test()) return Step::waits;
    requests_.clear();
    while (file_ < manifest_.size() && offset_ == manifest_[file_].size) next_file();
    if (file_ == manifest_.size()) return Step::done;
    const auto length = static_cast<std::size_t>(
        std::min<std::uint64_t>(piece_.size(), manifest_[file_].size - offset_));
    requests_.push_back(comm_.isend(read(length), part_.to, piece_tag));
    offset_ += length;
    return Step::moved;
  }

 private:
  void next_file() {
    ++file_;
    offset_ = 0;
    view_.reset();
  }

  /// Bytes that cannot be read travel as zeros, which no checksum takes for the data.
  Bytes read(std::size_t length) {
    if (!view_)
      if (auto view = files_.view(part_.folder.path + "/" + manifest_[file_].name))
        view_ = *std::move(view);
    if (view_)
      if (const auto bytes = view_->at(offset_, length, piece_)) return *bytes;
    std::fill(piece_.begin(), piece_.end(), std::byte{0});
    return Bytes(piece_).first(length);
  }

  Communicator& comm_;
  Files& files_;
  const OutgoingPart part_;
  std::vector<Travelling> manifest_;
  std::size_t file_ = 0;
  std::uint64_t offset_ = 0;
  std::unique_ptr<View> view_;
  Blob blob_;
  std::uint64_t length_ = 0;
  Blob piece_;
  std::vector<Request> requests_;  ///< after the buffers it points into
};

class Receiver final : public Activity {
 public:
  Receiver(Communicator& comm, Files& files, const IncomingPart& part, std::size_t piece_bytes)
      : comm_(comm), files_(files), part_(part), piece_(piece_bytes) {
    status_ = remove_all(files, part.folder.path);
    if (status_) status_ = make_folders(files, part.folder.files(), 0700);
    request_ = comm.irecv(mutable_bytes_of(length_), part.from, length_tag);
  }

  Step advance() override {
    if (request_ && !request_->test()) return Step::waits;
    request_.reset();
    switch (stage_) {
      case Stage::length:
        blob_.resize(length_);
        request_ = comm_.irecv(blob_, part_.from, manifest_tag);
        stage_ = Stage::manifest;
        return Step::moved;
      case Stage::manifest:
        manifest_ = decode_manifest(blob_);
        stage_ = Stage::pieces;
        break;
      case Stage::pieces:
        take_piece();
        break;
    }
    return expect_piece();
  }

  Result<std::uint64_t> result() const {
    if (!status_) return tl::unexpected(status_.error());
    return received_;
  }

 private:
  enum class Stage { length, manifest, pieces };

  Step expect_piece() {
    while (file_ < manifest_.size() && offset_ == manifest_[file_].size) next_file();
    if (file_ == manifest_.size()) return Step::done;
    expected_ = static_cast<std::size_t>(
        std::min<std::uint64_t>(piece_.size(), manifest_[file_].size - offset_));
    request_ = comm_.irecv(MutableBytes(piece_).first(expected_), part_.from, piece_tag);
    return Step::moved;
  }

  void take_piece() {
    open_if_wanted();
    if (status_ && writer_) status_ = writer_->write_at(offset_, Bytes(piece_).first(expected_));
    offset_ += expected_;
    received_ += expected_;
  }

  void open_if_wanted() {
    if (status_ && !writer_ && wanted(manifest_[file_].name)) status_ = open_writer();
  }

  Status open_writer() {
    const std::string path = part_.folder.path + "/" + manifest_[file_].name;
    CAIRN_TRY(make_folders(files_, folder_of(path), 0700));
    CAIRN_ASSIGN(writer_, files_.create(path, 0600));
    return {};
  }

  void next_file() {
    if (manifest_[file_].size == 0) open_if_wanted();  // no piece does
    ++file_;
    offset_ = 0;
    writer_.reset();
  }

  bool wanted(const std::string& name) const {
    const RankRecord& record = *part_.record;
    const RankFolder relative{""};
    return "/" + name == relative.parity(record.encoding.generation) ||
           std::any_of(record.files.begin(), record.files.end(), [&](const FileEntry& file) {
             return "/" + name == relative.file(file.name);
           });
  }

  Communicator& comm_;
  Files& files_;
  const IncomingPart part_;
  Status status_;
  Stage stage_ = Stage::length;
  std::vector<Travelling> manifest_;
  std::size_t file_ = 0;
  std::uint64_t offset_ = 0;
  std::size_t expected_ = 0;
  std::unique_ptr<File> writer_;
  std::uint64_t received_ = 0;
  std::uint64_t length_ = 0;
  Blob blob_;
  Blob piece_;
  Request request_;  ///< after the buffers it points into
};

}  // namespace

Result<std::uint64_t> relocate(Communicator& comm, Files& files,
                               const std::vector<OutgoingPart>& outgoing,
                               const std::optional<IncomingPart>& incoming,
                               std::size_t piece_bytes) {
  std::vector<std::unique_ptr<Sender>> senders;
  for (const OutgoingPart& part : outgoing)
    senders.push_back(std::make_unique<Sender>(comm, files, part, piece_bytes));
  std::optional<Receiver> receiver;
  if (incoming) receiver.emplace(comm, files, *incoming, piece_bytes);

  std::vector<Activity*> active;
  for (const auto& sender : senders) active.push_back(sender.get());
  if (receiver) active.push_back(&*receiver);
  carry_out(comm, std::move(active));
  return receiver ? receiver->result() : 0;
}

}  // namespace cairn
