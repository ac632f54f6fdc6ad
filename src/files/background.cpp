#include "files/background.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.hpp"
#include "files/idle_cores.hpp"

namespace cairn {
namespace {

// Starting a thread takes about as long as removing a few hundred KiB from memory.
constexpr std::uint64_t worth_a_thread = std::uint64_t{128} << 10;
constexpr int low_priority = 5;

void lower_priority() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), low_priority); }

/// A thread of idle priority may need long to notice that it is over where all cores are busy. So
/// only a step that is running is waited for: the thread ends by itself.
class RepeatingThread final : public Repeated {
 public:
  /// `step` returns how long to wait before the next one.
  RepeatingThread(std::int64_t first_pause_us, std::function<std::int64_t()> step)
      : shared_(std::make_shared<Shared>()), process_(::getpid()) {
    shared_->step = std::move(step);
    const BlockedSignals blocked;
    std::thread([shared = shared_, first_pause_us] { shared->work(first_pause_us); }).detach();
  }
  RepeatingThread(const RepeatingThread&) = delete;
  RepeatingThread& operator=(const RepeatingThread&) = delete;
  ~RepeatingThread() override {
    if (process_ != ::getpid()) return;  // the thread does not exist in a child made by fork
    std::unique_lock lock(shared_->mutex);
    shared_->is_over = true;
    shared_->changed.notify_all();
    shared_->changed.wait(lock, [this] { return !shared_->is_running; });
    shared_->step = nullptr;  // what it holds is gone with the owner
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::function<std::int64_t()> step;  ///< guarded by mutex while none is running, as the others
    bool is_running = false;
    bool is_over = false;

    void work(std::int64_t pause_us) {
      std::unique_lock lock(mutex);
      while (!changed.wait_for(lock, std::chrono::microseconds(pause_us),
                               [this] { return is_over; })) {
        is_running = true;
        lock.unlock();
        pause_us = step();
        lock.lock();
        is_running = false;
        if (is_over) changed.notify_all();
      }
    }
  };

  const std::shared_ptr<Shared> shared_;
  const pid_t process_;
};

/// Null if no thread can be started.
std::unique_ptr<Repeated> start_repeating(std::int64_t first_pause_us,
                                          std::function<std::int64_t()> step) {
  try {
    return std::make_unique<RepeatingThread>(first_pause_us, std::move(step));
  } catch (const std::system_error&) {
    return nullptr;
  }
}

/// Several threads that do the same work, including the owner's thread.
class Crew {
 public:
  explicit Crew(const std::function<void()>& work) : work_(work) {}

  /// Starts up to `others` threads; fewer if the system has no more.
  void hire(int others) {
    const BlockedSignals blocked;
    try {
      for (int i = 0; i < others; ++i) {
        others_.reserve(others_.size() + 1);
        others_.emplace_back([this] { work(); });
      }
    } catch (const std::system_error&) {
      return;
    }
  }

  void work() {
    try {
      work_();
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
    }
  }

  void wait() {
    for (std::thread& other : others_) other.join();
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const std::function<void()>& work_;
  std::vector<std::thread> others_;
  std::mutex mutex_;
  std::exception_ptr thrown_;  ///< guarded by mutex_ until all have ended
};

class BackgroundThread final : public Background {
 public:
  BackgroundThread() = default;
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  ~BackgroundThread() override {
    if (thread_.joinable() && process_ != ::getpid()) thread_.detach();
    wait();
  }

  void post(std::uint64_t bytes, std::function<void()> task) override {
    if (bytes < worth_a_thread && !thread_.joinable()) return task();
    {
      const std::scoped_lock lock(mutex_);
      tasks_.push_back(std::move(task));
      if (running_) return;
    }
    wait();  // joins the last thread, which has nothing left to do
    running_ = true;
    process_ = ::getpid();
    if (!start_thread()) work();
  }

  void wait() override {
    if (thread_.joinable()) thread_.join();
  }

  std::unique_ptr<Repeated> repeat(std::int64_t period_us, std::function<void()> task) override {
    return start_repeating(period_us, [period_us, task = std::move(task)] {
      task();
      return period_us;
    });
  }

  std::unique_ptr<Repeated> keep_stepping(std::function<std::int64_t()> step) override {
    return start_repeating(0, [step = std::move(step), is_lowered = false]() mutable {
      if (!std::exchange(is_lowered, true)) use_idle_priority();
      return step();
    });
  }

  std::unique_ptr<Repeated> keep_working(std::function<std::int64_t()> step) override {
    return start_repeating(0, std::move(step));
  }

  void in_parallel(int threads, const std::function<void()>& work) override {
    Crew crew(work);
    crew.hire(threads - 1);
    crew.work();
    crew.wait();
  }

 private:
  /// False if no thread can be started.
  bool start_thread() {
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this] {
        lower_priority();
        work();
      });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  void work() {
    while (true) {
      std::function<void()> task;
      {
        const std::scoped_lock lock(mutex_);
        running_ = !tasks_.empty();
        if (!running_) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;  ///< guarded by mutex_
  bool running_ = false;                     ///< guarded by mutex_ while there is a thread
  std::thread thread_;
  pid_t process_ = 0;
};

class Foreground final : public Background {
 public:
  void post(std::uint64_t, std::function<void()> task) override { task(); }
  void wait() override {}
  std::unique_ptr<Repeated> repeat(std::int64_t, std::function<void()>) override {
    return std::make_unique<Repeated>();
  }
  void in_parallel(int, const std::function<void()>& work) override { work(); }
};

}  // namespace

std::unique_ptr<Background> make_background_thread() {
  return std::make_unique<BackgroundThread>();
}
std::unique_ptr<Background> make_foreground() { return std::make_unique<Foreground>(); }

}  // namespace cairn
