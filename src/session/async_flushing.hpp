// Copies datasets to the prefix directory while the program goes on.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "session/bounded_work.hpp"
#include "session/cached_datasets.hpp"
#include "session/flush_queue.hpp"
#include "session/prefix_side.hpp"

namespace cairn {

/// One that is copied, and one that waits: a program that makes more than the prefix directory
/// takes is slowed down, or has fewer checkpoints copied.
inline constexpr std::size_t most_in_flight = 2;
/// After so long without a byte or a step the prefix directory hangs.
inline constexpr std::int64_t longest_silence_us = 60'000'000;
/// While the run goes on, so long is an answer of the directory waited for.
inline constexpr std::int64_t longest_look_us = 5'000'000;

/// A copy that a run leaves unfinished when it ends.
struct LeftCopy {
  DatasetInfo dataset;
  bool is_planned = false;  ///< a drain can finish it
  Status trouble;           ///< of its last try
};

/// While a flight is under way the prefix directory's keeper belongs to the queue's thread: whoever
/// needs it has called wait_for_all() before. Functions with a communicator are collective.
class AsyncFlushing {
 public:
  /// All must outlive this.
  AsyncFlushing(ThisRun& run, CachedDatasets& cached, PrefixSide& prefix)
      : run_(run), cached_(cached), prefix_(prefix), queue_(run.background, run.clock, run.pace) {}

  bool is_idle() const { return queue_.empty(); }
  /// Nothing is to be begun any more in this run: the program has to wait for its copies.
  bool is_off() const { return is_off_; }
  /// Another can be begun without a wait.
  bool has_room() const { return queue_.size() < most_in_flight; }
  /// The dataset that is under way for the longest time. There is one.
  DatasetInfo first() const { return queue_.flights().front()->dataset; }
  /// A dataset that was begun later is under way.
  bool has_newer_than(const Uuid& dataset) const;
  /// Local: this process has seen that it is in the prefix directory, and it is under way still.
  bool is_published(const Uuid& dataset) const { return queue_.is_published(dataset); }
  /// That every rank sees what this run, the owner now, has made in the prefix directory. Agreed.
  Status see_epoch(Communicator& comm);
  /// Before the program itself uses the directory where it may hang. A thread of each rank looks
  /// there, and is waited for no longer than `longest_us`, or than another limit of the waits; not
  /// at all while an earlier one waits. Errors are agreed.
  Status wait_for_answer(Communicator& comm, std::int64_t longest_us);
  /// Local. Such a thread waits still.
  bool awaits_answer() const { return look_.goes_on(); }
  /// Local. The program has made one that is to be copied. By the time since the last one of its
  /// kind, checkpoints or outputs that are none, it is decided when a copy is late: by the longer
  /// one of the last two times, as a program may make two outputs in a row.
  void note_due(const DatasetInfo& dataset);

  /// Begins to copy it. Where the queue is full, a checkpoint in it that is not begun gives its
  /// place to a newer checkpoint or an output; else this waits for the first flight to end. If that
  /// gets nowhere: its error, and nothing is begun.
  Status start(Communicator& comm, CachedDataset& dataset);
  /// Takes in what has become of the flights. The error of the first, if that is in trouble. Where
  /// the flights are to be given up, and there is no time to wait for an answer of the directory,
  /// they stay for a later call.
  Status take_news(Communicator& comm);
  /// Until none is under way. If one gets nowhere: its error, and all are given up; but where the
  /// prefix directory hangs, or another one has its place, they stay, and the queue is not idle.
  Status wait_for_all(Communicator& comm);
  /// The run ends: no wait takes longer than this from now on. Local.
  void wait_no_longer_than(std::int64_t us) { last_us_ = run_.clock.steady_us() + us; }
  /// After that: where the time suffices for the newer of two checkpoints, but not for both, the
  /// newer one goes first, unless a file of it has the name of one of the older.
  void put_newer_first(Communicator& comm);
  /// While this lives, no wait takes longer than until `end_us` of steady time. Local.
  class Limited {
   public:
    Limited(AsyncFlushing& copies, std::int64_t end_us)
        : copies_(copies), last_us_(copies.last_us_), is_time_over_(copies.is_time_over_) {
      copies_.last_us_ = std::min(last_us_, end_us);
    }
    Limited(const Limited&) = delete;
    Limited& operator=(const Limited&) = delete;
    ~Limited() {
      copies_.last_us_ = last_us_;
      copies_.is_time_over_ = is_time_over_;
    }

   private:
    AsyncFlushing& copies_;
    const std::int64_t last_us_;
    const bool is_time_over_;
  };
  /// A wait has ended for that reason: its error says so, and nothing is given up.
  bool is_time_over() const { return is_time_over_; }
  /// The run ends: no more data are copied. What is published gets its names; of the others the
  /// plans are completed where that is possible at once, so that a drain can finish them. Oldest
  /// first. Afterwards nothing is under way, unless a call of the file system hangs.
  std::vector<LeftCopy> leave(Communicator& comm);
  /// Local. No step is taken from here on. False if a call of the file system hangs.
  bool stop();
  /// Until every rank has seen that it is there, or it is not under way any more: true. False if
  /// the time is over. After an error it goes on, unless it is given up.
  Result<bool> wait_until_published(Communicator& comm, const DatasetInfo& dataset);

 private:
  enum class Verdict { go_on, give_up, hangs, time_is_over };
  enum class GivenUp { yes, not_now, elsewhere };

  /// When the program makes what is to be copied.
  struct Rhythm {
    Uuid last;
    std::optional<std::int64_t> last_us;    ///< of steady time
    std::int64_t before_us = 0;             ///< the time between the last two
    std::int64_t interval_us = 60'000'000;  ///< as long as it is not known
  };

  /// How a wait goes. Of steady time.
  struct Watch {
    std::int64_t since_us = 0;
    std::int64_t moved_us = 0;        ///< when some rank has last copied a byte or taken a step
    std::int64_t further_us = 0;      ///< when one has last got further than any try before
    std::int64_t pause_us = 0;        ///< before the next look
    std::int64_t with_errors_us = 0;  ///< so long is waited while tries fail and get no further
    /// Since when the copies could not be given up, because a thread did not stop; 0: they could.
    std::int64_t hung_since_us = 0;
  };

  Status check_answer(Communicator& comm, std::int64_t longest_us);
  std::shared_ptr<Flight> prepare(Communicator& comm, const CachedDataset& dataset);
  void withdraw_superseded(Communicator& comm, const DatasetInfo& by);
  bool is_newer_better(Communicator& comm) const;
  Status wait_for_first(Communicator& comm, std::int64_t with_errors_us);
  Watch begin_watch(std::int64_t with_errors_us) const;
  void pause(Watch& watch, const Uuid& until_published);
  Verdict judge(Communicator& comm, Watch& watch, const Status& trouble);
  Status not_answering() const;
  bool see_progress(Communicator& comm, Watch& watch);
  bool is_under_way(const Uuid& dataset) const;
  void tell_of_waiting(Communicator& comm, std::int64_t since_us, const Status& trouble,
                       bool has_waited_before);
  std::int64_t unlogged_us(std::int64_t since_us) const;
  std::string why_slow(Communicator& comm, const Status& trouble, bool is_waited_for) const;
  void log_wait(const DatasetInfo& dataset, std::int64_t since_us);
  Result<bool> watch_first(Communicator& comm, Watch& watch);
  Result<bool> watch_until_published(Communicator& comm, const Uuid& dataset, Watch& watch);
  Status heal_first(Communicator& comm);
  void land_first();
  bool finish_without_copying(Communicator& comm);
  Status time_is_over();
  bool stop_all_ranks(Communicator& comm, std::int64_t longest_us);
  GivenUp give_up(Communicator& comm, Error& why, std::size_t most);
  void give_up_one(Communicator& comm, Flight& flight, const Error& why);
  Status clear_away(Communicator& comm, Flight& flight);

  ThisRun& run_;
  CachedDatasets& cached_;
  PrefixSide& prefix_;
  std::optional<Site> site_;               ///< of the flights: made anew where there is none
  std::atomic<std::uint64_t> copied_ = 0;  ///< bytes
  std::uint64_t seen_moves_ = 0;           ///< steps and copied bytes
  std::uint64_t seen_progress_ = 0;
  int seen_failures_ = 0;          ///< of the first flight
  std::array<Rhythm, 2> rhythms_;  ///< of outputs that are no checkpoints; of checkpoints
  std::int64_t last_us_ = std::numeric_limits<std::int64_t>::max();  ///< of steady time
  bool is_time_over_ = false;
  bool hangs_ = false;          ///< nothing has moved since that was found
  bool is_off_ = false;         ///< what was given up could not be removed
  std::int64_t told_us_ = 0;    ///< when a line last said that it waits
  std::int64_t waited_us_ = 0;  ///< in the waits since then that are over
  BoundedWork look_;            ///< at the prefix directory
  FlushQueue queue_;            ///< the last member: its thread uses the others
};

}  // namespace cairn
