#include "wrapped_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "background.hpp"
#include "cluster.hpp"
#include "faults.hpp"
#include "files/hooked_files.hpp"
#include "rank_process.hpp"
#include "support/job_settings.hpp"
#include "verdicts.hpp"
#include "wrapped/wrapped_job.hpp"
#include "wrapped_plan.hpp"

namespace cairn::sim {
namespace {

enum class Death : int { none, process, job, node, power, storage };

/// What happens in a run.
struct WrappedWeather {
  Death death = Death::none;
  std::uint64_t death_calls = 0;
  FaultPlan faults;
};

class WrappedSimulation {
 public:
  WrappedSimulation(std::uint64_t seed, bool print)
      : chance_(seed ^ 0x243f6a88U),
        trace_(print),
        nodes_(chance_.between(2, 4)),
        ranks_(nodes_ * chance_.between(1, nodes_ > 2 ? 1 : 2)),
        cluster_(all_nodes(nodes_)),
        scheduler_(chance_.fork()),
        seam_(scheduler_, trace_),
        faults_(chance_.fork(), trace_),
        shape_(draw_program(ranks_, chance_, Chance(seed ^ 0x9e3779b9U))),
        books_(shape_.kind) {
    draw_settings(Chance(seed ^ 0x6a09e667U));
    for (int rank = 0; rank < ranks_; ++rank)
      placement_.push_back(fmt::format("n{}", rank % nodes_));
  }

  Outcome carry_out() {
    try {
      trace_.say("{} ranks on {} nodes, {} in {}, pace {}, names {}, shapes {}, {}, {}", ranks_,
                 nodes_, name_of(settings_.checkpoints[0].scheme), mount(),
                 static_cast<int>(shape_.kind.pace), static_cast<int>(shape_.naming),
                 shape_.kind.has_same_shapes ? "the same" : "differ",
                 shape_.kind.opens_once ? "opened once" : "opened again",
                 shape_.is_slow ? "slow" : "fast");
      if (settings_.flush) trace_.say("one of {} steps is copied", settings_.flush_interval);
      for (int stormy = chance_.between(1, 3); stormy > 0; --stormy) run(false);
      run(true);
      run(true);
    } catch (const std::exception& broken) {
      outcome_.failure = fmt::format("run {}: {}", outcome_.runs, broken.what());
      trace_.say("failed: {}", outcome_.failure);
    }
    outcome_.trace_hash = trace_.hash();
    return outcome_;
  }

 private:
  static std::vector<std::string> all_nodes(int used) {
    constexpr int spares = 2;
    std::vector<std::string> names;
    for (int i = 0; i < used + spares; ++i) names.push_back(fmt::format("n{}", i));
    return names;
  }
  const std::string& mount() const { return settings_.stores[0].path; }
  std::string redirected() const { return mount() + "/redirected"; }

  /// `of_flushes`: apart, so that the rest of a seed does not depend on it.
  void draw_settings(Chance of_flushes) {
    static const std::vector<Scheme> schemes = {Scheme::partner, Scheme::xor_, Scheme::rs,
                                                Scheme::xor_, Scheme::single};
    settings_ = settings_of_job(prefix_mount, memory_mount);
    CheckpointSettings& level = add_level(settings_, chance_.one_in(2) ? memory_mount : disk_mount);
    keep_two_checkpoints(settings_);
    level.scheme = chance_.pick(schemes);
    level.set_size = 8;
    level.interval = 1;
    level.group = "NODE";
    pause_us_ = std::int64_t{1} << chance_.between(10, 16);
    if (!of_flushes.one_in(4)) return;
    settings_.flush = true;
    settings_.fetch = true;
    settings_.flush_interval = of_flushes.between(1, 3);
    settings_.io_threads = of_flushes.between(1, 2);
    settings_.io_piece_bytes = std::uint64_t{1} << of_flushes.between(8, 14);
  }

  // --- a run ---

  void run(bool is_calm) {
    constexpr std::int64_t pause_between_runs_us = 60'000'000;
    scheduler_.pass_time_us(pause_between_runs_us);
    replace_lost_nodes();
    weather_ = is_calm ? WrappedWeather{} : draw_weather();
    is_calm_ = is_calm;
    ++outcome_.runs;
    trace_.say("run {} on {}", outcome_.runs, fmt::join(placement_, " "));
    books_.begin_run(outcome_.runs);
    verdicts_.clear();
    plan_.reset();
    finished_ = 0;
    counted_before_ = 0;
    Postboxes boxes(ranks_, seam_, chance_.fork());
    Gate gate(scheduler_, ranks_);
    std::deque<HelperBackground> helpers;
    for (int rank = 0; rank < ranks_; ++rank) helpers.emplace_back(scheduler_, rank);
    seam_.begin(ranks_);
    faults_.begin(weather_.faults);
    if (weather_.death != Death::none) seam_.after(weather_.death_calls, [this] { die(); });
    run_ranks(scheduler_, helpers, [&](int rank) {
      live_as(boxes, gate, helpers[static_cast<std::size_t>(rank)], rank);
      ++finished_;
    });
    outcome_.calls += seam_.calls();
    outcome_.crashes += finished_ == ranks_ ? 0 : 1;
  }

  WrappedWeather draw_weather() {
    WrappedWeather weather;
    const auto ranks = static_cast<std::uint64_t>(ranks_);
    if (!chance_.one_in(6)) {
      weather.death = static_cast<Death>(chance_.between(1, 5));
      weather.death_calls = 100 * ranks + chance_.of_any_size_below(12000 * ranks);
    }
    if (chance_.one_in(5)) {
      weather.faults.from = chance_.of_any_size_below(1500 * ranks);
      weather.faults.to = weather.faults.from + 1 + chance_.of_any_size_below(300);
      weather.faults.one_in = 1 + chance_.below(8);
    }
    return weather;
  }

  // --- deaths ---

  void die() {
    constexpr int longest_agony_calls = 60;
    const int victim = scheduler_.current();
    const std::string node = placement_[static_cast<std::size_t>(victim)];
    const bool at_once = weather_.death == Death::job || weather_.death == Death::power;
    const bool is_node = weather_.death == Death::node || weather_.death == Death::storage;
    trace_.say("death {} of rank {} on {}", static_cast<int>(weather_.death), victim, node);
    const bool is_short = at_once || chance_.one_in(2);
    for (int rank = 0; rank < ranks_; ++rank)
      seam_.end_after(rank, is_short ? 0 : chance_.between(0, longest_agony_calls));
    for (int rank = 0; rank < ranks_; ++rank)
      if (at_once || rank == victim ||
          (is_node && placement_[static_cast<std::size_t>(rank)] == node))
        scheduler_.end(rank);
    if (weather_.death == Death::node) lose_power(node);
    if (weather_.death == Death::storage) lose_storage(node);
    if (weather_.death == Death::power)
      for (const std::string& one : std::set(placement_.begin(), placement_.end())) lose_power(one);
  }
  bool is_tolerated() const { return settings_.checkpoints[0].scheme != Scheme::single; }
  void lose_power(const std::string& node) {
    for (const char* each : {memory_mount, disk_mount})
      cluster_.volume(node, each).power_failure(chance_);
    if (mount() == memory_mount) books_.lost(node, is_tolerated());
  }
  void lose_storage(const std::string& node) {
    for (const char* each : {memory_mount, disk_mount}) cluster_.volume(node, each).wipe();
    books_.lost(node, is_tolerated());
    lost_.push_back(node);
  }
  /// By spares, or they come back empty.
  void replace_lost_nodes() {
    for (const std::string& node : std::exchange(lost_, {})) {
      const auto all = all_nodes(nodes_);
      const auto spare = std::find_if(all.begin(), all.end(), [this](const std::string& one) {
        return std::find(placement_.begin(), placement_.end(), one) == placement_.end();
      });
      if (chance_.one_in(2)) std::replace(placement_.begin(), placement_.end(), node, *spare);
    }
  }

  // --- one rank ---

  /// A process of a rank.
  struct Process : RankProcess {
    Process(Environment of, const FileHook& observe_program)
        : RankProcess(std::move(of)),
          rank(env.rank),
          program(make_hooked_files(*memory, observe_program)) {}
    const int rank;
    std::unique_ptr<Files> program;  ///< what the program calls; succeeds
  };

  void live_as(Postboxes& boxes, Gate& gate, HelperBackground& background, int rank) {
    Settings settings = settings_;
    settings.node_name = placement_[static_cast<std::size_t>(rank)];
    Mounts mounts = cluster_.mounts_of(settings.node_name);
    Process process({seam_,
                     chance_,
                     boxes,
                     background,
                     rank,
                     std::move(settings),
                     std::move(mounts),
                     [this](const FileOperation& operation) {
                       const bool may_fail = !operation.path.starts_with(prefix_mount);
                       return may_fail ? faults_.at(operation) : Status{};
                     },
                     {[this](std::size_t wanted) { return faults_.moved(wanted); },
                      [this] { return faults_.interrupted(); }}},
                    [this](const FileOperation& operation) { return observe(operation); });
    const Status begun = process.init();
    verdicts_.compare("Init", begun ? "ok" : begun.error().text);
    if (!begun && !is_disturbed())
      throw Violation(fmt::format("(g) Init fails: {}", begun.error().text));
    if (begun) {
      WrappedJob job({*process.session, *process.files, process.log,
                      rank == 0 ? process.log : Log(), prefix_mount, redirected(),
                      [&](const std::string& name) { return move_to_plain_place(process, name); },
                      step_in_name});
      go_on(process.comm, *process.session, job, process, gate);
      background.wait();
      job.clean_up();
      check_end(job, process);
    }
    background.finish();
  }

  /// By the program.
  Status observe(const FileOperation& operation) {
    if (std::uncaught_exceptions() > 0)
      return fail(Code::io, "{}: the process has ended", operation.path);
    seam_.pass(operation.name, operation.path, operation.to);
    return {};
  }
  bool is_disturbed() const { return faults_.count() > 0; }

  void go_on(Communicator& comm, Session& session, WrappedJob& job, Process& process, Gate& gate) {
    const auto from = job.restore(comm);
    verdicts_.compare("restore", from ? from->value_or("nothing") : from.error().text);
    if (!from && !is_disturbed())
      throw Violation(fmt::format("(b) the restart fails: {}", from.error().text));
    if (!from) return;
    if (process.rank == 0 && *from) ++outcome_.restarts;
    if (*from && !has_numbers(shape_.naming)) counted_before_ = count_in(**from).value();
    books_.found(process.rank, ranks_, from->has_value(), find_files(process), is_disturbed());
    gate.wait();
    if (!plan_) draw_plan();
    WrappedProgram program({seam_, *process.program, job, books_, gate, *plan_, process.rank,
                            prefix_mount, redirected()},
                           chance_.fork());
    bool has_returned = false;
    scheduler_.start_thread([&] {
      program.carry_out();
      has_returned = true;
    });
    while (!job.round(comm)) {
      note_round(session, job, process.rank);
      scheduler_.sleep_us(job.is_step_under_way() ? pause_us_ / 4 : pause_us_);
    }
    note_round(session, job, process.rank);
    while (!has_returned) scheduler_.block();
    const Status ended = session.finalize();
    verdicts_.compare("Finalize", ended ? "ok" : ended.error().text);
  }

  void draw_plan() {
    std::vector<std::set<int>> there(static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto names = books_.names_of(rank);
      for (int file = 0; file < shape_.files[static_cast<std::size_t>(rank)]; ++file)
        if (names.contains(name_of_file(shape_.naming, file, books_.restored_index(), rank)))
          there[static_cast<std::size_t>(rank)].insert(file);
    }
    plan_ = draw_steps(shape_, books_.restored_index(), there, is_calm_, chance_);
    books_.plan(count_actions(*plan_), has_numbers(shape_.naming));
  }

  /// Ranks of one node have one directory.
  std::map<std::string, Blob> find_files(const Process& process) {
    std::map<std::string, Blob> found;
    Volume& volume = cluster_.volume(process.env.settings.node_name, mount());
    for (const std::string& path : volume.files_below("/redirected")) {
      const std::string name = path.substr(std::string("/redirected/").size());
      if (rank_in_name(name) == process.rank) found[name] = volume.find(path)->content;
    }
    return found;
  }
  /// Of this run, as the program counts.
  int index_of(std::int64_t step) const {
    return index_of_step(shape_.naming, step) - static_cast<int>(counted_before_);
  }
  void note_round(Session& session, WrappedJob& job, int rank) {
    std::set<int> checkpoints;
    for (const std::int64_t step : job.checkpoints()) checkpoints.insert(index_of(step));
    const auto certain = job.newest_certain();
    books_.note_round(rank, checkpoints,
                      certain ? std::optional(index_of(*certain)) : std::nullopt);
    if (certain && session.safety().of(job.name_of(*certain)) < Safety::written)
      throw Violation(fmt::format("(w) {} is certain, and was evicted", job.name_of(*certain)));
  }

  /// In one moment: no process opens a file that is being moved (a lease stops it).
  Status move_to_plain_place(const Process& process, const std::string& name) {
    constexpr std::uint32_t mode = 0700;
    constexpr std::uint64_t largest = 1 << 20;
    const std::string from = redirected() + "/" + name;
    const std::string to = prefix_mount + ("/" + name);
    seam_.pass("move", from);
    Files& files = *process.memory;
    const auto writer = files.find_writer(from);
    if (!writer && writer.error().code == Code::not_found) return {};
    CAIRN_TRY(writer.map([](Writer) {}));
    if (*writer != Writer::none) return fail(Code::busy, "{} is open", name);
    CAIRN_ASSIGN(const Blob bytes, read_file(files, from, largest));
    CAIRN_TRY(make_folders(files, folder_of(to), mode));
    CAIRN_TRY(write_file_atomically(files, to, bytes, true));
    return files.remove_file(from);
  }

  void check_end(WrappedJob& job, const Process& process) {
    if (!plan_ || job.is_step_under_way()) return;
    // A file that is opened again while its step becomes a dataset costs that step.
    if (shape_.is_slow && shape_.kind.opens_once && shape_.kind.pace == Pace::in_step &&
        !is_disturbed())
      books_.check_kept(process.rank, shape_.naming == Naming::two_names ? 1 : 2);
    Gate nobody(scheduler_, 1);
    const WrappedProgram reader({seam_, *process.memory, job, books_, nobody, *plan_, process.rank,
                                 prefix_mount, redirected()},
                                chance_.fork());
    for (const std::string& name : books_.names_of(process.rank))
      books_.check_end(process.rank, name, reader.read(name), reader.is_redirected(name));
  }

  // All that outlives a run:
  Chance chance_;
  Trace trace_;
  const int nodes_;
  const int ranks_;
  Cluster cluster_;
  Scheduler scheduler_;
  Seam seam_;
  Faults faults_;
  const ProgramShape shape_;
  WrappedBooks books_;
  Settings settings_;
  Nodes placement_;
  std::int64_t pause_us_ = 0;
  std::vector<std::string> lost_;  ///< nodes whose storage is gone
  Outcome outcome_;

  // Of this run:
  WrappedWeather weather_;
  bool is_calm_ = false;
  std::optional<ProgramPlan> plan_;
  Verdicts verdicts_{trace_};
  int finished_ = 0;
  std::int64_t counted_before_ = 0;  ///< steps of earlier runs
};

}  // namespace

Outcome simulate_wrapped(std::uint64_t seed, bool print) {
  return WrappedSimulation(seed, print).carry_out();
}

}  // namespace cairn::sim
