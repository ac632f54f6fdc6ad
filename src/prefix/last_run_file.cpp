#include "prefix/last_run_file.hpp"

#include "files/lock_patiently.hpp"
#include "files/modes.hpp"
#include "prefix/contents.hpp"
#include "prefix/keeper.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t most_last_run_bytes = 64 << 20;  // of a million nodes

constexpr std::int64_t lock_patience_us = 2'000'000;  // a change takes milliseconds

/// So that the end of one run does not overwrite the beginning of the next. Where the file system
/// has no locks the rename alone must do.
using Lock = Result<std::unique_ptr<FileLock>>;
Lock lock_last_run(Files& files, Clock& clock, const PrefixFolder& folder) {
  return lock_patiently(files, clock, folder.job().last_run_lock(),
                        clock.steady_us() + lock_patience_us);
}

Status write_last_run(Files& files, const PrefixFolder& folder, const LastRunRecord& record) {
  return write_file_atomically(files, folder.job().last_run(), encode(record), true);
}

bool is_same_run(const LastRunRecord& one, const LastRunRecord& other) {
  return one.host == other.host && one.process == other.process &&
         one.started_us == other.started_us;
}

/// Another run of the job, or a command, may be the owner now: its signs of life are not this
/// run's.
bool gives_signs_of_life(Files& files, Clock& clock, const PrefixFolder& folder,
                         const LastRunRecord& record) {
  const auto owner = read_owner(files, folder);
  return owner && *owner && (*owner)->job_id == record.job_id && (*owner)->user == record.user &&
         (*owner)->process == record.process.process && (*owner)->beat_us != 0 &&
         clock.now_us() - (*owner)->beat_us < silence_us;
}

}  // namespace

Status keep_last_run(Files& files, Clock& clock, const PrefixFolder& folder,
                     const LastRunRecord& record) {
  CAIRN_TRY(files.make_folder(folder.root(), directory_for_all));
  const Lock lock = lock_last_run(files, clock, folder);
  return write_last_run(files, folder, record);
}

Result<std::optional<LastRunRecord>> read_last_run(Files& files, const PrefixFolder& folder) {
  const auto content = read_file(files, folder.job().last_run(), most_last_run_bytes);
  if (!content && content.error().code == Code::not_found) return std::optional<LastRunRecord>{};
  CAIRN_TRY(content);
  auto record = decode_last_run_record(*content);
  if (record) return std::optional(*std::move(record));
  return fail(
      record.error().code,
      "{}: {}; so the job of {} is not known: set SCR_JOB_ID, and SCR_CACHE_BASE if the job "
      "had it set",
      folder.job().last_run(), record.error().text, folder.prefix);
}

Status mark_last_run_ended(Files& files, Clock& clock, const PrefixFolder& folder,
                           const LastRunRecord& mine) {
  const Lock lock = lock_last_run(files, clock, folder);
  CAIRN_ASSIGN(auto kept, read_last_run(files, folder));
  if (!kept || !is_same_run(*kept, mine)) return {};
  kept->ended_us = clock.now_us();
  return write_last_run(files, folder, *kept);
}

RunState state_of_run(Files& files, Clock& clock, const PrefixFolder& folder,
                      const LastRunRecord& record) {
  if (record.ended_us != 0) return RunState::ended;
  switch (life_of(record.process)) {
    case Life::lives:
      return RunState::runs;
    case Life::gone:
      return RunState::died;
    case Life::unknown:
      break;
  }
  return gives_signs_of_life(files, clock, folder, record) ? RunState::runs : RunState::unknown;
}

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::runs:
      return "runs";
    case RunState::ended:
      return "ended";
    case RunState::died:
      return "died";
    case RunState::unknown:
      return "unknown";
  }
  return "";
}

}  // namespace cairn
