#include "rbio_job.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fiber_threads.hpp"
#include "files/hooked_files.hpp"
#include "memory_files.hpp"
#include "postboxes.hpp"
#include "rbio/series.hpp"
#include "shared_blobs.hpp"
#include "verdicts.hpp"

namespace cairn::sim {
namespace {

using rbio::Mode;
using rbio::Series;

const std::string directory = "/disk/series";
const std::string directory_in_volume = "/series";

/// What dies first. The launcher ends the other processes a few calls later.
enum class Victim : int { process, node, power };

/// Of a job in which one thing happens.
struct OneDeath {
  Mode mode = Mode::threaded;
  Victim victim = Victim::process;
  std::uint64_t call = 0;  ///< of all ranks together, at which it dies
};

/// What disturbs the file system in a run.
struct Disturbance {
  std::uint64_t fail_one_in = 0;  ///< operations; 0: none
  std::uint64_t hang_one_in = 0;
  std::int64_t hang_us = 0;
  bool has_no_threads = false;
};

/// Several runs that write one series, one after the other, on any number of ranks. Each writing of
/// a step has a version; the value of an element follows from the version and its place.
class RbioJob {
 public:
  RbioJob(std::uint64_t seed, bool print, std::optional<OneDeath> death = std::nullopt)
      : chance_(seed),
        trace_(print),
        scheduler_(chance_.fork()),
        seam_(scheduler_, trace_),
        elements_(chance_.one_in(6) ? 9000 : 40),
        death_(death) {}

  Outcome carry_out() {
    try {
      live();
    } catch (const std::exception& broken) {
      outcome_.failure = broken.what();
      trace_.say("{}", outcome_.failure);
    }
    outcome_.trace_hash = trace_.hash();
    return outcome_;
  }

 private:
  struct Writing {
    std::uint64_t step = 0;
    bool is_waited_for = false;
    std::vector<std::uint64_t> cuts;  ///< the elements of rank r are from cuts[r] to cuts[r + 1]
  };

  /// A file, and the nodes that have written to it since they synced it.
  struct Unsynced {
    explicit Unsynced(InodePtr inode) : file(std::move(inode)) {}
    InodePtr file;
    std::set<std::uint64_t> nodes;
  };

  void live() {
    const int stormy = death_ ? 1 : chance_.between(1, 3);
    if (death_) run(false);
    for (int i = 0; i < stormy; ++i) run(true);
    run(false);
    const std::vector<std::string> left = disk_->files_below(directory_in_volume + "/.rbio");
    if (left != std::vector<std::string>{"/series/.rbio/generation", "/series/.rbio/lock"})
      throw Violation(fmt::format("(h) left behind: {}", fmt::join(left, ", ")));
  }

  // --- what a run is ---

  void draw_run(bool is_stormy) {
    draw_shape();
    draw_disturbance(is_stormy);
    restored_cuts_ = draw_cuts(false);
    first_version_ = last_version_ + 1;
    writings_.clear();
    const int steps = death_ ? 2 : chance_.between(1, 4);
    for (int i = 0; i < steps; ++i) writings_.push_back(draw_writing(is_stormy));
    last_version_ += writings_.size();
    for (std::uint64_t i = 0; i < writings_.size(); ++i)
      step_of_version_[first_version_ + i] = writings_[i].step;
    computes_us_ = chance_.one_in(2) ? std::int64_t{1} << chance_.between(8, 21) : 0;
    looks_ = chance_.between(0, 4);
  }
  void draw_shape() {
    options_ = {};
    placement_.node_of_rank.clear();
    if (death_) {
      ranks_ = 4;
      placement_.node_of_rank = {1, 1, 2, 2};
      options_.mode = death_->mode;
      options_.group_size = chance_.one_in(2) ? 0 : 3;  // of one node, or of two
      options_.files = chance_.between(0, 1);
    } else {
      ranks_ = chance_.between(1, 6);
      const int nodes = chance_.between(1, ranks_);
      for (int rank = 0; rank < ranks_; ++rank)
        placement_.node_of_rank.push_back(static_cast<std::uint64_t>(chance_.between(1, nodes)));
      draw_options();
    }
    memory_ = chance_.one_in(2) ? std::make_shared<SharedBlobs>() : nullptr;
  }
  void draw_options() {
    options_.group_size = chance_.between(0, 3);
    options_.keep = chance_.below(3);
    options_.mode = chance_.pick(std::vector<Mode>{Mode::threaded, Mode::threaded, Mode::threaded,
                                                   Mode::split, Mode::sync, Mode::collective});
    if (chance_.one_in(2)) options_.pace = 0;
    const int groups = roles_of(0).groups;
    // In mode split, at least one rank has data.
    if (options_.mode == Mode::split && groups == ranks_) options_.mode = Mode::threaded;
    options_.files =
        options_.mode == Mode::collective ? chance_.between(0, 1) : chance_.between(0, groups);
    constexpr std::uint64_t bytes_of_element = 8, page = 4096;
    if (chance_.one_in(3))
      options_.memory_bytes = (elements_ * bytes_of_element + page) * (1 + chance_.below(3));
  }
  rbio::Roles roles_of(int rank) const {
    return *rbio::assign_roles(placement_.node_of_rank, options_.group_size, options_.files, rank);
  }
  void draw_disturbance(bool is_stormy) {
    disturbance_ = {};
    if (!is_stormy || death_) return;
    if (chance_.one_in(3)) disturbance_.fail_one_in = 50 + chance_.below(500);
    if (chance_.one_in(4)) {
      disturbance_.hang_one_in = 20 + chance_.below(200);
      options_.timeout_s = 0.02 * chance_.between(1, 10);
      disturbance_.hang_us = 10'000 << chance_.between(0, 5);
    }
    disturbance_.has_no_threads = chance_.one_in(40);
  }
  Writing draw_writing(bool is_stormy) {
    if (last_step_ == 0 || !chance_.one_in(4)) ++last_step_;
    Writing writing{last_step_, !is_stormy || chance_.one_in(2), draw_cuts(true)};
    return writing;
  }
  std::vector<std::uint64_t> draw_cuts(bool is_writing) {
    std::vector<int> with_data;
    for (int rank = 0; rank < ranks_; ++rank)
      if (!is_writing || options_.mode != Mode::split || !roles_of(rank).is_writer)
        with_data.push_back(rank);
    std::vector<std::uint64_t> ends;
    for (std::size_t i = 1; i < with_data.size(); ++i) ends.push_back(chance_.below(elements_ + 1));
    std::sort(ends.begin(), ends.end());
    ends.push_back(elements_);
    std::vector<std::uint64_t> cuts = {0};
    std::size_t next = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const bool has_data = next < with_data.size() && with_data[next] == rank;
      cuts.push_back(has_data ? ends[next++] : cuts.back());
    }
    return cuts;
  }
  bool may_fail() const {
    return faults_ > faults_before_run_ || disturbance_.hang_one_in > 0 ||
           disturbance_.has_no_threads;
  }

  // --- a run ---

  void run(bool is_stormy) {
    draw_run(is_stormy);
    Postboxes boxes(ranks_, seam_, chance_.fork());
    seam_.begin(ranks_);
    if (is_stormy) plan_events();
    verdicts_.clear();
    unsynced_.clear();
    faults_before_run_ = faults_;
    int finished = 0;
    trace_.say("run of {} ranks in mode {}", ranks_, static_cast<int>(options_.mode));
    try {
      scheduler_.run(ranks_, [&](int rank) { live_as(boxes, rank, finished); });
    } catch (const Deadlock& deadlock) {
      throw Violation(fmt::format("(f) {}", deadlock.what()));
    }
    ++outcome_.runs;
    outcome_.calls += seam_.calls();
    if (finished < ranks_) ++outcome_.crashes;
    if (finished == ranks_ && !may_fail() && boxes.undelivered() > 0)
      throw Violation("(f) messages were sent that no rank received");
  }
  void plan_events() {
    const auto ranks = static_cast<std::uint64_t>(ranks_);
    if (death_) return seam_.after(death_->call, [this] { die(death_->victim); });
    if (!chance_.one_in(4))
      seam_.after(chance_.below(400) * ranks,
                  [this] { die(static_cast<Victim>(chance_.between(0, 2))); });
    if (chance_.one_in(5)) seam_.after(chance_.below(300) * ranks, [this] { flip_bits(); });
  }
  void die(Victim victim) {
    constexpr int longest_agony_calls = 60;
    const int first = scheduler_.current();
    for (int rank = 0; rank < ranks_; ++rank)
      seam_.end_after(rank, chance_.between(0, longest_agony_calls));
    trace_.say("{} of rank {} dies",
               victim == Victim::process ? "the process"
               : victim == Victim::node  ? "the node"
                                         : "the power",
               first);
    scheduler_.end(first);
    if (victim == Victim::node) lose_node(node_of(first));
    if (victim != Victim::power) return;
    scheduler_.end_all();
    disk_->power_failure(chance_);
  }
  std::uint64_t node_of(int rank) const {
    return placement_.node_of_rank[static_cast<std::size_t>(rank)];
  }
  /// What its processes have written and not synced may be lost, unless another node has the same
  /// file open: the volume does not record which node wrote which byte.
  void lose_node(std::uint64_t node) {
    for (int rank = 0; rank < ranks_; ++rank)
      if (node_of(rank) == node) scheduler_.end(rank);
    for (const auto& [number, unsynced] : unsynced_)
      if (unsynced.nodes == std::set{node}) lose_unsynced(*unsynced.file, chance_);
  }
  /// In parts and markers.
  void flip_bits() {
    std::vector<std::string> paths = disk_->files_below(directory_in_volume);
    std::erase_if(paths, [](const std::string& path) {
      return path.find("/part.") == std::string::npos && path.find("/done.") == std::string::npos;
    });
    if (paths.empty()) return;
    const std::string& path = chance_.pick(paths);
    trace_.say("{}: {}", path, damage(*disk_->find(path), chance_));
    ++faults_;
    known_ = 0;
    unsure_up_to_ = last_version_;
  }

  Status observe(int rank, const FileOperation& operation) {
    if (std::uncaught_exceptions() > 0)
      return fail(Code::io, "{}: the process has ended", operation.path);
    seam_.pass(operation.name, operation.path, operation.to);
    if (disturbance_.hang_one_in > 0 && chance_.one_in(disturbance_.hang_one_in))
      scheduler_.sleep_us(disturbance_.hang_us);
    note_unsynced(rank, operation);
    if (disturbance_.fail_one_in == 0 || !chance_.one_in(disturbance_.fail_one_in)) return {};
    // What is asked about a path after an error is answered: two errors look like a missing right.
    if (std::exchange(failed_path_, operation.path) == operation.path) return {};
    ++faults_;
    return fail(Code::io, "{}: failed", operation.path);
  }
  void note_unsynced(int rank, const FileOperation& operation) {
    constexpr std::string_view mount = "/disk";
    if (!operation.path.starts_with(mount)) return;
    const auto file = disk_->find(operation.path.substr(mount.size()));
    if (!file || file->kind != Kind::file) return;
    if (operation.name == "write" || operation.name == "resize")
      unsynced_.try_emplace(file->number, file).first->second.nodes.insert(node_of(rank));
    else if (operation.name == "sync" && unsynced_.contains(file->number))
      unsynced_.at(file->number).nodes.erase(node_of(rank));
  }

  // --- the program on one rank ---

  void live_as(Postboxes& boxes, int rank, int& finished) {
    ScheduledCommunicator comm(boxes, rank);
    const auto memory_files =
        make_memory_files({{"/disk", disk_}}, [this] { return scheduler_.now_us() * 1000; });
    const std::shared_ptr<Files> files = make_hooked_files(
        *memory_files,
        [this, rank](const FileOperation& operation) { return observe(rank, operation); });
    const auto threads =
        std::make_shared<FiberThreads>(seam_, [this] { return !disturbance_.has_no_threads; });
    std::vector<std::uint64_t> data;
    auto series = Series::open(comm, {files, memory_, Log(), nullptr, threads}, placement_,
                               directory, options_);
    compare("open", series ? Status{} : Status(tl::unexpected(series.error())));
    if (series) use(comm, **series, data);
    ++finished;
    if (!threads->was_detached()) return;
    scheduler_.end(rank);  // it ends as main() returns, wherever its thread is
    scheduler_.throw_if_ended();
  }
  void use(Communicator& comm, Series& series, std::vector<std::uint64_t>& data) {
    const auto added = series.add_field({"x", rbio::ElementType::uint64, 1}, nullptr, 0);
    if (!added) throw Violation(added.error().text);
    restore(comm, series, data, first_version_);
    for (std::uint64_t i = 0; i < writings_.size(); ++i) write(comm, series, data, i);
    const Status closed = series.close(comm);
    compare("close", closed);
    if (closed && !may_fail()) note_known(last_version_);
  }

  static std::uint64_t value(std::uint64_t version, std::uint64_t element) {
    return version << 32 | element;
  }
  /// Makes room for the elements from `begin` to `end`.
  static void set_data(Series& series, std::vector<std::uint64_t>& data, std::uint64_t begin,
                       std::uint64_t end) {
    data.assign(end - begin, ~std::uint64_t{0});
    const Status set = series.set_field(0, reinterpret_cast<std::byte*>(data.data()), data.size());
    if (!set) throw Violation(set.error().text);
  }
  void note_known(std::uint64_t version) {
    if (version > unsure_up_to_) known_ = std::max(known_, version);
  }

  /// The newest step.
  void restore(Communicator& comm, Series& series, std::vector<std::uint64_t>& data,
               std::uint64_t versions_end) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    set_data(series, data, restored_cuts_[rank], restored_cuts_[rank + 1]);
    const auto step = series.restore(comm, std::nullopt);
    const bool is_first_run = !step && step.error().code == Code::not_found && known_ == 0;
    const bool is_all_damaged =
        !step && step.error().code == Code::corrupt && known_ == 0 && unsure_up_to_ > 0;
    if (is_first_run || is_all_damaged)
      verdicts_.compare("restore", "nothing");
    else
      compare("restore", step ? Status{} : Status(tl::unexpected(step.error())));
    if (!step) return;
    if (rank == 0) ++outcome_.restarts;
    for (std::size_t i = 0; i < data.size(); ++i)
      check_element(data[i], restored_cuts_[rank] + i, *step, versions_end);
  }
  void check_element(std::uint64_t found, std::uint64_t element, std::uint64_t step,
                     std::uint64_t versions_end) {
    const std::uint64_t version = found >> 32;
    verdicts_.compare("version", fmt::format("{}", version));
    if (found != value(version, element))
      throw Violation(fmt::format("(a) element {} is {:x}", element, found));
    if (version < known_ || version >= versions_end)
      throw Violation(fmt::format("(b) version {} is restored, {} was known", version, known_));
    if (step_of_version_[version] != step)
      throw Violation(fmt::format("(a) step {} has the data of version {}", step, version));
  }

  void write(Communicator& comm, Series& series, std::vector<std::uint64_t>& data,
             std::uint64_t number) {
    const Writing& writing = writings_[number];
    const std::uint64_t version = first_version_ + number;
    const auto rank = static_cast<std::size_t>(comm.rank());
    set_data(series, data, writing.cuts[rank], writing.cuts[rank + 1]);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(version, writing.cuts[rank] + i);
    const auto ticket = series.begin(comm, writing.step);
    compare(fmt::format("begin {}", version),
            ticket ? Status{} : Status(tl::unexpected(ticket.error())));
    std::fill(data.begin(), data.end(), 0);  // they may change as soon as begin() has returned
    const bool is_known_to_fail = !compute(series, ticket ? *ticket : 0);
    if (!ticket || !writing.is_waited_for) return;
    const Status written = series.wait(comm, *ticket);
    compare(fmt::format("wait {}", version), written);
    if (written && is_known_to_fail) throw Violation("(c) wait() returns no error, a rank has one");
    if (written) note_known(version);
  }
  /// The error of the step, as far as this rank knows meanwhile.
  Status compute(Series& series, rbio::Ticket ticket) {
    for (int look = 0; look < looks_; ++look) {
      if (computes_us_ > 0) scheduler_.sleep_us(computes_us_ / looks_);
      if (ticket == 0) continue;
      if (!series.is_finished(ticket)) throw Violation("(c) the ticket is unknown");
      CAIRN_TRY(series.failure_of(ticket));
    }
    return {};
  }

  /// All ranks come to the same; an error needs a cause.
  void compare(const std::string& call, const Status& status) {
    if (!status && !may_fail())
      throw Violation(fmt::format("(c) {}: {}", call, status.error().text));
    verdicts_.compare(call, status ? "ok" : status.error().text);
  }

  // All that outlives a run:
  Chance chance_;
  Trace trace_;
  Scheduler scheduler_;
  Seam seam_;
  const std::uint64_t elements_;  ///< of a step, on all ranks together
  const std::optional<OneDeath> death_;
  std::shared_ptr<Volume> disk_ = std::make_shared<Volume>(Volume::Medium::disk);
  std::uint64_t known_ = 0;         ///< the newest version that wait() has returned
  std::uint64_t unsure_up_to_ = 0;  ///< versions that may have been damaged
  std::uint64_t last_version_ = 0;
  std::uint64_t last_step_ = 0;
  std::map<std::uint64_t, std::uint64_t> step_of_version_;
  int faults_ = 0;
  Outcome outcome_;

  // Of this run:
  int ranks_ = 1;
  Placement placement_;
  rbio::SeriesOptions options_;
  std::shared_ptr<rbio::SharedMemory> memory_;
  std::vector<std::uint64_t> restored_cuts_;
  std::vector<Writing> writings_;
  std::uint64_t first_version_ = 1;
  Disturbance disturbance_;
  std::int64_t computes_us_ = 0;  ///< after each begin(), while it looks so many times
  int looks_ = 0;
  int faults_before_run_ = 0;
  std::string failed_path_;  ///< of the last error
  Verdicts verdicts_{trace_};
  std::map<std::uint64_t, Unsynced> unsynced_;  ///< by the number of the file
};

}  // namespace

Outcome simulate_rbio(std::uint64_t seed, bool print) { return RbioJob(seed, print).carry_out(); }

Outcome simulate_rbio_death(std::uint64_t seed, bool print) {
  constexpr Mode modes[] = {Mode::threaded, Mode::split, Mode::sync, Mode::collective};
  OneDeath death;
  death.mode = modes[seed % 4];
  death.victim = static_cast<Victim>(seed / 4 % 3);
  death.call = seed / 48;
  return RbioJob(seed / 12 % 4, print, death).carry_out();
}

}  // namespace cairn::sim
