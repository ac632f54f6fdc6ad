#include "prefix/copy_files.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/checksum.hpp"
#include "files/sync_at_once.hpp"
#include "prefix/check.hpp"

namespace cairn {
namespace {

/// A piece of small files begins no more than these.
constexpr std::size_t piece_files = 256;
constexpr std::uint32_t owner_only = 0600;
constexpr std::uint64_t small_bytes = std::uint64_t{64} << 10;
/// About what a device gets at once, past the kernel's cache.
constexpr std::size_t run_bytes = std::size_t{4} << 20;

struct Piece {
  std::uint64_t first_block = 0;
  std::uint64_t end_block = 0;
  std::uint64_t begin = 0;  ///< in the stream that the files make one after the other
  std::uint64_t end = 0;
};

class RankCopy {
 public:
  RankCopy(Files& files, const RankRecord& record, const std::vector<std::string>& from,
           const std::vector<std::string>& to, const CopyOptions& options, Throttle& throttle)
      : files_(files),
        record_(record),
        geometry_(SetLayout(record.encoding).geometry()),
        from_(from),
        to_(to),
        options_(options),
        throttle_(throttle) {
    for (const FileEntry& file : record.files) starts_.push_back(starts_.back() + file.size);
  }

  Status run(const IoThreads& io) {
    cut(io.piece_bytes);
    if (options_.durable) CAIRN_TRY(ask_for_one_sync());
    const std::vector<std::size_t> parted = find_parted();
    CAIRN_TRY(io.each(parted.size(), [&](std::size_t i) { return begin_parted(parted[i]); }));
    CAIRN_TRY(io.each(pieces_.size(), [this](std::size_t i) { return copy(pieces_[i]); }));
    return at_once_ ? at_once_->sync() : Status{};
  }

 private:
  class Source;
  class Target;

  /// A file that several pieces make. All write by the one descriptor that is synced at the end:
  /// another one would not get the errors of their writes. All read through one view, because to
  /// make one of a file in memory takes the longer the larger the file is.
  class Parted {
   public:
    explicit Parted(std::uint64_t bytes) : missing_bytes_(bytes) {}

    /// `opened`, or what another thread has opened before.
    std::shared_ptr<File> share(std::shared_ptr<File> opened) {
      const std::scoped_lock lock(mutex_);
      if (!copy_) copy_ = std::move(opened);
      return copy_;
    }
    /// `make` is called once, unless it fails.
    Result<std::shared_ptr<View>> view(const std::function<Result<std::shared_ptr<View>>()>& make) {
      const std::scoped_lock lock(mutex_);
      if (!view_) {
        CAIRN_ASSIGN(view_, make());
      }
      return view_;
    }
    /// True if these were the last.
    bool has_all_with(std::uint64_t bytes) {
      const std::scoped_lock lock(mutex_);
      missing_bytes_ -= bytes;
      if (missing_bytes_ == 0) {
        copy_.reset();
        view_.reset();
      }
      return missing_bytes_ == 0;
    }

   private:
    std::mutex mutex_;
    std::shared_ptr<File> copy_;
    std::shared_ptr<View> view_;
    std::uint64_t missing_bytes_;
  };

  void cut(std::uint64_t piece_bytes) {
    Piece piece;
    std::size_t file = 0;
    for (std::uint64_t block = 0; block < record_.data_crcs.size(); ++block) {
      piece.end_block = block + 1;
      piece.end = geometry_.data_offset(block) + length_of(block);
      std::size_t last = file;
      while (last < to_.size() && starts_[last] < piece.end) ++last;
      if (piece.end - piece.begin < piece_bytes && last - file < piece_files) continue;
      pieces_.push_back(piece);
      piece = {piece.end_block, 0, piece.end, 0};
      file = last;
    }
    if (piece.end > piece.begin) pieces_.push_back(piece);
  }

  std::uint32_t length_of(std::uint64_t block) const {
    return geometry_.data_length(block, starts_.back());
  }

  bool lies_within(std::size_t file, const Piece& piece) const {
    return starts_[file] < starts_[file + 1] && piece.begin <= starts_[file] &&
           starts_[file + 1] <= piece.end;
  }

  /// Those that no single piece makes: they reach over several, or have no bytes at all.
  std::vector<std::size_t> find_parted() {
    std::vector<std::size_t> parted;
    auto piece = pieces_.begin();
    for (std::size_t file = 0; file < to_.size(); ++file) {
      while (piece != pieces_.end() && piece->end <= starts_[file]) ++piece;
      if (piece != pieces_.end() && lies_within(file, *piece)) continue;
      parted.push_back(file);
      if (size_of(file) > 0) parted_.try_emplace(file, size_of(file));
    }
    return parted;
  }

  std::uint64_t size_of(std::size_t file) const { return starts_[file + 1] - starts_[file]; }

  Result<std::shared_ptr<File>> begin(std::size_t file) const {
    CAIRN_TRY(options_.may_make());
    Result<std::shared_ptr<File>> made = make(file);
    if (made) return made;
    // What an earlier try has left may be read-only by now.
    if (options_.beside_others)
      (void)make_writable(file);  // else the next line says why it cannot be made
    else
      CAIRN_TRY(files_.remove_file(to_[file]));
    return make(file);
  }

  Result<std::shared_ptr<File>> make(std::size_t file) const {
    return options_.beside_others ? files_.create_or_open(to_[file], options_.mode)
                                  : files_.create(to_[file], options_.mode);
  }

  Status make_writable(std::size_t file) const {
    CAIRN_ASSIGN(const auto copy, files_.open(to_[file]));
    return copy->set_attributes(owner_only, record_.files[file].times);
  }

  /// The attributes before the sync, that they are durable with the rest.
  Status end(std::size_t file, File& copy) const {
    const FileEntry& entry = record_.files[file];
    // Another process may open it at any moment.
    const std::uint32_t mode = options_.beside_others ? entry.mode | owner_only : entry.mode;
    if (options_.keep_attributes) CAIRN_TRY(copy.set_attributes(mode, entry.times));
    if (!options_.durable || at_once_) return {};
    return options_.keep_attributes ? copy.sync_all() : copy.sync();
  }

  /// Where it is gone, that is lost: the redundancy of a cache may have it. A path of the copies
  /// that is gone is another matter.
  Status check_source(std::size_t file) const {
    Status good = check_size(files_, record_.files[file], from_[file]);
    if (!good && good.error().code == Code::not_found) good.error().code = Code::lost;
    return good;
  }

  Status begin_parted(std::size_t file) const {
    CAIRN_TRY(check_source(file));
    CAIRN_ASSIGN(const auto copy, begin(file));
    return size_of(file) == 0 ? end(file, *copy) : Status{};
  }

  Result<std::shared_ptr<File>> open(std::size_t file) {
    const auto parted = parted_.find(file);
    if (parted == parted_.end()) return begin(file);
    if (auto copy = parted->second.share(nullptr)) return copy;
    CAIRN_ASSIGN(auto opened, files_.open_for_update(to_[file]));
    return parted->second.share(std::move(opened));
  }

  Result<std::shared_ptr<View>> view(std::size_t file) {
    const auto make = [&]() -> Result<std::shared_ptr<View>> { return files_.view(from_[file]); };
    const auto parted = parted_.find(file);
    return parted == parted_.end() ? make() : parted->second.view(make);
  }

  /// `bytes` of the file are written: all that the piece has of it where it ends with them.
  Status note_written(std::size_t file, std::uint64_t bytes, bool ends, File& copy) {
    const auto parted = parted_.find(file);
    if (parted != parted_.end()) ends = parted->second.has_all_with(bytes);
    return ends ? end(file, copy) : Status{};
  }

  Status copy(const Piece& piece);

  Status ask_for_one_sync() {
    CAIRN_ASSIGN(SyncAtOnce at_once, SyncAtOnce::of(files_, to_));
    if (at_once.is_possible()) at_once_ = std::move(at_once);
    return {};
  }

  Files& files_;
  const RankRecord& record_;
  const Geometry geometry_;
  const std::vector<std::string>& from_;
  const std::vector<std::string>& to_;
  const CopyOptions& options_;
  Throttle& throttle_;
  std::vector<std::uint64_t> starts_ = {0};  ///< of file i, and the end of the last
  std::vector<Piece> pieces_;
  std::map<std::size_t, Parted> parted_;
  std::optional<SyncAtOnce> at_once_;  ///< else each file is synced when it is copied
};

/// Reads ranges of the stream, which come in order.
class RankCopy::Source {
 public:
  Source(RankCopy& job, const Piece& piece) : job_(job) {
    file_ = static_cast<std::size_t>(
        std::upper_bound(job.starts_.begin(), job.starts_.end(), piece.begin) -
        job.starts_.begin() - 1);
  }

  /// To read up to `end`, it goes on to another file. What it has read of this one is gone then.
  bool leaves_file_before(std::uint64_t end) const { return job_.starts_[file_ + 1] < end; }

  /// Points into a mapping or into `scratch`.
  Result<Bytes> read(std::uint64_t offset, std::size_t length, MutableBytes scratch) {
    auto bytes = read_range(offset, length, scratch);
    const bool is_damage = !bytes && job_.options_.is_repaired && bytes.error().error_number == EIO;
    if (is_damage) bytes.error().code = Code::corrupt;
    return bytes;
  }

 private:
  Result<Bytes> read_range(std::uint64_t offset, std::size_t length, MutableBytes scratch) {
    std::size_t done = 0;
    while (true) {
      CAIRN_TRY(go_to(offset + done));
      const auto part = static_cast<std::size_t>(
          std::min<std::uint64_t>(length - done, job_.starts_[file_ + 1] - offset - done));
      const MutableBytes target = scratch.subspan(done, part);
      CAIRN_ASSIGN(const Bytes bytes, part_at(offset + done - job_.starts_[file_], target));
      if (part == length) return bytes;
      if (bytes.data() != target.data()) std::copy(bytes.begin(), bytes.end(), target.begin());
      done += part;
      if (done == length) return Bytes(scratch.first(length));
    }
  }

  Status go_to(std::uint64_t offset) {
    while (job_.starts_[file_ + 1] <= offset) {
      ++file_;
      small_.reset();
      view_.reset();
    }
    return small_ || view_ ? Status{} : open();
  }

  /// A small file is read at once; to look whether a view would map it takes as long as that.
  Status open() {
    const FileEntry& entry = job_.record_.files[file_];
    const std::string& path = job_.from_[file_];
    const auto open = [&]() -> Result<std::uint64_t> {
      if (entry.size > small_bytes) {
        CAIRN_ASSIGN(view_, job_.view(file_));
        return view_->size();
      }
      CAIRN_ASSIGN(small_, job_.files_.open(path));
      return small_->size();
    };
    const auto bytes = open();
    if (bytes && *bytes == entry.size) return {};
    CAIRN_TRY(job_.check_source(file_));  // its error says what is in its place
    return bytes ? Status{} : tl::unexpected(bytes.error());
  }

  Result<Bytes> part_at(std::uint64_t offset, MutableBytes target) {
    if (view_) return view_->at(offset, target.size(), target);
    CAIRN_TRY(small_->read_at(offset, target));
    return Bytes(target);
  }

  RankCopy& job_;
  std::size_t file_;
  std::unique_ptr<File> small_;
  std::shared_ptr<View> view_;
};

/// Writes the bytes of one piece, in order, over the files that they belong to.
class RankCopy::Target {
 public:
  Target(RankCopy& job, const Piece& piece, std::size_t file)
      : job_(job), piece_(piece), file_(file), offset_(piece.begin) {}

  /// `stays`: the bytes stay where they are until the source leaves their file. Then they may wait
  /// for those after them, so that the device gets few large writes.
  Status add(Bytes data, bool stays) {
    const bool joins = stays && !run_.empty() && data.data() == run_.data() + run_.size() &&
                       run_.size() < run_bytes;
    if (joins) {
      run_ = {run_.data(), run_.size() + data.size()};
    } else {
      CAIRN_TRY(finish());
      run_ = data;
    }
    return stays ? Status{} : finish();
  }

  /// Writes what has waited.
  Status finish() { return write(std::exchange(run_, {})); }

  /// So that the disk has work while the next piece is read.
  void start_writing() {
    if (!copy_ || !job_.options_.durable || job_.options_.past_cache) return;
    const std::uint64_t start = job_.starts_[file_];
    const std::uint64_t from = std::max(start, piece_.begin);
    copy_->start_writing(from - start, offset_ - from);
  }

 private:
  Status write(Bytes data) {
    while (!data.empty()) {
      CAIRN_TRY(open());
      const std::uint64_t start = job_.starts_[file_];
      const std::uint64_t end = job_.starts_[file_ + 1];
      const auto part =
          static_cast<std::size_t>(std::min<std::uint64_t>(data.size(), end - offset_));
      const Bytes bytes = data.first(part);
      CAIRN_TRY(job_.options_.past_cache ? copy_->write_past_cache(offset_ - start, bytes)
                                         : copy_->write_at(offset_ - start, bytes));
      data = data.subspan(part);
      offset_ += part;
      CAIRN_TRY(job_.note_written(file_, part, offset_ == end, *copy_));
    }
    return {};
  }

  Status open() {
    while (job_.starts_[file_ + 1] <= offset_) {
      ++file_;
      copy_.reset();
    }
    if (copy_) return {};
    CAIRN_ASSIGN(copy_, job_.open(file_));
    return {};
  }

  RankCopy& job_;
  const Piece& piece_;
  std::size_t file_;
  std::uint64_t offset_;  ///< in the stream, of the next write
  Bytes run_;             ///< what waits for it
  std::shared_ptr<File> copy_;
};

Status RankCopy::copy(const Piece& piece) {
  CAIRN_TRY(options_.may_make());
  const auto first = std::upper_bound(starts_.begin(), starts_.end(), piece.begin);
  const auto file = static_cast<std::size_t>(first - starts_.begin() - 1);
  Source source(*this, piece);
  Target target(*this, piece, file);
  Blob scratch(geometry_.widest());
  for (std::uint64_t block = piece.first_block; block < piece.end_block; ++block) {
    const std::uint64_t offset = geometry_.data_offset(block);
    // What waits to be written points into the file.
    if (source.leaves_file_before(offset + length_of(block))) CAIRN_TRY(target.finish());
    CAIRN_ASSIGN(const Bytes bytes, source.read(offset, length_of(block), scratch));
    if (crc32c(bytes) != record_.data_crcs[block])
      return fail(Code::corrupt, "{} does not match its checksum",
                  names_at(record_, offset, bytes.size(), from_));
    throttle_.take(bytes.size());
    if (throttle_.is_stopped())
      return fail(Code::busy, "the copy was stopped, because the program ends or gives it up");
    CAIRN_TRY(target.add(bytes, options_.past_cache && bytes.data() != scratch.data()));
  }
  CAIRN_TRY(target.finish());
  target.start_writing();
  return {};
}

}  // namespace

bool is_written_since(Files& files, const FileEntry& entry, const std::string& path) {
  const auto there = files.info(path);
  return there && there->times.modify_ns > entry.times.modify_ns;
}

bool is_writable_copy(Files& files, const FileEntry& entry, const std::string& path) {
  const std::uint32_t mode = entry.mode | owner_only;
  if (entry.mode == mode) return false;
  const auto there = files.info(path);
  return there && there->mode == mode && there->times.modify_ns == entry.times.modify_ns;
}

bool has_other_attributes(Files& files, const FileEntry& entry, const std::string& path) {
  const auto there = files.info(path);
  if (!there || there->kind != Kind::file || there->size != entry.size) return false;
  const bool is_writable = there->mode != entry.mode && there->mode == (entry.mode | owner_only);
  return is_writable || !is_kept_time(there->times.modify_ns, entry.times.modify_ns);
}

std::string names_at(const RankRecord& record, std::uint64_t offset, std::uint64_t length,
                     const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::uint64_t end = start + record.files[i].length();
    if (start < offset + length && offset < end) names.push_back(paths[i]);
    start = end;
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

Status check_size(Files& files, const FileEntry& entry, const std::string& path) {
  CAIRN_ASSIGN(const FileInfo info, files.info(path));
  if (info.kind != Kind::file) return fail(Code::corrupt, "{} is not a regular file", path);
  if (info.size != entry.size)
    return fail(Code::corrupt, "{} has {} bytes, expected {}", path, info.size, entry.size);
  return {};
}

Status copy_files(Files& files, const IoThreads& io, const RankRecord& record,
                  const std::vector<std::string>& from, const std::vector<std::string>& to,
                  const CopyOptions& options, Throttle& throttle) {
  return RankCopy(files, record, from, to, options, throttle).run(io);
}

}  // namespace cairn
