#include "tools/as_owner.hpp"

#include <unistd.h>

#include "base/units.hpp"
#include "comm/alone.hpp"
#include "files/background.hpp"
#include "prefix/contents.hpp"

namespace cairn {
namespace {

OwnerRecord record_of(const CommandOwner& owner, const Settings& settings, Clock& clock) {
  OwnerRecord me;
  me.run = {clock.now_us(), static_cast<std::int64_t>(clock.random() >> 1)};
  // Not the id of the job in which it may have been started, as that may be alive.
  me.job_id = owner.run_ended ? settings.job_id : fmt::format("of {}", owner.name);
  me.user = settings.user;
  me.host = settings.node_name;
  me.process = static_cast<std::uint64_t>(::getpid());
  me.started_us = clock.now_us();
  return me;
}

/// Logs before a wait of several seconds.
void log_waiting(Files& files, const Settings& settings, const OwnerRecord& me, const Log& log) {
  const auto other = read_owner(files, {settings.prefix});
  if (!other || !*other || !is_rival(**other, me)) return;
  log.info(
      "job {} of {} on {} (process {}) did not record its end in {}: waiting up to {} for a sign "
      "of life; if it is certainly dead, --force skips this wait",
      (*other)->job_id, (*other)->user, (*other)->host, (*other)->process, settings.prefix,
      format_seconds(static_cast<double>(silence_us) * 1e-6));
}

Result<Keeper> own(const CommandOwner& owner, Files& files, Clock& clock, const Settings& settings,
                   const IoThreads& io, const Log& log) {
  const OwnerRecord me = record_of(owner, settings, clock);
  if (!owner.force) log_waiting(files, settings, me, log);
  auto keeper =
      Keeper::take_over(files, clock, {settings.prefix}, me,
                        owner.force ? Claim::forced : Claim::polite, {&io, owner.reads_anew});
  if (!keeper && keeper.error().code == Code::busy)
    return fail(Code::busy, "{}; if that job is certainly dead, give --force", keeper.error().text);
  return keeper;
}

}  // namespace

Status wait_for_owner(const CommandOwner& owner, Files& files, Clock& clock,
                      const Settings& settings, const Log& log) {
  const OwnerRecord me = record_of(owner, settings, clock);
  log_waiting(files, settings, me, log);
  return wait_for_rivals(files, clock, {settings.prefix}, me, Claim::polite);
}

Status as_owner(const CommandOwner& owner, Files& files, Clock& clock, const Settings& settings,
                const Log& log, const std::function<Status(Communicator&, const Site&)>& action) {
  const auto background = make_background_thread();
  const IoThreads io{*background, reading_threads};
  CAIRN_ASSIGN(Keeper keeper, own(owner, files, clock, settings, io, log));
  if (!keeper.known().current_damage.empty()) log.warning("{}", keeper.known().current_damage);
  auto heartbeat = background->repeat(beat_period_us, keeper.heartbeat());
  Alone alone;
  const Site site{files,
                  clock,
                  {settings.prefix},
                  keeper.epoch_folder().epoch(),
                  1,
                  settings.copy_metadata,
                  {1, 0},
                  io,
                  &keeper};
  Status done = action(alone, site);
  heartbeat.reset();
  // Also after an error: updates the listing for the changes, and lets the next job begin without
  // waiting.
  const Status listed = keeper.save_listing();
  const Status resigned = keeper.resign();
  CAIRN_TRY(std::move(done));
  CAIRN_TRY(listed);
  return resigned;
}

}  // namespace cairn
