// The data of one file that its backing file does not have yet.
//
// The file is a row of windows of chunk_bytes. A window has at most one chunk that is being filled
// and one that is being written to the backing file. Data that arrive during that write go to
// another chunk, which waits until the first is done. A chunk enters the file's queue when it is
// full, when its memory is needed, or when a caller waits for it. It takes more data until its own
// write begins.
//
// Two locks. `turn_` admits one call at a time that writes or changes the size; its holder may wait
// for memory or for the backing file. `mutex_` guards the state. No thread holds it while it waits,
// as completing a write needs it.
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
  int drain(std::uint64_t& seen);
  int sync(std::uint64_t& seen, bool data_only);
  void settle();
  int take_unreported_error();
  bool has_failed();
  int change_backing(const std::function<int(BackingFile&)>& change);
  void abandon();
  /// Settles, then closes the backing file. No call may follow.
  void close();

  /// Writes the first run of the queue, if there is one, in the caller's thread.
  void write_some();
  /// Puts the chunk that is being filled into the queue.
  void send_off(std::uint64_t window);

 private:
  friend class Scheduler;
  using Lock = std::unique_lock<std::mutex>;
  struct Window {
    std::shared_ptr<Chunk> writing;  ///< the older one; it does not change any more
    std::shared_ptr<Chunk> filling;
  };
  using Windows = std::map<std::uint64_t, Window>;
  using Queue = Chunk::Queue;

  // Functions with a Lock parameter release it while they wait.

  int put(Lock& lock, std::uint64_t offset, Bytes data);
  void prepare(Range range);
  Chunk& chunk_for(Lock& lock, std::uint64_t window);
  Chunk& new_chunk(std::uint64_t window);
  std::vector<std::shared_ptr<const Chunk>> chunks_in(Range range) const;

  // The queue.
  void enqueue(std::uint64_t window);
  void enqueue_all();
  /// Notifies the scheduler if the queue has something to write.
  void announce();
  bool has_work() const;
  Queue::const_iterator next_in_queue() const;
  /// Returns the first chunk; the others are linked behind it.
  std::shared_ptr<Chunk> take_run();
  bool follows(const Chunk& chunk, const Window& next) const;
  void write_run(Lock& lock);
  void finish(std::shared_ptr<Chunk> run, const WriteOutcome& outcome);
  void wait_written(Lock& lock, std::uint64_t number);
  std::uint64_t oldest_unwritten() const;

  // Other changes of the backing file.
  template <class Visit>
  auto visit_backing(Lock& lock, Visit visit);
  void begin_alone(Lock& lock);
  void end_alone();
  void drop_from(std::uint64_t offset);
  void drop(Windows::iterator window);
  void find_size();

  void note_error(int error);
  int report_error(std::uint64_t& seen);
  void wait(Lock& lock);
  /// Wakes waiting threads.
  void changed();

  Scheduler& scheduler_;
  Scheduler::ReadyFiles ready_{1};  ///< list node, while the file is not in the scheduler's list
  const std::uint64_t chunk_bytes_;
  std::unique_ptr<BackingFile> backing_;

  std::mutex syncing_;  ///< locked before the others; its holder may wait; no write needs it
  std::mutex turn_;
  std::mutex mutex_;  ///< guards all below
  Windows windows_;
  std::vector<Windows::node_type> blanks_;  ///< prepared windows, each with a chunk
  Queue queue_;
  Queue under_way_;  ///< of the chunks that are being written
  std::uint64_t last_number_ = 0;
  std::uint64_t backing_size_ = 0;
  std::uint64_t size_ = 0;
  int visitors_ = 0;    ///< calls that read or sync the backing file now
  bool alone_ = false;  ///< no other call may begin to use the backing file
  std::condition_variable changed_;
  int waiting_ = 0;
  int error_ = 0;               ///< the last, as minus an errno
  std::uint64_t errors_ = 0;    ///< how many there were
  std::uint64_t reported_ = 0;  ///< value of errors_ when a handle last received one
};

/// Runs a call on the backing file that must not overlap a resize().
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
