#include "crfs/shared_file.hpp"

#include <algorithm>
#include <ctime>

namespace cairn {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

/// The kernel cuts a large write into pieces of 256 pages of the program's memory; the first page
/// may be partial.
constexpr std::size_t shortest_full_piece = std::size_t{255} * 4096;

std::int64_t ns_of(const timespec& time) { return time.tv_sec * ns_per_s + time.tv_nsec; }

timespec time_of(std::int64_t ns) { return {ns / ns_per_s, ns % ns_per_s}; }

}  // namespace

SharedFile::SharedFile(Aggregator& aggregator, std::unique_ptr<BackingDescriptor> backing,
                       const struct stat& now)
    : backing_(*backing),
      data_(aggregator, std::move(backing), static_cast<std::uint64_t>(now.st_size)),
      had_names_(now.st_nlink > 0) {}

ssize_t SharedFile::read(std::uint64_t offset, MutableBytes buffer) {
  return is_passed_through() ? backing_.read_at(offset, buffer) : data_.read(offset, buffer);
}

ssize_t SharedFile::write(std::uint64_t offset, Bytes data) {
  if (is_passed_through()) return backing_.write_at(offset, data);
  return taken(data, data_.write(offset, data));
}

ssize_t SharedFile::append(Bytes data) {
  return is_passed_through() ? backing_.append(data) : taken(data, data_.append(data));
}

ssize_t SharedFile::taken(Bytes data, int error) {
  if (error != 0) return error;
  note_change();
  return static_cast<ssize_t>(data.size());
}

void SharedFile::note_change() {
  timespec now = {};
  // The clock that file systems use for times: a resolution of 4 ms, and cheap.
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  last_write_ns_ = ns_of(now);
  ++written_;
}

void SharedFile::show(struct stat& status) {
  if (is_passed_through()) return;
  const bool all_there = settled();
  status.st_size = static_cast<off_t>(data_.size());
  if (all_there) return;
  const std::int64_t written_ns = last_write_ns_;
  has_shown_time_ = true;
  // Even if the backing file has a newer time: it received the bytes after the program wrote them.
  status.st_mtim = time_of(written_ns);
  if (ns_of(status.st_ctim) < written_ns) status.st_ctim = status.st_mtim;
  // If a file has fewer blocks than bytes, programs assume holes.
  status.st_blocks = std::max<blkcnt_t>(status.st_blocks, (status.st_size + 511) / 512);
}

void SharedFile::settled_to(std::uint64_t mark) {
  std::uint64_t before = settled_;
  while (before < mark && !settled_.compare_exchange_weak(before, mark)) continue;
  if (mark != written_ || !has_shown_time_.exchange(false)) return;
  const timespec times[2] = {{0, UTIME_OMIT}, time_of(last_write_ns_)};
  // If the time cannot be set, the file is slightly newer than was shown.
  (void)::futimens(backing_.number(), times);
}

int SharedFile::resize(std::uint64_t bytes) {
  const int error = data_.resize(bytes);
  if (error == 0 && !is_passed_through()) note_change();
  return error;
}

int SharedFile::drain(AggregatedFile::ErrorCursor& seen) {
  const std::uint64_t mark = written_;
  const int error = data_.drain(seen);
  settled_to(mark);
  return error;
}

int SharedFile::sync(AggregatedFile::ErrorCursor& seen, bool data_only) {
  const std::uint64_t mark = written_;
  const int error = data_.sync(seen, data_only);
  settled_to(mark);
  return error;
}

void SharedFile::settle() {
  if (settled()) return;
  const std::uint64_t mark = written_;
  data_.settle();
  settled_to(mark);
}

int SharedFile::change_backing(const std::function<int()>& change) {
  const std::uint64_t mark = written_;
  forget_times();
  const int result = data_.change_backing([&](BackingFile&) { return change(); });
  settled_to(mark);
  return result;
}

int SharedFile::flush() {
  if (is_passed_through()) return backing_.flush();
  const std::uint64_t mark = settled_;
  const int error = flushed_.exchange(mark) == mark ? 0 : backing_.flush();
  if (error != 0) distrust_cache();
  return error;
}

bool SharedFile::is_nameless() const {
  struct stat status = {};
  return had_names_ && ::fstat(backing_.number(), &status) == 0 && status.st_nlink == 0;
}

Handle::Handle(SharedFile& file, bool direct, bool writes)
    : file_(file), direct_(direct), writes_(writes), errors_seen_(file.data().opened()) {}

int Handle::drain() {
  const std::lock_guard lock(mutex_);
  return file_.drain(errors_seen_);
}

int Handle::sync(bool data_only) {
  const std::lock_guard lock(mutex_);
  return file_.sync(errors_seen_, data_only);
}

int Handle::flush() {
  if (!file_.settled() && file_.is_nameless()) return 0;  // the data will be dropped
  const int error = drain();
  return error != 0 ? error : file_.flush();
}

void Handle::profile(WriteProfile& profile, off_t offset, std::size_t bytes, std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  if (offset == piece_end_) {
    profile.extend(whole_, bytes, ns);
    whole_ = {whole_.bytes + bytes, whole_.ns + ns};
  } else {
    profile.add(bytes, ns);
    whole_ = {bytes, ns};
  }
  piece_end_ = bytes > shortest_full_piece ? offset + static_cast<off_t>(bytes) : -1;
}

}  // namespace cairn
