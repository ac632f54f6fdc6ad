#include "async_deaths.hpp"

#include <utility>

#include "drain_nodes.hpp"
#include "prefix_inspection.hpp"
#include "small_job.hpp"
#include "support/job_settings.hpp"

namespace cairn::sim {
namespace {

JobShape shape_of_dying_job(std::uint64_t seed) {
  JobShape shape = SmallJob::shape_of(seed, {"n0", "n1", "n2", "n3"}, 3);
  Settings& settings = shape.settings;
  CheckpointSettings& level = add_level(settings, memory_mount);
  settings.stores[0].count = 2;
  level.scheme = Scheme::partner;
  level.set_size = 3;
  settings.flush = true;
  settings.flush_async = true;
  settings.flush_interval = 1;
  settings.flush_width = 2;
  settings.io_threads = 1;
  settings.fetch = true;
  return shape;
}

class DyingJob {
  using Kind = AsyncDeath::Kind;

 public:
  DyingJob(const AsyncDeath& death, bool print)
      : death_(death), job_(shape_of_dying_job(death.seed), print) {}

  AsyncDeathOutcome carry_out() {
    try {
      run([this](RankProcess& process) {
        job_.write(process, older);
        SmallJob::finalize(process);
      });
      run([this](RankProcess& process) { be_dying_run(process); });
      if (outcome_.has_died) live_on();
    } catch (const std::exception& broken) {
      outcome_.failure = broken.what();
      job_.trace.say("failed: {}", outcome_.failure);
    }
    return outcome_;
  }

 private:
  static constexpr int older = 1;
  static constexpr int newer = 2;
  static constexpr std::uint64_t others_live_for = 1500;  // calls: enough for all of their parts

  void run(const SmallJob::Program& program) {
    job_.run(program);
    inspection_.check_published_once();
  }

  void be_dying_run(RankProcess& process) {
    if (job_.restart(process) != older) throw Violation("(b) d1 is not offered");
    job_.write(process, newer, [this] {
      if (!std::exchange(is_armed_, true)) job_.seam.after(death_.calls, [this] { die(); });
    });
    is_completed_ = true;
    constexpr int most_looks = 100;
    constexpr std::int64_t between_looks_us = 50'000;
    constexpr std::int64_t until_settled_us = 400'000;
    for (int i = 0; i < most_looks && process.session->safety().of("d2") != Safety::flushed; ++i)
      process.clock.sleep_us(between_looks_us);
    process.clock.sleep_us(until_settled_us);
  }

  const std::string& dying_node() const {
    return job_.shape.first_placement[static_cast<std::size_t>(death_.node)];
  }

  void die() {
    outcome_.has_died = true;
    job_.trace.say("it dies");
    if (death_.kind != Kind::node && death_.kind != Kind::process) {
      job_.scheduler.end_all();
      return;
    }
    job_.scheduler.end(death_.node);  // one rank on each node
    if (death_.kind == Kind::node) job_.watch.lose_node([this] { job_.lose(dying_node()); });
    job_.seam.after(others_live_for, [this] { job_.scheduler.end_all(); });
  }

  // --- after the death ---

  bool is_of_drains() const { return death_.kind == Kind::drains || death_.kind == Kind::drain; }

  void live_on() {
    if (death_.kind == Kind::power) job_.fail_power();  // the caches are in main memory
    if (is_of_drains()) outcome_.has_died = !drain(death_.drain_calls);
    if (death_.is_drained) drain(0);
    inspection_.check_published_once();
    outcome_.was_whole = inspection_.find_whole().contains(newer);
    const bool loses_caches = death_.kind == Kind::job || (is_of_drains() && death_.is_drained);
    if (loses_caches) job_.lose_all_caches();
    const bool is_in_caches = is_completed_ && death_.kind != Kind::power && !loses_caches;
    if (death_.kind == Kind::node) job_.replace(dying_node(), "n3");
    const int found = restart_and_finalize();
    if (found == 0) throw Violation("(b) d1 is not offered");
    if (found != newer && (outcome_.was_whole || is_in_caches))
      throw Violation(fmt::format("(b) d2 was {}, and d{} is offered",
                                  outcome_.was_whole ? "whole" : "complete", found));
    check_prefix(found);
    job_.lose_all_caches();
    if (const int again = restart_and_finalize(); again != found)
      throw Violation(fmt::format("(b) d{} is offered, and without caches d{}", found, again));
  }

  /// False if one was killed.
  bool drain(std::uint64_t ends_after) {
    std::vector<std::string> nodes = job_.shape.first_placement;
    if (death_.kind == Kind::node) nodes.erase(nodes.begin() + death_.node);
    return drain_nodes(
        {job_.cluster, job_.prefix, job_.scheduler, job_.seam, job_.watch, job_.trace},
        {job_.shape.settings},
        {nodes, ends_after, death_.kind == Kind::drain ? death_.node : DrainPlan::all},
        job_.chance);
  }

  int restart_and_finalize() {
    int found = 0;
    run([&](RankProcess& process) {
      const int key = job_.restart(process);
      if (process.env.rank == 0) found = key;
      SmallJob::finalize(process);
    });
    return found;
  }

  void check_prefix(int found) const {
    inspection_.check_staged({}, "Finalize");
    const auto files =
        make_memory_files({{job_.shape.settings.prefix, job_.prefix}}, [] { return 0; });
    std::vector<std::string> damaged;
    const auto listing = read_listing(*files, {job_.shape.settings.prefix}, damaged);
    if (!listing || !damaged.empty()) throw Violation("(h) the listing cannot be read");
    bool is_there = false;
    for (const DatasetRecord& record : *listing) {
      const int key = std::stoi(record.info.name.substr(1));
      is_there = is_there || key == found;
      for (int rank = 0; rank < job_.shape.ranks(); ++rank)
        for (const FileShape& file : job_.files.of_rank(key, rank))
          job_.check_content(*files, file.name, key, rank, file);
    }
    if (!is_there) throw Violation(fmt::format("(h) d{} is not listed", found));
  }

  const AsyncDeath death_;
  SmallJob job_;
  const PrefixBooks books_{};  ///< empty: the inspection needs one
  const PrefixInspection inspection_{job_.shape, job_.prefix, books_, job_.files};
  bool is_armed_ = false;
  bool is_completed_ = false;  ///< on some rank
  AsyncDeathOutcome outcome_;
};

}  // namespace

AsyncDeathOutcome simulate_async_death(const AsyncDeath& death, bool print) {
  return DyingJob(death, print).carry_out();
}

}  // namespace cairn::sim
