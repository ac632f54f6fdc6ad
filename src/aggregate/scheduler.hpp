// Decides which writer gets memory next, and which file is written next.
//
// Waiting writers get memory first come, first served, one chunk at a time. Files that have
// something to write take turns. A waiting writer does some of the writing itself, so that it works
// without I/O threads and without further allocations: all data that were taken are written.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "aggregate/aggregator.hpp"
#include "aggregate/chunk_pool.hpp"

namespace cairn {

class BufferedFile;

/// Lock order: a file's mutex before this one's.
class Scheduler {
 public:
  explicit Scheduler(const AggregateOptions& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const AggregateOptions& options() const { return options_; }
  AggregateStatistics statistics() const;

  void add(std::shared_ptr<BufferedFile> file);
  void remove(const std::shared_ptr<BufferedFile>& file);
  std::vector<std::shared_ptr<BufferedFile>> files() const;

  /// One chunk of memory.
  class Memory {
   public:
    Memory() = default;
    Memory(Memory&&) = default;
    Memory& operator=(Memory&&) = default;
    std::byte* get() const { return bytes_.get(); }

   private:
    friend class Scheduler;
    struct GiveBack {
      Scheduler* to;
      void operator()(std::byte* chunk) const { to->give_back(chunk); }
    };
    Memory(Scheduler* from, std::byte* chunk) : bytes_(chunk, {from}) {}
    std::unique_ptr<std::byte, GiveBack> bytes_;
  };

  /// Empty if all is in use.
  Memory memory_at_once();
  /// Waits. The caller must not hold a lock that writing a chunk needs.
  Memory memory();

  /// The chunks that are being filled, oldest first. A thread that needs memory may enqueue them.
  struct OpenChunk {
    std::shared_ptr<BufferedFile> file;
    std::uint64_t window = 0;
    std::atomic<std::uint64_t> bytes = 0;  ///< that were written to it
  };
  using OpenChunks = std::list<OpenChunk>;
  /// Records what the memory is used for; moves the only element of `chunk` to the list.
  OpenChunks::iterator opened(OpenChunks& chunk);
  void closed(OpenChunks::iterator chunk);

  using ReadyFiles = std::list<std::shared_ptr<BufferedFile>>;
  /// Call when the file has something to write.
  void ready(std::shared_ptr<BufferedFile> file);
  /// True if the caller may write now; then done_writing() must follow.
  bool may_write();
  void done_writing();

  struct Counters {
    std::atomic<std::uint64_t> writes_in = 0, bytes_in = 0, writes_out = 0, bytes_out = 0;
    std::atomic<std::uint64_t> waits = 0, errors = 0;
  };
  Counters& counters() { return counters_; }

 private:
  struct Waiter {
    std::condition_variable woken;
    std::byte* memory = nullptr;
    bool asleep = false;
    Waiter* next = nullptr;
  };

  void give_back(std::byte* chunk);
  void send_off_fullest(std::unique_lock<std::mutex>& lock);
  void start_threads();
  void work();
  void write_for_next(std::unique_lock<std::mutex>& lock);
  void call_worker();
  void call_waiter();
  bool can_write() const { return !ready_.empty() && writing_ < writing_most_; }
  /// Chunks that are queued or being written: they become free without send_off().
  std::size_t coming() const { return pool_.used() - open_.size(); }

  const AggregateOptions options_;
  Counters counters_;

  mutable std::mutex mutex_;  ///< guards all below
  ChunkPool pool_;
  Waiter* first_waiter_ = nullptr;  ///< if there are any, all memory is in use
  Waiter* last_waiter_ = nullptr;   ///< if there are any
  std::size_t waiters_ = 0;
  OpenChunks open_;
  ReadyFiles ready_;
  std::set<std::shared_ptr<BufferedFile>> files_;
  std::size_t writing_ = 0;
  std::size_t writing_most_ = 0;
  std::condition_variable called_;
  std::size_t idle_ = 0;   ///< threads that sleep and were not called
  std::size_t calls_ = 0;  ///< not answered yet
  bool over_ = false;
  std::vector<std::thread> threads_;  ///< not guarded
};

}  // namespace cairn
