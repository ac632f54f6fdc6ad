// The flushes of this process that the program does not wait for, and the thread that carries them
// on: the oldest first, one at a time.
#pragma once

#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "prefix/async_flush.hpp"
#include "transfer/urgent_help.hpp"

namespace cairn {

/// A dataset on its way to the prefix directory, as this process has it.
struct Flight {
  DatasetInfo dataset;
  std::unique_ptr<PartFlush> part;
  std::unique_ptr<OwnerFlush> owner;                   ///< on rank 0
  const std::atomic<std::uint64_t>* copied = nullptr;  ///< bytes, of all flights of this process
  /// How many of these were copied when it last began to copy its part.
  std::atomic<std::uint64_t> copied_before = std::numeric_limits<std::uint64_t>::max();
  std::atomic<std::uint64_t> most_copied_before = 0;  ///< the most of all tries before the last
  /// Of steady time: when it last began to copy its part, and when that was copied; 0: not yet.
  std::atomic<std::int64_t> copies_since_us = 0;
  std::atomic<std::int64_t> copied_at_us = 0;
  std::atomic<std::int64_t> rested_before_us = 0;  ///< Pace::rested_us() when that began
  /// Of steady time: from then on its copy is urgent.
  std::int64_t deadline_us = std::numeric_limits<std::int64_t>::max();
  bool is_taken = false;  ///< the queue's thread has taken a step for it; guarded by the queue

  /// Bytes of its part, and how many of them are copied. By any thread.
  std::uint64_t part_bytes() const { return part->record().data_bytes(); }
  std::uint64_t copied_bytes() const;
  /// The most that any try has copied. A try that repeats what an earlier one did adds nothing.
  std::uint64_t most_copied_bytes() const;
  /// It copies nothing now. What the next try copies is counted from zero.
  void end_try();
  /// At which its part is, or was, copied; 0 if that has not begun.
  double bytes_per_s(std::int64_t now_us) const;

  /// A try copies its part now.
  bool is_copying() const;
  bool is_over() const;
  /// Only a copy of data is missing, of this process or of another.
  bool waits_for_data() const;
  /// As PartFlush::advance(), of both. Without `copies_data` the part is left where it is planned.
  Result<bool> advance(bool copies_data = true);
};

/// All functions are local. The program's thread calls them; the queue's own one only steps.
class FlushQueue {
 public:
  /// What this process knows of a flight.
  enum class Fate {
    under_way,
    over,     ///< all is done that this process had to do
    damaged,  ///< at rest: a block of the cached files does not match its checksum
    refused,  ///< at rest: the prefix directory is not this run's any more
  };
  struct News {
    Fate fate = Fate::under_way;
    Status trouble;    ///< of the last try; it is tried again if the flight is under way
    int failures = 0;  ///< one after the other
  };

  /// All must outlive this. `pace`: of the thread; the queue sets its deadline.
  FlushQueue(Background& background, Clock& clock, Pace& pace)
      : background_(background), clock_(clock), pace_(pace), help_(background, clock, pace) {}
  FlushQueue(const FlushQueue&) = delete;
  FlushQueue& operator=(const FlushQueue&) = delete;

  /// By which the flights copy.
  Background& copying() { return help_; }
  bool empty() const { return size() == 0; }
  std::size_t size() const;
  void add(std::shared_ptr<Flight> flight);
  /// Of the first.
  News news() const;
  /// This process has seen that it is in the prefix directory. False if it is not in the queue.
  bool is_published(const Uuid& dataset) const;
  /// How many steps are done. While neither this nor the number of copied bytes grows, the prefix
  /// directory does not answer.
  std::uint64_t steps() const { return steps_; }
  /// The first, which is over, or at rest and given up.
  void remove_first();
  /// Takes it out, unless the thread has taken a step for it already. True if it is out.
  bool withdraw(const Uuid& dataset);
  /// Takes it out: rank 0 could withdraw it.
  void remove(const Uuid& dataset);
  /// Where the first was damaged: it is repaired.
  void resume();
  /// What has failed is tried again at once, and not when its time comes.
  void hurry();
  /// Oldest first.
  std::vector<std::shared_ptr<const Flight>> flights() const;
  /// Takes no further step, and ends the one that it takes now: a copy of data stops at its next
  /// block. False if that does not end within `us`, because a call of the file system hangs.
  bool stop(std::int64_t us);
  /// After stop(): goes on. Without `copies_data` it takes all other steps of any flight, and an
  /// error is left to others.
  void go_on(bool copies_data = true);
  /// Afterwards: no flight can move before data are copied, as far as this process sees.
  bool waits_for_data() const;
  /// Of each flight, oldest first: this process has seen that its plan is there, that it is
  /// published, and that all is done; and the error of its last try.
  struct Seen {
    DatasetInfo dataset;
    bool is_planned = false;
    bool is_published = false;
    bool is_over = false;
    Status trouble;
  };
  std::vector<Seen> seen() const;
  /// After stop() was successful. Takes none of them any further: these were there.
  std::vector<std::shared_ptr<Flight>> abandon();
  /// Takes a step itself where there is no thread for it.
  void help();

 private:
  struct Entry {
    std::shared_ptr<Flight> flight;
    News news;
    bool is_planned = false;  ///< as the thread has seen it, like the next two
    bool is_published = false;
    bool waits_for_data = false;
    int failures = 0;           ///< one after the other
    int damages = 0;            ///< those of them that found damage
    std::int64_t pause_us = 0;  ///< before the next step
    std::int64_t next_us = 0;   ///< of steady time: no step is taken before
  };

  class Step;

  std::int64_t step();
  bool is_taking_step() const;
  void end_threads();
  bool is_next(const Entry& entry, std::int64_t now_us) const;
  Entry* next_entry(std::int64_t now_us);
  Entry* find(const Flight& flight);
  void note(Entry& entry, const Result<bool>& moved, std::int64_t now_us);
  void set_deadline();

  Background& background_;
  Clock& clock_;
  Pace& pace_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  ///< guarded by mutex_, as the next three; flights are their thread's
  bool is_taking_step_ = false;
  bool is_stopped_ = false;
  bool copies_data_ = true;
  std::uint64_t stops_ = 0;  ///< how often it was stopped
  std::atomic<std::uint64_t> steps_ = 0;
  UrgentHelp help_;
  std::unique_ptr<Repeated> thread_;  ///< the last member: it ends before the others go
};

}  // namespace cairn
