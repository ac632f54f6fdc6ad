#include "prefix/halt_file.hpp"

#include "files/modes.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t most_halt_bytes = 1 << 16;

// An update takes milliseconds. A longer wait would hold up all ranks of a job.
constexpr std::int64_t patience_us = 2'000'000;
constexpr std::int64_t pause_us = 10'000;

}  // namespace

Result<HaltRecord> HaltFile::read() const {
  const auto content = read_file(*files_, folder_.job().halt(), most_halt_bytes);
  if (!content && content.error().code == Code::not_found) return HaltRecord{};
  if (!content) return tl::unexpected(content.error());
  auto record = decode_halt_record(*content);
  if (record) return record;
  if (record.error().code == Code::newer_format)
    return fail(Code::newer_format, "the halt file {} is {}", folder_.job().halt(),
                record.error().text);
  return fail(Code::corrupt,
              "the halt file {} is damaged ({}): \"cairn halt --remove --prefix {}\" removes it",
              folder_.job().halt(), record.error().text, folder_.prefix);
}

/// No lock if the file system has none, or this user may not take it. Then the rename still keeps
/// the file intact, but of two concurrent updates one may be lost.
Result<std::unique_ptr<FileLock>> HaltFile::lock() {
  const std::int64_t from_us = clock_->steady_us();
  while (true) {
    auto taken = files_->lock(folder_.job().halt_lock());
    if (taken || taken.error().code == Code::not_found || taken.error().code == Code::no_space)
      return taken;
    if (taken.error().code != Code::busy) return nullptr;
    if (clock_->steady_us() - from_us >= patience_us)
      return fail(Code::busy,
                  "cannot change the halt file {}: another process has held the lock {} for {} s; "
                  "try again when that process has ended",
                  folder_.job().halt(), folder_.job().halt_lock(), patience_us / 1'000'000);
    clock_->sleep_us(pause_us);
  }
}

Status HaltFile::write(const HaltRecord& record) {
  return write_file_atomically(*files_, folder_.job().halt(), encode(record), true);
}

/// The sync after the rename may have failed.
HaltChange HaltFile::change(const std::function<void(HaltRecord&)>& change) {
  std::optional<HaltRecord> wanted;
  Status status = this->change(change, wanted);
  if (status) return {{}, true};
  const auto there = wanted ? read() : HaltRecord{};
  return {std::move(status), wanted && there && *there == *wanted};
}

Status HaltFile::change(const std::function<void(HaltRecord&)>& change,
                        std::optional<HaltRecord>& wanted) {
  CAIRN_ASSIGN(HaltRecord before, read());
  HaltRecord changed = before;
  change(changed);
  if (changed == before) return {};
  CAIRN_TRY(files_->make_folder(folder_.root(), directory_for_all));
  CAIRN_ASSIGN(const auto locked, lock());
  CAIRN_ASSIGN(before, read());  // another process may have changed it before the lock
  changed = before;
  change(changed);
  if (changed == before) return {};
  wanted = changed;
  return write(changed);
}

Status HaltFile::remove() {
  if (const auto there = files_->info(folder_.job().halt()); !there)
    return there.error().code == Code::not_found ? Status{} : Status(tl::unexpected(there.error()));
  CAIRN_ASSIGN(const auto locked, lock());
  CAIRN_TRY(files_->remove_file(folder_.job().halt()));
  return files_->sync_folder(folder_.root());
}

}  // namespace cairn
