#include "prefix_job.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cluster.hpp"
#include "drain_nodes.hpp"
#include "faults.hpp"
#include "loss_books.hpp"
#include "prefix/keeper.hpp"
#include "prefix_inspection.hpp"
#include "prefix_plan.hpp"
#include "rank_process.hpp"
#include "state_watch.hpp"
#include "verdicts.hpp"

namespace cairn::sim {
namespace {

constexpr std::int64_t pause_of_job_us = 60'000'000;

class PrefixJob {
  using Plan = PrefixPlan;

 public:
  enum class Kind {
    flushes,
    bypass,   ///< of the cache
    trouble,  ///< damage to what was flushed, calls by name, restarts that die
  };

  PrefixJob(std::uint64_t seed, bool print, Kind kind, bool is_async = false)
      : kind_(kind),
        bypass_(kind == Kind::bypass),
        ways_(seed ^ 0x9e3779b9U),
        chance_(seed ^ 0x2545f491U),
        of_flushes_(seed ^ 0x6a09e667U),
        of_owners_(seed ^ 0x3c6ef372U),
        of_trouble_(seed ^ 0x510e527fU),
        of_intervals_(seed ^ 0x9b05688cU),
        of_restarts_(seed ^ 0x1f83d9abU),
        async_(seed, is_async),
        trace_(print),
        shape_(draw_shape(seed)),
        cluster_(shape_.nodes),
        prefix_(std::make_shared<Volume>(Volume::Medium::disk)),
        scheduler_(chance_.fork()),
        seam_(scheduler_, trace_),
        watch_(cluster_, prefix_, shape_.settings),
        faults_(chance_.fork(), trace_) {
    Settings& settings = shape_.settings;
    settings.flush = true;
    settings.fetch = true;
    settings.flush_interval = 1;
    settings.flush_width = chance_.between(1, 4);
    settings.io_threads = of_flushes_.between(1, 2);
    settings.io_piece_bytes = std::uint64_t{1} << of_flushes_.between(8, 14);
    settings.restart_attempts =
        kind_ == Kind::trouble && of_trouble_.one_in(2) ? of_trouble_.between(1, 3) : 0;
    if (!bypass_ && of_owners_.one_in(3)) settings.prefix_size = of_owners_.between(1, 3);
    several_jobs_ = !bypass_ && of_owners_.one_in(3);
    // Where one job goes on from what another has made, the numbers of one's checkpoints say
    // nothing of the other's.
    if (kind_ == Kind::flushes && !several_jobs_ && of_intervals_.one_in(2))
      settings.flush_interval = of_intervals_.between(2, 3);
    async_.draw_settings(settings);
    books_.set_bounds(settings.restart_attempts, settings.prefix_size, settings.flush_interval);
    placement_ = shape_.first_placement;
  }

  Outcome carry_out() {
    try {
      trace_.say("prefix seed {}: {}", shape_.seed, shape_.describe());
      const int stormy = chance_.between(1, 5);
      for (int run = 0; run < stormy; ++run) carry_out(draw_plan());
      carry_out(calm(1));
      inspection_.check_leftovers();
      carry_out(calm(0));
    } catch (const std::exception& broken) {
      outcome_.failure = fmt::format("run {}: {}", outcome_.runs, broken.what());
      trace_.say("failed: {}", outcome_.failure);
    }
    outcome_.trace_hash = trace_.hash();
    return outcome_;
  }

 private:
  // --- plans ---

  Plan draw_plan() {
    Plan plan;
    plan.datasets = chance_.between(0, 3);
    plan.finalize = !chance_.one_in(3);
    const auto ranks = static_cast<std::uint64_t>(shape_.ranks());
    if (!chance_.one_in(4)) plan.ends_after = 1 + chance_.of_any_size_below(900 * ranks);
    plan.power = chance_.one_in(3);
    if (chance_.one_in(4)) {
      plan.faults.from = chance_.of_any_size_below(300 * ranks);
      plan.faults.to = plan.faults.from + 1 + chance_.of_any_size_below(60);
      plan.faults.one_in = 1 + chance_.below(4);
    }
    if (chance_.one_in(3)) placement_ = draw_placement(shape_, placement_, chance_);
    draw_ways(plan);
    plan.settings.prefix_purge = bypass_ && ways_.one_in(12);
    plan.loses_nodes = plan.ends_after == 0 || chance_.one_in(2);
    if (of_flushes_.one_in(2)) {
      plan.ends_after = 0;
      plan.ends_in_flush = 1 + of_flushes_.of_any_size_below(60 * ranks);
      plan.loses_nodes = of_flushes_.one_in(3);
    }
    plan.async = async_.stormy(plan.settings, ranks);
    plan.datasets += plan.async.more_datasets;
    if (plan.async.damages_before > 0) plan.loses_nodes = false;
    async_.draw_faults(plan.faults, ranks);
    if (kind_ == Kind::trouble) draw_trouble(plan);
    if (kind_ == Kind::flushes && of_restarts_.one_in(3)) draw_faults_of_restart(plan);
    return plan;
  }

  void draw_faults_of_restart(Plan& plan) {
    const auto ranks = static_cast<std::uint64_t>(shape_.ranks());
    FaultPlan& faults = plan.faults_of_restart.emplace();
    faults.from = of_restarts_.of_any_size_below(20 * ranks);
    faults.to = faults.from + 1 + of_restarts_.of_any_size_below(30 * ranks);
    faults.one_in = 1 + of_restarts_.below(4);
    plan.faults = {};
    plan.loses_nodes = true;
    if (of_restarts_.one_in(3)) plan.settings.on_fetch_fail = OnFetchFail::fresh;
  }

  void draw_trouble(Plan& plan) {
    constexpr int newest_of = 4;
    static const std::vector<PrefixCall::Kind> kinds = {
        PrefixCall::Kind::current, PrefixCall::Kind::drop, PrefixCall::Kind::remove};
    if (of_trouble_.one_in(3)) plan.damages = of_trouble_.between(1, 3);
    plan.dies_in_restart = of_trouble_.one_in(4);
    if (of_trouble_.one_in(2)) return;
    for (int before = 0; before <= plan.datasets; ++before) {
      const int newest = books_.count() + before;
      if (newest == 0 || of_trouble_.one_in(2)) continue;
      plan.calls.push_back({of_trouble_.pick(kinds),
                            of_trouble_.between(std::max(1, newest - newest_of + 1), newest),
                            before});
    }
  }

  Plan calm(int datasets) {
    Plan plan;
    plan.datasets = datasets;
    draw_ways(plan);
    plan.async = async_.calm(plan.settings);
    return plan;
  }

  /// Whether the run bypasses the cache, and when.
  void draw_ways(Plan& plan) {
    plan.settings = shape_.settings;
    // Another job takes over from one that has ended, or is silent.
    if (several_jobs_ && of_owners_.one_in(2)) plan.settings.job_id = "another";
    if (shape_.settings.flush_interval > 1)
      plan.settings.flush_on_restart = of_intervals_.one_in(4);
    if (!bypass_) return;
    Settings& settings = plan.settings;
    const int for_all = ways_.between(0, 3);
    for (CheckpointSettings& level : settings.checkpoints)
      level.bypass = for_all > 1 || (for_all == 1 && ways_.one_in(2));
    settings.global_restart = ways_.one_in(4);
    settings.fetch_bypass = settings.global_restart || ways_.one_in(4);
    settings.flush_on_restart = settings.global_restart || ways_.one_in(4);
  }

  static bool shares_a_file(const Plan& plan) {
    const auto& levels = plan.settings.checkpoints;
    return std::all_of(levels.begin(), levels.end(),
                       [](const auto& level) { return level.bypass; });
  }

  // --- a run ---

  void carry_out(const Plan& plan) {
    scheduler_.pass_time_us(pause_of_job_us);
    look_for_whole();
    drain(plan.async);
    if (plan.loses_nodes) lose_all_nodes();
    for (int i = 0; i < plan.damages; ++i) damage_something();
    ++outcome_.runs;
    trace_.say("run {}: {} datasets, ends after {}, power {}, faults {}..{}", outcome_.runs,
               plan.datasets, plan.ends_after, plan.power, plan.faults.from, plan.faults.to);
    if (plan.settings.prefix_purge) books_.purge_begins();
    books_.begin_run({plan.async.is_on, async_.is_on() && !bypass_ && plan.settings.keep_old,
                      plan.settings.job_id, placement_});
    Postboxes boxes(shape_.ranks(), seam_, chance_.fork());
    Postboxes behind(shape_.ranks(), seam_, async_.of_behind(), Postboxes::Owner::helper);
    std::deque<HelperBackground> helpers;
    for (int rank = 0; rank < shape_.ranks(); ++rank)
      helpers.emplace_back(scheduler_, rank, plan.async.stepping);
    seam_.begin(shape_.ranks());
    faults_.begin(plan.faults);
    for (int i = 0; i < plan.async.damages_before; ++i) damage_in_caches();
    watch_.begin_run();
    losses_.begin_run(placement_);
    verdicts_.clear();
    asked_.clear();
    said_.clear();
    for (int rank = 0; rank < shape_.ranks(); ++rank) written_[rank] = books_.count();
    ended_ = false;
    planned_.clear();
    ready_ = 0;
    finalized_ = 0;
    if (plan.ends_after > 0) seam_.after(plan.ends_after, [&] { end(plan); });
    run_ranks(scheduler_, helpers, [&](int rank) {
      be_rank(plan, boxes, behind, rank, helpers[static_cast<std::size_t>(rank)]);
    });
    watch_.look();
    outcome_.calls += seam_.calls();
    outcome_.crashes += ended_ ? 1 : 0;
    outcome_.in_flight += ended_ && plan.async.is_on && inspection_.has_plan() ? 1 : 0;
    books_.end_run();
  }

  void lose_all_nodes() {
    trace_.say("all nodes are lost");
    losses_.note_damage([this] { cluster_.wipe(); });
    watch_.forget_caches();
    books_.nodes_lost();
  }

  /// What does not need the caches any more is to be there from now on.
  void look_for_whole() {
    if (!async_.is_on()) return;
    inspection_.check_published_once();
    for (const int key : inspection_.find_whole())
      if (books_.found_whole(key)) {
        ++outcome_.found_whole;
        trace_.say("d{} needs the caches no more", key);
      }
  }

  void drain(const AsyncPlan& plan) {
    const DrainWorld world{cluster_, prefix_, scheduler_, seam_, watch_, trace_};
    std::vector<Settings> jobs = {shape_.settings};
    if (several_jobs_) jobs.emplace_back(shape_.settings).job_id = "another";
    for (int i = 0; i < plan.drains; ++i) {
      drain_nodes(
          world, jobs,
          {async_.draw_nodes_to_drain(shape_.nodes), i == 0 ? plan.first_drain_ends_after : 0},
          async_.drains());
      look_for_whole();
    }
  }

  void damage_something() {
    std::vector<std::string> files = prefix_->files_below();
    std::erase_if(files, [](const std::string& path) { return key_of_file(path) == 0; });
    if (files.empty()) return;
    const std::string& path = of_trouble_.pick(files);
    std::string what = "removed";
    if (of_trouble_.one_in(6))
      prefix_->lose(path);
    else
      what = damage(*prefix_->find(path), of_trouble_);
    trace_.say("damage to {}: {}", path, what);
    books_.damaged(key_of_file(path));
  }

  /// In the caches, of a dataset that is complete.
  void damage_in_caches() {
    const auto may_be = [this](int key) {
      return books_.is_completed(key) && !async_.may_be_exposed(key, books_.count());
    };
    const std::string what = losses_.damage_file(may_be, async_.chance());
    if (what.empty()) return;
    trace_.say("damage in the caches: {}", what);
    faults_.note();
    books_.cache_damaged();
  }

  void end(const Plan& plan) {
    if (!plan.async.one_dies_first || std::exchange(ended_, true)) return end_all(plan.power);
    end_one(plan.async.its_node_is_lost);
    seam_.after(plan.async.others_live_for, [&] { end_all(plan.power); });
  }

  void end_one(bool its_node_is_lost) {
    const auto ranks = static_cast<std::uint64_t>(shape_.ranks());
    const auto first = static_cast<std::size_t>(async_.chance().below(ranks));
    const std::string& node = placement_[first];
    trace_.say("the process of rank {} ends{}", first,
               its_node_is_lost ? ", its node is lost" : "");
    scheduler_.end(static_cast<int>(first));
    if (!its_node_is_lost) return;
    for (std::size_t rank = 0; rank < placement_.size(); ++rank)
      if (placement_[rank] == node) scheduler_.end(static_cast<int>(rank));
    const auto wipe = [&] {
      for (const Place& place : cluster_.places())
        if (place.node == node) place.volume->wipe();
    };
    watch_.lose_node([&] { losses_.note_damage(wipe); });
    books_.node_lost();
  }

  void end_all(bool power) {
    ended_ = true;
    trace_.say("all processes end");
    scheduler_.end_all();
    if (!power) return;
    books_.power_fails();
    const auto fail = [this] {
      for (const Place& place : cluster_.places()) place.volume->power_failure(chance_);
      prefix_->power_failure(chance_);
    };
    watch_.fail_power([&] { losses_.note_damage(fail); });
  }

  void be_rank(const Plan& plan, Postboxes& boxes, Postboxes& behind, int rank,
               HelperBackground& background) {
    Settings settings = plan.settings;
    settings.node_name = placement_[static_cast<std::size_t>(rank)];
    Mounts mounts = cluster_.mounts_of(settings.node_name);
    mounts[settings.prefix] = prefix_;
    RankProcess process({seam_,
                         chance_,
                         boxes,
                         background,
                         rank,
                         std::move(settings),
                         std::move(mounts),
                         [&](const FileOperation& operation) { return observe(plan, operation); },
                         {},
                         &behind,
                         [this, rank](const std::string& text) {
                           if (rank == 0) said_ += text + "\n";
                         }});
    const Status begun = process.init();
    verdicts_.compare("Init", begun ? "ok" : begun.error().text);
    // It must tell that it could not purge.
    if (!begun && plan.settings.prefix_purge && faults_.count() > 0) return background.finish();
    if (!begun) throw Violation(fmt::format("(g) Init fails: {}", begun.error().text));
    if (++ready_ == shape_.ranks() && async_.is_on() && faults_.count() == 0)
      inspection_.check_staged(planned_, "Init");
    Restart found = Restart::rejected;
    while (found == Restart::rejected) found = restart(plan, process);
    if (found == Restart::refused) return background.finish();
    for (int i = 0; i < plan.datasets; ++i) {
      call_by_name(plan, i, *process.session);
      write(plan, process);
      if (plan.async.computes_us > 0) process.clock.sleep_us(plan.async.computes_us);
    }
    call_by_name(plan, plan.datasets, *process.session);
    if (plan.finalize) finalize(*process.session, plan.settings.flush_at_end);
    background.finish();  // what it does uses the files of the process
  }

  Status observe(const Plan& plan, const FileOperation& operation) {
    watch_.see(operation);
    if (completes_plan(operation)) note_plan(plan, operation);
    const std::string& prefix = plan.settings.prefix;
    const bool may_fail = operation.path.starts_with(prefix + "/.cairn") ||
                          operation.path.find("/.cairn.") != std::string_view::npos ||
                          (bypass_ && operation.path.starts_with(prefix));
    return may_fail ? faults_.at(operation) : Status{};
  }

  void note_plan(const Plan& plan, const FileOperation& operation) {
    const bool is_first = planned_.empty();
    const std::string folder(operation.to.substr(0, operation.to.rfind('/')));
    planned_.insert(parse_uuid(folder.substr(folder.rfind('.') + 1)).value_or(Uuid{}));
    if (!is_first) return;
    if (plan.ends_in_flush > 0) seam_.after(plan.ends_in_flush, [&] { end(plan); });
    for (const std::uint64_t calls : plan.async.damages)
      seam_.after(calls, [this] { damage_in_caches(); });
  }

  void finalize(Session& session, FlushAtEnd at_end) {
    const Status ended = session.finalize();
    verdicts_.compare("Finalize", ended ? "ok" : "failed");
    check_losses("Finalize", ended);
    if (!ended || faults_.count() > 0 || at_end == FlushAtEnd::leave) return;
    books_.finalized();
    if (++finalized_ == shape_.ranks() && async_.is_on()) inspection_.check_staged({}, "Finalize");
  }

  // --- restart ---

  enum class Restart {
    ended,
    rejected,  ///< a call has failed, so that another checkpoint is wanted
    refused,   ///< whether there is one could not be known: the program ends
  };

  Restart restart(const Plan& plan, RankProcess& process) {
    Session& session = *process.session;
    const int rank = process.env.rank;
    if (rank == 0 && asked_[rank] == 0 && plan.faults_of_restart)
      faults_.begin(*plan.faults_of_restart);
    const auto offer = session.have_restart();
    const std::string step = fmt::format("Have_restart {}", ++asked_[rank]);
    verdicts_.compare(step, offer ? offer->value_or("nothing") : offer.error().text);
    if (!offer && faults_.count() > 0) return Restart::refused;
    if (!offer) throw Violation(fmt::format("(b) Have_restart fails: {}", offer.error().text));
    const int key = *offer ? std::stoi((*offer)->substr(1)) : 0;
    const std::string wrong = books_.wrong_offer(key, faults_.count() > 0);
    if (!wrong.empty()) throw Violation(wrong);
    // Rank 0 tells what concerns all.
    const std::string silent = rank == 0 ? books_.silent_offer(key, said_) : "";
    if (!silent.empty()) throw Violation(silent);
    if (key == 0) return Restart::ended;
    books_.restart_begins(key);
    if (const auto opened = session.start_restart(); !opened) {
      if (losses_.is_damaged(key)) return Restart::rejected;
      throw Violation(fmt::format("(b) d{} is refused: {}", key, opened.error().text));
    }
    if (plan.dies_in_restart && rank == 0) die_in_restart(plan, key);
    const bool found = read_back(process, key);
    books_.restart_ends(key);
    const Status completed = session.complete_restart(found);
    verdicts_.compare(fmt::format("Complete_restart of d{}", key), completed ? "ok" : "failed");
    if (completed && rank == 0) {
      ++outcome_.restarts;
      if (faults_.count() == 0) books_.restart_ended(key);
    }
    if (completed) books_.goes_on_from(key, faults_.count() == 0, plan.settings.flush_on_restart);
    if (!completed) books_.doubt(key);  // the program has rejected it
    return completed ? Restart::ended : Restart::rejected;
  }

  /// Rank 0 has counted it.
  void die_in_restart(const Plan& plan, int key) {
    if (faults_.count() == 0) books_.restart_died(key);
    end_all(plan.power);
    seam_.pass("die", "");
  }

  bool read_back(RankProcess& process, int key) {
    const int rank = process.env.rank;
    bool found = true;
    for (const FileShape& file : files_.of_rank(key, rank)) {
      const auto path = process.session->route_file(file.name);
      found = found && path;
      if (!path && bypass_ && faults_.count() > 0) continue;
      if (!path) throw Violation(fmt::format("(a) d{}: {}", key, path.error().text));
      if (process.read(*path) != files_.content(key, rank, file))
        throw Violation(fmt::format("(a) d{}: wrong bytes in {}", key, *path));
    }
    return found;
  }

  // --- calls by name ---

  void call_by_name(const Plan& plan, int before, Session& session) {
    for (const PrefixCall& call : plan.calls) {
      if (call.before != before) continue;
      const std::string name = fmt::format("d{}", call.key);
      books_.call_begins(call);
      const bool kept = has_file_of(*prefix_, call.key);
      const Status done = make(call.kind, session, name);
      verdicts_.compare(fmt::format("call {} of {}", before, name),
                        done ? "ok" : done.error().text);
      if (!done && faults_.count() == 0)
        throw Violation(fmt::format("(g) {} is refused: {}", name, done.error().text));
      if (done && faults_.count() == 0)
        books_.call_returns(call, kept, has_file_of(cluster_, call.key));
    }
  }

  static Status make(PrefixCall::Kind kind, Session& session, const std::string& name) {
    switch (kind) {
      case PrefixCall::Kind::current:
        return session.datasets().current(name);
      case PrefixCall::Kind::drop:
        return session.datasets().drop(name);
      case PrefixCall::Kind::remove:
        return session.datasets().remove(name);
    }
    return {};
  }

  // --- writing ---

  void write(const Plan& plan, RankProcess& process) {
    Session& session = *process.session;
    const int rank = process.env.rank;
    const int key = begin(plan, rank);
    const std::string name = fmt::format("d{}", key);
    const std::uint32_t flags = books_.is_output(key) ? flag_output : flag_checkpoint;
    const std::uint64_t faults_before = faults_.count();
    const Status started = session.start_output(name, flags);
    verdicts_.compare("Start of " + name, started ? "ok" : started.error().text);
    if (!started && bypass_ && faults_.count() > 0) {
      books_.doubt(key);
      return;
    }
    if (!started) throw Violation(fmt::format("(g) Start fails: {}", started.error().text));
    bool written = true;
    for (const FileShape& file : files_.of_rank(key, rank))
      written = write_file(process, key, file).has_value() && written;
    const Status completed = session.complete_output(written);
    verdicts_.compare("Complete of " + name, completed ? "ok" : completed.error().text);
    check_losses("Complete of " + name, completed);
    const bool is_complete = completed || reports_only_other_losses(key, completed.error());
    if (is_complete && !books_.is_output(key)) losses_.checkpoint_completed(key);
    if (!is_complete && faults_.count() == 0)
      throw Violation(fmt::format("(g) Complete fails: {}", completed.error().text));
    // With faults it may be in the caches only.
    books_.completed(key, is_complete, completed && faults_.count() == 0 && faults_before == 0,
                     shares_a_file(plan));
  }

  /// (l): each loss that a call has returned.
  void check_losses(const std::string& call, const Status& status) {
    if (status || !losses_.is_first_to_return(call)) return;
    for (const int key : keys_of_lost(status.error().text)) {
      look_for_whole();
      const bool is_there = books_.is_complete(key) && inspection_.find_whole().contains(key);
      const std::string wrong = losses_.wrong_report(key, call, is_there);
      if (!wrong.empty()) throw Violation(fmt::format("{}: {}", wrong, status.error().text));
    }
  }

  /// The key of the dataset that this rank writes next; the first to come draws it.
  int begin(const Plan& plan, int rank) {
    int& written = written_[rank];
    if (++written > books_.count()) {
      books_.begin(written, chance_.one_in(5));
      if (shares_a_file(plan)) files_.share(written);
    }
    return written;
  }

  Status write_file(RankProcess& process, int key, const FileShape& file) {
    CAIRN_ASSIGN(const std::string path, process.session->route_file(file.name));
    const int rank = process.env.rank;
    if (ProgramFiles::is_shared(file) && rank != 0) return {};
    return process.write(path, file, files_.content(key, rank, file));
  }

  const Kind kind_;
  const bool bypass_;
  Chance ways_;  ///< of its own, so that seeds of one kind stay what they are
  Chance chance_;
  Chance of_flushes_;
  Chance of_owners_;
  Chance of_trouble_;
  Chance of_intervals_;
  Chance of_restarts_;
  AsyncPlanner async_;
  Trace trace_;
  JobShape shape_;
  Cluster cluster_;
  std::shared_ptr<Volume> prefix_;
  Scheduler scheduler_;
  Seam seam_;
  StateWatch watch_;
  Faults faults_;
  Nodes placement_;
  Verdicts verdicts_{trace_};
  std::string said_;  ///< by rank 0, in this run
  PrefixBooks books_;
  LossBooks losses_{cluster_};
  ProgramFiles files_{shape_};
  const PrefixInspection inspection_{shape_, prefix_, books_, files_};
  std::map<int, int> asked_;    ///< by rank: how often for a restart
  std::map<int, int> written_;  ///< by rank: the last key
  bool several_jobs_ = false;   ///< take turns
  bool ended_ = false;          ///< the present run, before its time
  std::set<Uuid> planned_;      ///< flushes of the present run
  int ready_ = 0;               ///< so many ranks have returned from Init
  int finalized_ = 0;           ///< the same of Finalize
  Outcome outcome_;
};

}  // namespace

Outcome simulate_prefix(std::uint64_t seed, bool print) {
  return PrefixJob(seed, print, PrefixJob::Kind::flushes).carry_out();
}

Outcome simulate_bypass(std::uint64_t seed, bool print) {
  return PrefixJob(seed, print, PrefixJob::Kind::bypass).carry_out();
}

Outcome simulate_trouble(std::uint64_t seed, bool print) {
  return PrefixJob(seed, print, PrefixJob::Kind::trouble).carry_out();
}

Outcome simulate_async(std::uint64_t seed, bool print) {
  using Kind = PrefixJob::Kind;
  Chance chance(seed ^ 0x38d01377U);
  const Kind other = chance.one_in(2) ? Kind::trouble : Kind::bypass;
  const Kind kind = chance.one_in(3) ? other : Kind::flushes;
  return PrefixJob(seed, print, kind, true).carry_out();
}

}  // namespace cairn::sim
