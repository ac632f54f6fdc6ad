#include "tools/prefix_owner.hpp"

#include <unistd.h>

#include "comm/team.hpp"

namespace cairn {
namespace {

OwnerRecord owner_of(const Settings& settings, Clock& clock, const std::string& name) {
  OwnerRecord me;
  me.run = {clock.now_us(), static_cast<std::int64_t>(clock.random() >> 1)};
  me.job_id = "of " + name;  // not that of the job it may have been started in
  me.user = settings.user;
  me.host = settings.node_name;
  me.process = static_cast<std::uint64_t>(::getpid());
  me.started_us = clock.now_us();
  return me;
}

}  // namespace

Status as_owner(Files& files, Clock& clock, const Settings& settings, const std::string& name,
                Claim claim, const std::function<Status(Communicator&, Site&)>& action) {
  auto taken =
      Keeper::take_over(files, clock, {settings.prefix}, owner_of(settings, clock, name), claim);
  if (!taken && taken.error().code == Code::busy)
    return fail(Code::busy, "{}; if it is dead for certain, give --force", taken.error().text);
  CAIRN_ASSIGN(Keeper keeper, std::move(taken));
  const auto background = make_background_thread();
  auto heartbeat = background->repeat(beat_period_us, keeper.heartbeat());
  Status done;
  Team(1).run([&](Communicator& comm) {
    Site site{files,
              clock,
              {settings.prefix},
              keeper.epoch(),
              1,
              settings.copy_metadata,
              {1, 0},
              {*background, reading_threads},
              &keeper};
    done = action(comm, site);
  });
  heartbeat.reset();
  const Status listed = keeper.save_listing();
  const Status resigned = keeper.resign();
  CAIRN_TRY(std::move(done));
  CAIRN_TRY(listed);
  return resigned;
}

}  // namespace cairn
