// Who gets memory, and who writes what, next.
//
// Memory goes to those who wait for it first come first served, one chunk at a time. Files that
// have something to be written take turns. Whoever waits does some of the writing itself, so that
// all goes on without threads, and without memory of the system: what was taken is written.
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

/// Its mutex may be taken by one who holds a file's, never the other way round.
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

  /// None if all is in use.
  Memory memory_at_once();
  /// Waits. No lock may be held that is needed to write a chunk.
  Memory memory();

  /// The chunks that are being filled, oldest first: whoever needs memory may send them off.
  struct OpenChunk {
    std::shared_ptr<BufferedFile> file;
    std::uint64_t window = 0;
    std::atomic<std::uint64_t> bytes = 0;  ///< that were written to it
  };
  using OpenChunks = std::list<OpenChunk>;
  /// What memory that was got is used for; takes the only one of `chunk` over.
  OpenChunks::iterator opened(OpenChunks& chunk);
  void closed(OpenChunks::iterator chunk);

  using ReadyFiles = std::list<std::shared_ptr<BufferedFile>>;
  /// The file has something to be written.
  void ready(std::shared_ptr<BufferedFile> file);
  /// Whether the caller may write now; if so, done_writing() must follow.
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
  /// Chunks that will be free without anybody's doing.
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
