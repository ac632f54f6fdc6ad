#include "scavenge/save_part.hpp"

#include <algorithm>
#include <mutex>

#include "base/checksum.hpp"
#include "files/sync_at_once.hpp"
#include "redundancy/block_check.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t only_me = 0600;
constexpr std::uint32_t only_me_folder = 0700;
constexpr std::size_t bare_piece_bytes = std::size_t{1} << 20;

/// The records of a part, as they are on disk; empty where there is none.
struct RecordFiles {
  Blob committed;
  Blob prepared;
  bool operator==(const RecordFiles&) const = default;
  bool none() const { return committed.empty() && prepared.empty(); }
};

/// One that cannot be read is as good as none.
RecordFiles records_in(Files& files, const RankFolder& folder) {
  return {read_file(files, folder.record(), largest_record_bytes).value_or(Blob{}),
          read_file(files, folder.prepared(), largest_record_bytes).value_or(Blob{})};
}

class PartSaver {
 public:
  PartSaver(Files& files, const HeldPart& part, const HeldPart& saved, const SaveOptions& options)
      : files_(files), part_(part), saved_(saved), to_(saved.folder), options_(options) {}

  Result<SaveAccount> run() {
    const RecordFiles records = records_in(files_, part_.folder);
    const bool same = !records.none() && records_in(files_, to_) == records;
    if (same ? is_whole() : is_saved_as_good()) return account_of_saved();
    CAIRN_TRY(begin());
    if (part_.own.empty()) {
      note_trouble(
          fmt::format("no record in {} can be read; its files are saved, because another node may "
                      "have a record",
                      part_.folder.path));
      CAIRN_TRY(save_bare(part_.folder.path, to_.path));
    }
    for (const HeldRecord& own : by_worth()) CAIRN_TRY(save_blocks(own.record));
    CAIRN_TRY(write(to_.prepared(), records.prepared));
    CAIRN_TRY(write(to_.record(), records.committed));
    return account_;
  }

 private:
  /// The committed record first: the data are what it says.
  std::vector<HeldRecord> by_worth() const {
    std::vector<HeldRecord> own = part_.own;
    std::stable_partition(own.begin(), own.end(), [](const HeldRecord& r) { return r.committed; });
    return own;
  }

  SaveAccount account_of_saved() const {
    SaveAccount saved;
    saved.bytes = bytes_of(saved_);
    return saved;
  }

  /// What could not be read the last time may be readable now.
  bool is_whole() const {
    return std::all_of(saved_.own.begin(), saved_.own.end(), [this](const HeldRecord& saved) {
      RankBlocks blocks(files_, to_, saved.record);
      return find_erasures(blocks, saved.record).none();
    });
  }

  /// Each record that can still be read here has one as good in the copy. What was damaged since,
  /// or was left behind by a rebuild of the copies, must not take its place.
  bool is_saved_as_good() const {
    return !saved_.own.empty() && has_as_good(saved_.own, part_.own) &&
           has_as_good(saved_.kept, part_.kept);
  }

  static bool has_as_good(const std::vector<HeldRecord>& saved,
                          const std::vector<HeldRecord>& here) {
    return std::all_of(here.begin(), here.end(), [&](const HeldRecord& mine) {
      return std::any_of(saved.begin(), saved.end(), [&](const HeldRecord& other) {
        return other.record.rank == mine.record.rank && other.committed >= mine.committed &&
               other.record.encoding.generation >= mine.record.encoding.generation;
      });
    });
  }

  /// What is half a copy must not count; one that was whole counts until it is replaced.
  Status begin() {
    if (saved_.own.empty())
      for (const std::string& path : {to_.record(), to_.prepared()})
        CAIRN_TRY(remove_all(files_, path));
    resumes_ = files_.info(to_.path).has_value();
    return make_folders(files_, to_.files(), only_me_folder);
  }

  Status save_blocks(const RankRecord& record) {
    RankBlocks target(files_, to_, record);
    CAIRN_TRY(target.clear_way());
    CAIRN_TRY(target.make_room());
    std::vector<std::string> paths;
    for (const FileEntry& file : record.files) paths.push_back(to_.file(file.name));
    CAIRN_ASSIGN(const SyncAtOnce at_once, SyncAtOnce::of(files_, paths));
    const SetLayout layout(record.encoding);
    const auto me = record.index_in_set();
    CAIRN_TRY(save_range(record, BlockKind::data, layout.data_blocks(me)));
    CAIRN_TRY(save_range(record, BlockKind::parity, layout.parity_blocks()));
    return at_once.is_possible() ? at_once.sync() : target.sync();
  }

  Status save_range(const RankRecord& record, BlockKind kind, std::uint64_t blocks) {
    const std::uint64_t step =
        std::max<std::uint64_t>(1, options_.io.piece_bytes / record.encoding.block_bytes);
    return options_.io.each((blocks + step - 1) / step, [&](std::size_t piece) {
      const std::uint64_t first = piece * step;
      return save_piece(record, kind, first, std::min(blocks, first + step));
    });
  }

  Status save_piece(const RankRecord& record, BlockKind kind, std::uint64_t first,
                    std::uint64_t end) {
    RankBlocks source(files_, part_.folder, record);
    RankBlocks target(files_, to_, record);
    const auto& crcs = kind == BlockKind::data ? record.data_crcs : record.parity_crcs;
    Blob scratch(SetLayout(record.encoding).geometry().widest());
    const auto read = [&](RankBlocks& from, std::uint64_t index) {
      return kind == BlockKind::data ? from.data(index, scratch) : from.parity(index, scratch);
    };
    for (std::uint64_t index = first; index < end; ++index) {
      if (resumes_)
        if (const auto there = read(target, index); there && crc32c(*there) == crcs[index]) {
          CAIRN_TRY(note(there->size(), 0));
          continue;
        }
      const auto block = read(source, index);
      if (!block || crc32c(*block) != crcs[index])
        note_trouble(block ? fmt::format("block {} of the {} in {} does not match its checksum",
                                         index, kind == BlockKind::data ? "files" : "parity",
                                         part_.folder.path)
                           : block.error().text);
      if (!block) continue;
      options_.throttle.take(block->size());
      CAIRN_TRY(kind == BlockKind::data ? target.write_data(index, *block)
                                        : target.write_parity(index, *block));
      CAIRN_TRY(note(block->size(), block->size()));
    }
    target.start_writing();
    return {};
  }

  Status note(std::uint64_t bytes, std::uint64_t saved_bytes) {
    {
      const std::scoped_lock lock(mutex_);
      account_.bytes += bytes;
      account_.saved_bytes += saved_bytes;
    }
    return options_.moved(bytes);
  }

  void note_trouble(std::string text) {
    const std::scoped_lock lock(mutex_);
    if (account_.bad_blocks++ == 0) account_.first_trouble = std::move(text);
  }

  /// Of files that no record names: how much of them is missing in the copy is not known.
  void note_unreadable(const Error& error) {
    note_trouble(error.text);
    if (account_.unreadable.empty()) account_.unreadable = error.text;
  }

  /// If no record says what the files are to be, they are taken as they are; a record of theirs
  /// may be kept elsewhere. Links and devices are no files of ours.
  Status save_bare(const std::string& from, const std::string& to) {
    CAIRN_TRY(files_.make_folder(to, only_me_folder));
    const auto names = files_.list(from);
    if (!names) note_unreadable(names.error());
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      const std::string path = from + "/" + name;
      const RankFolder& part = part_.folder;
      if (path == part.record() || path == part.prepared() || path == part.elsewhere()) continue;
      const auto info = files_.info(path);
      if (!info) note_unreadable(info.error());
      if (info && info->kind == Kind::folder) CAIRN_TRY(save_bare(path, to + "/" + name));
      if (info && info->kind == Kind::file) CAIRN_TRY(copy_bare(path, to + "/" + name, info->size));
    }
    return files_.sync_folder(to);
  }

  /// Beside its place, which it gets by a rename: it may be a second name, or hold more than can be
  /// read now.
  Status copy_bare(const std::string& from, const std::string& to, std::uint64_t bytes) {
    const auto source = files_.open(from);
    if (!source) {
      note_unreadable(source.error());
      return {};
    }
    const std::string beside = to_.path + "/saving";
    CAIRN_ASSIGN(const auto target, files_.create(beside, only_me));
    CAIRN_TRY(target->resize(bytes));
    CAIRN_ASSIGN(const bool whole, copy_pieces(**source, *target, bytes));
    CAIRN_TRY(target->sync());
    if (!whole && files_.info(to)) return files_.remove_file(beside);
    CAIRN_TRY(remove_unless(files_, Kind::file, to));
    return files_.rename(beside, to);
  }

  /// False where some of it cannot be read.
  Result<bool> copy_pieces(File& source, File& target, std::uint64_t bytes) {
    bool whole = true;
    Blob buffer(bare_piece_bytes);
    for (std::uint64_t at = 0; at < bytes; at += buffer.size()) {
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), bytes - at));
      const MutableBytes piece = MutableBytes(buffer).first(length);
      if (const Status read = source.read_at(at, piece); !read) {
        note_unreadable(read.error());
        whole = false;
        continue;
      }
      options_.throttle.take(length);
      CAIRN_TRY(target.write_at(at, piece));
      CAIRN_TRY(note(length, length));
    }
    return whole;
  }

  Status write(const std::string& path, const Blob& content) {
    return content.empty() ? Status{} : write_file_atomically(files_, path, content, true);
  }

  Files& files_;
  const HeldPart& part_;
  const HeldPart& saved_;  ///< what there is of an earlier try
  const RankFolder& to_;
  const SaveOptions& options_;
  bool resumes_ = false;
  std::mutex mutex_;
  SaveAccount account_;  ///< guarded while there are threads
};

}  // namespace

std::uint64_t bytes_of(const HeldPart& part) {
  std::uint64_t bytes = part.own.empty() ? 0 : part.own.front().record.data_bytes();
  for (const HeldRecord& own : part.own)
    bytes += SetLayout(own.record.encoding).parity_bytes(own.record.index_in_set());
  return bytes;
}

Result<SaveAccount> save_part(Files& files, const Uuid& dataset, const HeldPart& part,
                              const RankFolder& to, const SaveOptions& options) {
  const HeldPart saved = read_part(files, to, part.owner, dataset);
  return PartSaver(files, part, saved, options).run();
}

}  // namespace cairn
