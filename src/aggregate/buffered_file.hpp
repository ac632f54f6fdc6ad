// What was written to one file and is not in its backing file yet.
//
// The file is a row of windows of chunk_bytes. A window has at most one chunk that is being filled,
// and one that is being written; what is written meanwhile goes to another chunk, which waits until
// the first is done. A chunk that is full, or is needed elsewhere, or is waited for, is put into
// the file's queue, and can be written to until its turn comes.
//
// Two locks. `turn_` lets those who write or change the size in one by one; it may be held while
// waiting for memory or for the backing file. `mutex_` guards the state, and is never held then:
// those who carry out writes need it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "aggregate/backing_file.hpp"
#include "aggregate/backing_write.hpp"
#include "aggregate/chunk.hpp"
#include "aggregate/scheduler.hpp"

namespace cairn {

class BufferedFile : public std::enable_shared_from_this<BufferedFile> {
 public:
  BufferedFile(Scheduler& scheduler, std::unique_ptr<BackingFile> backing, std::uint64_t size);

  std::uint64_t size();
  int write(std::uint64_t offset, Bytes data);
  int append(Bytes data);
  ssize_t read(std::uint64_t offset, MutableBytes buffer);
  int resize(std::uint64_t bytes);
  std::uint64_t opened();
  int drain(std::uint64_t& told);
  int sync(std::uint64_t& told, bool data_only);
  void settle();
  int take_untold();
  bool has_failed();
  int change_backing(const std::function<int(BackingFile&)>& change);
  void abandon();
  /// Settles and lets go of the backing file; nothing may follow.
  void close();

  /// Writes what is first in the queue, if anything, in the thread of the caller.
  void write_some();
  /// Puts the chunk that is being filled into the queue.
  void send_off(std::uint64_t window);

 private:
  friend class Scheduler;
  using Lock = std::unique_lock<std::mutex>;
  struct Window {
    std::shared_ptr<Chunk> writing;  ///< the older one; nobody changes it
    std::shared_ptr<Chunk> filling;
  };
  using Windows = std::map<std::uint64_t, Window>;
  using Queue = Chunk::Queue;

  // Those that take the lock let go of it while they wait.

  int put(Lock& lock, std::uint64_t offset, Bytes data);
  void prepare(Range range);
  Chunk& chunk_for(Lock& lock, std::uint64_t window);
  Chunk& new_chunk(std::uint64_t window);
  std::vector<std::shared_ptr<const Chunk>> chunks_in(Range range) const;

  // The queue.
  void enqueue(std::uint64_t window);
  void enqueue_all();
  /// Tells the scheduler if there is something to be written.
  void announce();
  bool has_work() const;
  Queue::const_iterator next_in_queue() const;
  /// The first of them, the others behind it.
  std::shared_ptr<Chunk> take_run();
  bool follows(const Chunk& chunk, const Window& next) const;
  void write_run(Lock& lock);
  void finish(std::shared_ptr<Chunk> run, const WriteOutcome& outcome);
  void wait_written(Lock& lock, std::uint64_t number);
  std::uint64_t oldest_unwritten() const;

  // What changes the backing file otherwise.
  template <class Visit>
  auto visit_backing(Lock& lock, Visit visit);
  void begin_alone(Lock& lock);
  void end_alone();
  void drop_from(std::uint64_t offset);
  void drop(Windows::iterator window);
  void find_size();

  void note_error(int error);
  int tell(std::uint64_t& told);
  void wait(Lock& lock);
  /// Wakes who waits.
  void changed();

  Scheduler& scheduler_;
  Scheduler::ReadyFiles ready_{1};  ///< the scheduler's: its place among these, if it is not there
  const std::uint64_t chunk_bytes_;
  std::unique_ptr<BackingFile> backing_;

  std::mutex syncing_;  ///< before the others; held while waiting, needed by no write
  std::mutex turn_;
  std::mutex mutex_;  ///< guards all below
  Windows windows_;
  std::vector<Windows::node_type> blanks_;  ///< windows to be, each with a chunk
  Queue queue_;
  Queue under_way_;  ///< of the chunks that are being written
  std::uint64_t last_number_ = 0;
  std::uint64_t backing_size_ = 0;
  std::uint64_t size_ = 0;
  int visitors_ = 0;    ///< who reads or syncs the backing file
  bool alone_ = false;  ///< nothing that needs the backing file may begin
  std::condition_variable changed_;
  int waiting_ = 0;
  int error_ = 0;             ///< the last, as minus an errno
  std::uint64_t errors_ = 0;  ///< how many there were
  std::uint64_t told_ = 0;    ///< how many there were when somebody was told
};

/// A call that no resize() may run beside.
template <class Visit>
auto BufferedFile::visit_backing(Lock& lock, Visit visit) {
  while (alone_) wait(lock);
  ++visitors_;
  lock.unlock();
  const auto answer = visit();
  lock.lock();
  if (--visitors_ == 0) changed();
  return answer;
}

}  // namespace cairn
