#include "async_deaths.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "cluster.hpp"
#include "drain_nodes.hpp"
#include "prefix_inspection.hpp"
#include "rank_process.hpp"
#include "state_watch.hpp"
#include "support/job_settings.hpp"

namespace cairn::sim {
namespace {

JobShape shape_of_dying_job(std::uint64_t seed) {
  JobShape shape;
  shape.seed = seed;
  shape.nodes = {"n0", "n1", "n2", "n3"};
  shape.first_placement = {"n0", "n1", "n2"};
  Settings& settings = shape.settings;
  settings = settings_of_job(prefix_mount, memory_mount);
  settings.encode_bytes = 4096;
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
      : death_(death),
        chance_(death.seed),
        trace_(print),
        shape_(shape_of_dying_job(death.seed)),
        cluster_(shape_.nodes),
        prefix_(std::make_shared<Volume>(Volume::Medium::disk)),
        scheduler_(chance_.fork()),
        seam_(scheduler_, trace_),
        watch_(cluster_, prefix_, shape_.settings),
        placement_(shape_.first_placement) {}

  AsyncDeathOutcome carry_out() {
    try {
      run([this](RankProcess& process) {
        write(process, older);
        finalize(process);
      });
      run([this](RankProcess& process) { be_dying_run(process); });
      if (outcome_.has_died) live_on();
    } catch (const std::exception& broken) {
      outcome_.failure = broken.what();
      trace_.say("failed: {}", outcome_.failure);
    }
    return outcome_;
  }

 private:
  static constexpr int older = 1;
  static constexpr int newer = 2;
  static constexpr std::int64_t pause_between_runs_us = 60'000'000;
  static constexpr std::uint64_t others_live_for = 1500;  // calls: enough for all of their parts

  static void require(const Status& status, std::string_view call) {
    if (!status) throw Violation(fmt::format("(g) {} fails: {}", call, status.error().text));
  }

  // --- a run ---

  void run(const std::function<void(RankProcess&)>& program) {
    scheduler_.pass_time_us(pause_between_runs_us);
    const int ranks = shape_.ranks();
    Postboxes boxes(ranks, seam_, chance_.fork());
    std::deque<HelperBackground> helpers;
    for (int rank = 0; rank < ranks; ++rank)
      helpers.emplace_back(scheduler_, rank, Stepping{true, 100, chance_.next()});
    seam_.begin(ranks);
    watch_.begin_run();
    run_ranks(scheduler_, helpers, [&](int rank) {
      be_process(program, boxes, rank, helpers[static_cast<std::size_t>(rank)]);
    });
    watch_.look();
    inspection_.check_published_once();
  }

  void be_process(const std::function<void(RankProcess&)>& program, Postboxes& boxes, int rank,
                  HelperBackground& background) {
    Settings settings = shape_.settings;
    settings.node_name = placement_[static_cast<std::size_t>(rank)];
    Mounts mounts = cluster_.mounts_of(settings.node_name);
    mounts[settings.prefix] = prefix_;
    RankProcess process({seam_, chance_, boxes, background, rank, std::move(settings),
                         std::move(mounts), [this](const FileOperation& operation) -> Status {
                           watch_.see(operation);
                           return {};
                         }});
    require(process.init(), "Init");
    program(process);
    background.finish();  // what it does uses the files of the process
  }

  void be_dying_run(RankProcess& process) {
    if (restart(process) != older) throw Violation("(b) d1 is not offered");
    write(process, newer);
    constexpr int most_looks = 100;
    constexpr std::int64_t between_looks_us = 50'000;
    constexpr std::int64_t until_settled_us = 400'000;
    for (int i = 0; i < most_looks && process.session->safety().of("d2") != Safety::flushed; ++i)
      process.clock.sleep_us(between_looks_us);
    process.clock.sleep_us(until_settled_us);
  }

  void write(RankProcess& process, int key) {
    const std::string name = fmt::format("d{}", key);
    require(process.session->start_output(name, flag_checkpoint), "Start");
    for (const FileShape& file : files_.of_rank(key, process.env.rank)) {
      const auto path = process.session->route_file(file.name);
      require(path.map([](const auto&) {}), "Route_file");
      require(process.write(*path, file, files_.content(key, process.env.rank, file)), "write");
    }
    if (key == newer && !std::exchange(is_armed_, true))
      seam_.after(death_.calls, [this] { die(); });
    require(process.session->complete_output(true), "Complete");
    if (key == newer) is_completed_ = true;
  }

  void die() {
    outcome_.has_died = true;
    trace_.say("it dies");
    if (death_.kind != Kind::node && death_.kind != Kind::process) {
      scheduler_.end_all();
      return;
    }
    scheduler_.end(death_.node);  // one rank on each node
    if (death_.kind == Kind::node)
      watch_.lose_node([this] { lose(placement_[static_cast<std::size_t>(death_.node)]); });
    seam_.after(others_live_for, [this] { scheduler_.end_all(); });
  }

  void finalize(RankProcess& process) { require(process.session->finalize(), "Finalize"); }

  /// The key of the dataset; 0: none is offered.
  int restart(RankProcess& process) {
    const auto offer = process.session->have_restart();
    require(offer.map([](const auto&) {}), "Have_restart");
    if (!*offer) return 0;
    const int key = std::stoi((*offer)->substr(1));
    require(process.session->start_restart().map([](const auto&) {}), "Start_restart");
    for (const FileShape& file : files_.of_rank(key, process.env.rank)) {
      const auto path = process.session->route_file(file.name);
      require(path.map([](const auto&) {}), "Route_file");
      check_content(*process.files, *path, key, process.env.rank, file);
    }
    require(process.session->complete_restart(true), "Complete_restart");
    return key;
  }

  void check_content(Files& files, const std::string& path, int key, int rank,
                     const FileShape& file) const {
    const auto content = read_file(files, path, std::uint64_t{1} << 30);
    if (!content || *content != files_.content(key, rank, file))
      throw Violation(fmt::format("(a) {} is not as rank {} wrote it", path, rank));
  }

  // --- after the death ---

  void lose(const std::string& node) {
    for (const Place& place : cluster_.places())
      if (place.node == node) place.volume->wipe();
  }

  void lose_all_caches() {
    for (const Place& place : cluster_.places()) place.volume->wipe();
    watch_.forget_caches();
  }

  bool is_of_drains() const { return death_.kind == Kind::drains || death_.kind == Kind::drain; }

  void live_on() {
    if (death_.kind == Kind::power) fail_power();
    if (is_of_drains()) outcome_.has_died = !drain(death_.drain_calls);
    if (death_.is_drained) drain(0);
    inspection_.check_published_once();
    outcome_.was_whole = inspection_.find_whole().contains(newer);
    const bool loses_caches = death_.kind == Kind::job || (is_of_drains() && death_.is_drained);
    if (loses_caches) lose_all_caches();
    const bool is_in_caches = is_completed_ && death_.kind != Kind::power && !loses_caches;
    if (death_.kind == Kind::node)
      std::replace(placement_.begin(), placement_.end(),
                   shape_.first_placement[static_cast<std::size_t>(death_.node)],
                   std::string("n3"));
    const int found = restart_and_finalize();
    if (found == 0) throw Violation("(b) d1 is not offered");
    if (found != newer && (outcome_.was_whole || is_in_caches))
      throw Violation(fmt::format("(b) d2 was {}, and d{} is offered",
                                  outcome_.was_whole ? "whole" : "complete", found));
    check_prefix(found);
    lose_all_caches();
    if (const int again = restart_and_finalize(); again != found)
      throw Violation(fmt::format("(b) d{} is offered, and without caches d{}", found, again));
  }

  /// The caches are in main memory.
  void fail_power() {
    watch_.fail_power([this] {
      for (const Place& place : cluster_.places()) place.volume->power_failure(chance_);
      prefix_->power_failure(chance_);
    });
  }

  /// False if one was killed.
  bool drain(std::uint64_t ends_after) {
    std::vector<std::string> nodes = shape_.first_placement;
    if (death_.kind == Kind::node) nodes.erase(nodes.begin() + death_.node);
    return drain_nodes(
        {cluster_, prefix_, scheduler_, seam_, watch_, trace_}, {shape_.settings},
        {nodes, ends_after, death_.kind == Kind::drain ? death_.node : DrainPlan::all}, chance_);
  }

  int restart_and_finalize() {
    int found = 0;
    run([&](RankProcess& process) {
      const int key = restart(process);
      if (process.env.rank == 0) found = key;
      finalize(process);
    });
    return found;
  }

  void check_prefix(int found) const {
    inspection_.check_staged({}, "Finalize");
    const auto files = make_memory_files({{shape_.settings.prefix, prefix_}}, [] { return 0; });
    std::vector<std::string> damaged;
    const auto listing = read_listing(*files, {shape_.settings.prefix}, damaged);
    if (!listing || !damaged.empty()) throw Violation("(h) the listing cannot be read");
    bool is_there = false;
    for (const DatasetRecord& record : *listing) {
      const int key = std::stoi(record.info.name.substr(1));
      is_there = is_there || key == found;
      for (int rank = 0; rank < shape_.ranks(); ++rank)
        for (const FileShape& file : files_.of_rank(key, rank))
          check_content(*files, file.name, key, rank, file);
    }
    if (!is_there) throw Violation(fmt::format("(h) d{} is not listed", found));
  }

  const AsyncDeath death_;
  Chance chance_;
  Trace trace_;
  const JobShape shape_;
  Cluster cluster_;
  std::shared_ptr<Volume> prefix_;
  Scheduler scheduler_;
  Seam seam_;
  StateWatch watch_;
  Nodes placement_;
  ProgramFiles files_{shape_};
  const PrefixBooks books_{};  ///< empty: the inspection needs one
  const PrefixInspection inspection_{shape_, prefix_, books_, files_};
  bool is_armed_ = false;
  bool is_completed_ = false;  ///< on some rank
  AsyncDeathOutcome outcome_;
};

}  // namespace

AsyncDeathOutcome simulate_async_death(const AsyncDeath& death, bool print) {
  return DyingJob(death, print).carry_out();
}

}  // namespace cairn::sim
