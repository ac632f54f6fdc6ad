// rbIO in the simulation: ranks run one at a time, in an order that a seed decides, and die between
// any two calls. In the modes that have no thread of their own, so that a seed decides everything.
// CAIRN_RBIO_SEEDS sets how many seeds are run, and CAIRN_RBIO_SEED runs a single one and prints
// it.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "files/hooked_files.hpp"
#include "memory_files.hpp"
#include "postboxes.hpp"
#include "rbio/series.hpp"

namespace cairn::sim {
namespace {

using rbio::Mode;
using rbio::Series;

const std::string directory = "/disk/series";

/// Memory that ranks share: as after a death in a job, those that map it still have it.
class SimulatedMemory final : public rbio::SharedMemory {
 public:
  Result<std::unique_ptr<rbio::Segment>> create(std::uint64_t bytes) override {
    const std::string name = fmt::format("memory {}", ++last_number_);
    auto content = std::make_shared<Blob>(bytes);
    contents_[name] = content;
    return std::make_unique<Mapped>(name, std::move(content));
  }
  Result<std::unique_ptr<rbio::Segment>> attach(const std::string& name,
                                                std::uint64_t bytes) override {
    auto content = contents_[name].lock();
    if (!content || content->size() != bytes) return fail(Code::io, "there is no {}", name);
    return std::make_unique<Mapped>(name, std::move(content));
  }

 private:
  class Mapped final : public rbio::Segment {
   public:
    Mapped(std::string name, std::shared_ptr<Blob> content)
        : name_(std::move(name)), content_(std::move(content)) {}
    MutableBytes bytes() override { return *content_; }
    const std::string& name() const override { return name_; }

   private:
    const std::string name_;
    const std::shared_ptr<Blob> content_;
  };

  std::map<std::string, std::weak_ptr<Blob>> contents_;
  int last_number_ = 0;
};

/// How much happened.
struct Counts {
  int runs = 0;
  int deaths = 0;
  int power_failures = 0;
  int faults = 0;
  int restored = 0;  ///< runs that began with a step
};

/// Several runs that write one series, one after the other, on any number of ranks. Each writing of
/// a step has a version; the value of an element follows from the version and its place.
class Job {
 public:
  Job(std::uint64_t seed, bool print)
      : chance_(seed),
        trace_(print),
        scheduler_(chance_.fork()),
        seam_(scheduler_, trace_),
        elements_(chance_.one_in(6) ? 9000 : 40) {}

  /// Throws what breaks a property.
  void live() {
    const int stormy = chance_.between(1, 3);
    for (int i = 0; i < stormy; ++i) run(true);
    run(false);
    const std::vector<std::string> left = disk_->files_below("/series/.rbio");
    if (left != std::vector<std::string>{"/series/.rbio/generation", "/series/.rbio/lock"})
      throw Violation(fmt::format("left behind: {}", fmt::join(left, ", ")));
  }
  std::uint64_t trace_hash() const { return trace_.hash(); }
  const Counts& counts() const { return counts_; }

 private:
  struct Writing {
    std::uint64_t step = 0;
    bool is_waited_for = false;
    std::vector<std::uint64_t> cuts;  ///< the elements of rank r are from cuts[r] to cuts[r + 1]
  };

  void draw_shape() {
    ranks_ = chance_.between(1, 6);
    placement_.node_of_rank.clear();
    const int nodes = chance_.between(1, ranks_);
    for (int rank = 0; rank < ranks_; ++rank)
      placement_.node_of_rank.push_back(static_cast<std::uint64_t>(chance_.between(1, nodes)));
    options_ = {};
    options_.mode = chance_.one_in(2) ? Mode::sync : Mode::collective;
    options_.group_size = chance_.between(0, 3);
    options_.keep = chance_.below(3);
    const int groups =
        rbio::assign_roles(placement_.node_of_rank, options_.group_size, 0, 0)->groups;
    options_.files =
        options_.mode == Mode::sync ? chance_.between(0, groups) : chance_.between(0, 1);
    memory_ = chance_.one_in(2) ? std::make_shared<SimulatedMemory>() : nullptr;
  }
  Writing draw_writing(bool is_stormy) {
    if (last_step_ == 0 || !chance_.one_in(4)) ++last_step_;
    Writing writing{last_step_, !is_stormy || chance_.one_in(2), draw_cuts()};
    return writing;
  }
  std::vector<std::uint64_t> draw_cuts() {
    std::vector<std::uint64_t> cuts = {0, elements_};
    for (int rank = 1; rank < ranks_; ++rank) cuts.push_back(chance_.below(elements_ + 1));
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }
  void draw_run(bool is_stormy) {
    draw_shape();
    fail_one_in_ = is_stormy && chance_.one_in(3) ? 50 + chance_.below(500) : 0;
    restored_cuts_ = draw_cuts();
    first_version_ = last_version_ + 1;
    writings_.clear();
    const int steps = chance_.between(1, 4);
    for (int i = 0; i < steps; ++i) writings_.push_back(draw_writing(is_stormy));
    last_version_ += writings_.size();
    for (std::uint64_t i = 0; i < writings_.size(); ++i)
      step_of_version_[first_version_ + i] = writings_[i].step;
  }

  void run(bool is_stormy) {
    draw_run(is_stormy);
    Postboxes boxes(ranks_, seam_, chance_.fork());
    seam_.begin(ranks_);
    if (is_stormy && !chance_.one_in(4))
      seam_.after(chance_.below(250) * static_cast<std::uint64_t>(ranks_), [this] { die(); });
    verdicts_.clear();
    faults_before_run_ = counts_.faults;
    int finished = 0;
    trace_.say("run of {} ranks", ranks_);
    scheduler_.run(ranks_, [&](int rank) {
      live_as(boxes, rank);
      ++finished;
    });
    ++counts_.runs;
    if (finished < ranks_) ++counts_.deaths;
    if (finished == ranks_ && boxes.undelivered() > 0)
      throw Violation("messages were sent that nobody received");
  }

  /// The rank that runs dies, and the launcher ends the others; or the power of all nodes fails.
  void die() {
    constexpr int longest_agony_calls = 60;
    const bool is_power_failure = chance_.one_in(3);
    trace_.say("{}", is_power_failure ? "power failure" : "death of a process");
    for (int rank = 0; rank < ranks_; ++rank)
      seam_.end_after(rank, chance_.between(0, longest_agony_calls));
    scheduler_.end(scheduler_.current());
    if (!is_power_failure) return;
    scheduler_.end_all();
    disk_->power_failure(chance_);
    ++counts_.power_failures;
  }

  Status observe(const FileOperation& operation) {
    if (std::uncaught_exceptions() > 0)
      return fail(Code::io, "{}: the process has ended", operation.path);
    seam_.pass(operation.name, operation.path, operation.to);
    if (fail_one_in_ == 0 || !chance_.one_in(fail_one_in_)) return {};
    ++counts_.faults;
    return fail(Code::io, "{}: failed", operation.path);
  }

  void live_as(Postboxes& boxes, int rank) {
    ScheduledCommunicator comm(boxes, rank);
    const auto memory_files =
        make_memory_files({{"/disk", disk_}}, [this] { return scheduler_.now_us() * 1000; });
    const std::shared_ptr<Files> files = make_hooked_files(
        *memory_files, [this](const FileOperation& operation) { return observe(operation); });
    std::vector<std::uint64_t> data;
    auto series = Series::open(comm, {files, memory_, Log()}, placement_, directory, options_);
    compare("open", series ? Status{} : Status(tl::unexpected(series.error())));
    if (!series) return;
    const auto added = (*series)->add_field({"x", rbio::ElementType::uint64, 1}, nullptr, 0);
    if (!added) throw Violation(added.error().text);
    restore(comm, **series, data);
    for (std::uint64_t i = 0; i < writings_.size(); ++i) write(comm, **series, data, i);
    const Status closed = (*series)->close(comm);
    compare("close", closed);
    if (closed && counts_.faults == faults_before_run_) known_ = last_version_;
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

  /// The newest step: not older than what wait() has returned, and of one version.
  void restore(Communicator& comm, Series& series, std::vector<std::uint64_t>& data) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    set_data(series, data, restored_cuts_[rank], restored_cuts_[rank + 1]);
    const auto step = series.restore(comm, std::nullopt);
    const bool is_first_run = !step && step.error().code == Code::not_found && known_ == 0;
    if (is_first_run)
      compare_text("restore", "nothing yet");
    else
      compare("restore", step ? Status{} : Status(tl::unexpected(step.error())));
    if (!step) return;
    if (rank == 0) ++counts_.restored;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::uint64_t version = data[i] >> 32;
      compare_text("version", fmt::format("{}", version));
      if (data[i] != value(version, restored_cuts_[rank] + i))
        throw Violation(fmt::format("element {} is {:x}", restored_cuts_[rank] + i, data[i]));
      if (version < known_ || version >= first_version_)
        throw Violation(fmt::format("version {} is restored, {} was known", version, known_));
      if (step_of_version_[version] != *step)
        throw Violation(fmt::format("step {} has the data of version {}", *step, version));
    }
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
    if (!ticket || !writing.is_waited_for) return;
    const Status written = series.wait(comm, *ticket);
    compare(fmt::format("wait {}", version), written);
    if (written) known_ = std::max(known_, version);
  }

  /// All ranks come to the same; an error needs a cause.
  void compare(const std::string& call, const Status& status) {
    if (!status && counts_.faults == faults_before_run_)
      throw Violation(fmt::format("{}: {}", call, status.error().text));
    compare_text(call, status ? "ok" : status.error().text);
  }
  void compare_text(const std::string& call, const std::string& text) {
    const auto [first, is_first] = verdicts_.emplace(call, text);
    if (first->second != text)
      throw Violation(
          fmt::format("{}: one rank has '{}', another '{}'", call, first->second, text));
    if (is_first) trace_.say("{}: {}", call, text);
  }

  // All that outlives a run:
  Chance chance_;
  Trace trace_;
  Scheduler scheduler_;
  Seam seam_;
  const std::uint64_t elements_;  ///< of a step, on all ranks together
  std::shared_ptr<Volume> disk_ = std::make_shared<Volume>(Volume::Medium::disk);
  std::uint64_t known_ = 0;  ///< the newest version that wait() has returned
  std::uint64_t last_version_ = 0;
  std::uint64_t last_step_ = 0;
  std::map<std::uint64_t, std::uint64_t> step_of_version_;
  Counts counts_;

  // Of this run:
  int ranks_ = 1;
  Placement placement_;
  rbio::SeriesOptions options_;
  std::shared_ptr<rbio::SharedMemory> memory_;
  std::vector<std::uint64_t> restored_cuts_;
  std::vector<Writing> writings_;
  std::uint64_t first_version_ = 1;
  std::uint64_t fail_one_in_ = 0;  ///< operations on files; 0: none
  int faults_before_run_ = 0;
  std::map<std::string, std::string> verdicts_;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = ::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t trace_hash(std::uint64_t seed) {
  Job job(seed, false);
  job.live();
  return job.trace_hash();
}

TEST(RbioSimulation, SameSeedSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::uint64_t hash = trace_hash(seed);
    EXPECT_EQ(hash, trace_hash(seed)) << "seed " << seed;
    EXPECT_NE(hash, trace_hash(seed + 1));
  }
}

TEST(RbioSimulation, StepsThatWaitReturnedSurviveAndAllRanksComeToTheSame) {
  const std::uint64_t only = number_from("CAIRN_RBIO_SEED", 0);
  const std::uint64_t last = only > 0 ? only : number_from("CAIRN_RBIO_SEEDS", 1000);
  Counts sum;
  for (std::uint64_t seed = only > 0 ? only : 1; seed <= last; ++seed) {
    Job job(seed, only > 0);
    try {
      job.live();
    } catch (const std::exception& broken) {
      FAIL() << "CAIRN_RBIO_SEED=" << seed << ": " << broken.what();
    }
    sum.runs += job.counts().runs;
    sum.deaths += job.counts().deaths;
    sum.power_failures += job.counts().power_failures;
    sum.faults += job.counts().faults;
    sum.restored += job.counts().restored;
  }
  if (only > 0) return;
  // A simulation in which nothing happens would hold for any code.
  const auto jobs = static_cast<int>(last);
  EXPECT_GT(sum.runs, 2 * jobs);
  EXPECT_GT(sum.deaths, jobs / 2);
  EXPECT_GT(sum.power_failures, jobs / 8);
  EXPECT_GT(sum.faults, jobs / 8);
  EXPECT_GT(sum.restored, jobs);
}

}  // namespace
}  // namespace cairn::sim
