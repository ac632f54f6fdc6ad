#include "recovery/broadcast_files.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "base/checksum.hpp"
#include "records/wire.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr int piece_tag = 401;
constexpr std::uint32_t only_me = 0700;

/// One file of a rank, from its beginning, every block compared with its checksum.
class CheckedReader {
 public:
  CheckedReader(Files& files, const std::vector<std::string>& paths, const RankRecord& record,
                std::size_t file)
      : record_(record),
        path_(paths[file]),
        source_(files, paths, record),
        layout_(record.encoding),
        scratch_(layout_.geometry().widest()) {
    for (std::size_t i = 0; i < file; ++i) offset_ += record.files[i].size;
    while (index_ < record.data_crcs.size() && end_of(index_) <= offset_) ++index_;
  }

  Status read(MutableBytes out) {
    while (!out.empty()) {
      if (block_.empty()) CAIRN_TRY(read_block());
      const std::size_t length = std::min(out.size(), block_.size());
      std::copy_n(block_.begin(), length, out.begin());
      out = out.subspan(length);
      block_ = block_.subspan(length);
      offset_ += length;
    }
    return {};
  }

 private:
  std::uint64_t start_of(std::uint64_t index) const {
    return layout_.geometry().data_offset(index);
  }
  std::uint64_t end_of(std::uint64_t index) const {
    return start_of(index) + layout_.geometry().data_length(index, record_.data_bytes());
  }

  Status read_block() {
    if (index_ >= record_.data_crcs.size())
      return fail(Code::corrupt, "{} has no more blocks", path_);
    CAIRN_ASSIGN(const Bytes block, source_.data(index_, scratch_));
    if (crc32c(block) != record_.data_crcs[index_])
      return fail(Code::corrupt, "{} does not match its checksum", path_);
    block_ = block.subspan(static_cast<std::size_t>(offset_ - start_of(index_)));
    ++index_;
    return {};
  }

  const RankRecord& record_;
  const std::string& path_;
  RankBlocks source_;
  const SetLayout layout_;
  Blob scratch_;
  std::uint64_t index_ = 0;   ///< of the next block
  std::uint64_t offset_ = 0;  ///< of the next byte, in the rank's data
  Bytes block_;               ///< what is left of the last one
};

void put(Encoder& out, const FileEntry& entry) {
  out.text(entry.name);
  out.u64(entry.size);
  out.u32(entry.mode);
  out.i64(entry.times.access_ns);
  out.i64(entry.times.modify_ns);
}

FileEntry get_entry(Decoder& in) {
  FileEntry entry;
  entry.name = in.text();
  entry.size = in.u64();
  entry.mode = in.u32();
  entry.times.access_ns = in.i64();
  entry.times.modify_ns = in.i64();
  return entry;
}

/// Where the bytes of one file go through this rank: from its parent to its children in a binomial
/// tree over `members`, whose first is the root.
class TreePlace {
 public:
  TreePlace(const std::vector<int>& members, int rank) {
    const auto found = std::find(members.begin(), members.end(), rank);
    if (found == members.end()) return;
    const auto me = static_cast<std::size_t>(found - members.begin());
    std::size_t bit = 1;
    for (; bit < members.size() && (me & bit) == 0; bit <<= 1) continue;
    if (me != 0) parent_ = members[me - bit];
    for (bit >>= 1; bit > 0; bit >>= 1)
      if (me + bit < members.size()) children_.push_back(members[me + bit]);
    takes_part_ = true;
  }

  bool takes_part() const { return takes_part_; }
  void pass_on(Communicator& comm, MutableBytes piece) const {
    if (parent_ >= 0) recv(comm, piece, parent_, piece_tag);
    for (const int child : children_) send(comm, piece, child, piece_tag);
  }

 private:
  bool takes_part_ = false;
  int parent_ = -1;
  std::vector<int> children_;
};

bool contains(const std::vector<int>& ascending, int rank) {
  return std::binary_search(ascending.begin(), ascending.end(), rank);
}

std::vector<int> with_root(const std::vector<int>& ranks, int root) {
  std::vector<int> members = {root};
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(members),
               [root](int rank) { return rank != root; });
  return members;
}

}  // namespace

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

Status BroadcastFiles::place(Communicator& comm, const std::vector<std::string>& patterns,
                             const RankRecord& mine, const std::vector<std::string>& paths,
                             const std::string& folder) {
  copies_.clear();
  std::vector<FileEntry> matching;
  for (const FileEntry& file : mine.files)
    if (matches_any(patterns, file.name)) matching.push_back(file);
  if (allreduce(comm, matching.empty() ? 0 : 1, Reduce::max) == 0) return {};
  folder_ = folder;
  first_ranks_ = placement_.first_ranks();
  Status status = contains(first_ranks_, comm.rank()) ? remove_all(files_, folder_) : Status{};
  for (const Announced& file : announce(comm, matching)) {
    // All take part in every copy, whatever has failed here.
    Status copied = copy(comm, file, mine, paths);
    if (status) status = std::move(copied);
    copies_.emplace(file.entry.name, path_of(file.entry.name));
  }
  status = agree(comm, std::move(status));
  if (!status) (void)remove(comm.rank());
  return status;
}

/// The files of all ranks, known to all: by one broadcast for each rank that has some.
std::vector<BroadcastFiles::Announced> BroadcastFiles::announce(
    Communicator& comm, const std::vector<FileEntry>& mine) const {
  const std::uint64_t here = mine.size();
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(comm.size()));
  comm.allgather(bytes_of(here), std::as_writable_bytes(std::span(counts)));
  std::vector<Announced> all;
  for (int owner = 0; owner < comm.size(); ++owner) {
    if (counts[static_cast<std::size_t>(owner)] == 0) continue;
    Encoder out;
    if (owner == comm.rank())
      for (const FileEntry& entry : mine) put(out, entry);
    Blob blob = out.take();
    bcast_blob(comm, blob, owner);
    Decoder in(blob);
    for (std::uint64_t i = 0; i < counts[static_cast<std::size_t>(owner)]; ++i) {
      FileEntry entry = get_entry(in);
      const bool known = std::any_of(all.begin(), all.end(), [&](const Announced& other) {
        return other.entry.name == entry.name;
      });
      if (!known) all.push_back({std::move(entry), owner});
    }
  }
  return all;
}

Status BroadcastFiles::copy(Communicator& comm, const Announced& file, const RankRecord& mine,
                            const std::vector<std::string>& paths) {
  const TreePlace place(with_root(first_ranks_, file.owner), comm.rank());
  if (!place.takes_part()) return {};
  std::optional<CheckedReader> reader;
  if (comm.rank() == file.owner) {
    const auto found = std::find_if(mine.files.begin(), mine.files.end(), [&](const auto& entry) {
      return entry.name == file.entry.name;
    });
    reader.emplace(files_, paths, mine, static_cast<std::size_t>(found - mine.files.begin()));
  }
  std::unique_ptr<File> out;
  Status status;
  if (contains(first_ranks_, comm.rank())) status = create(file.entry.name, out);
  Blob piece(std::min<std::uint64_t>(piece_bytes, file.entry.size));
  for (std::uint64_t at = 0; at < file.entry.size; at += piece_bytes) {
    const MutableBytes part = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, file.entry.size - at)));
    if (reader && status) status = reader->read(part);
    place.pass_on(comm, part);
    if (out && status) status = out->write_at(at, part);
  }
  if (out && status)
    status = files_.set_attributes(path_of(file.entry.name), file.entry.mode, file.entry.times);
  return status;
}

Status BroadcastFiles::create(const std::string& name, std::unique_ptr<File>& out) {
  CAIRN_TRY(make_folders(files_, folder_of(path_of(name)), only_me));
  CAIRN_ASSIGN(out, files_.create(path_of(name), 0600));
  return {};
}

std::optional<std::string> BroadcastFiles::find(const std::string& name) const {
  const auto found = copies_.find(name);
  return found == copies_.end() ? std::nullopt : std::optional(found->second);
}

Status BroadcastFiles::remove(int rank) {
  copies_.clear();
  if (folder_.empty() || !contains(first_ranks_, rank)) return {};
  return remove_all(files_, std::exchange(folder_, ""));
}

}  // namespace cairn
