#include "rbio/threads.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.hpp"

namespace cairn::rbio {
namespace {

constexpr int low_priority = 5;  // the program computes on the same cores

class SystemMonitor final : public Monitor {
 public:
  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }
  void wait_until(TimePoint limit) override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    if (limit == TimePoint::max())
      changed_.wait(lock);
    else
      changed_.wait_until(lock, limit);
    lock.release();
  }
  void notify_all() override { changed_.notify_all(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class SystemThread final : public StartedThread {
 public:
  explicit SystemThread(std::thread thread) : thread_(std::move(thread)) {}
  void join() override { thread_.join(); }
  void detach() override { thread_.detach(); }

 private:
  std::thread thread_;
};

class SystemThreads final : public Threads {
 public:
  TimePoint now() override { return std::chrono::steady_clock::now(); }
  std::unique_ptr<Monitor> make_monitor() override { return std::make_unique<SystemMonitor>(); }
  Result<std::unique_ptr<StartedThread>> start(std::function<void()> main) override {
    const BlockedSignals blocked;
    try {
      return std::make_unique<SystemThread>(std::thread([main = std::move(main)] {
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), low_priority);
        main();
      }));
    } catch (const std::system_error& error) {
      return fail(Code::io, "{}", error.what());
    }
  }
  void keep_until_exit(std::shared_ptr<void> kept) override {
    static std::mutex mutex;
    static auto& all = *new std::vector<std::shared_ptr<void>>;
    const std::scoped_lock lock(mutex);
    all.push_back(std::move(kept));
  }
};

}  // namespace

std::shared_ptr<Threads> make_system_threads() { return std::make_shared<SystemThreads>(); }

}  // namespace cairn::rbio
