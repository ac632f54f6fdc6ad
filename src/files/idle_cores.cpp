#include "files/idle_cores.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

#include "base/blocked_signals.hpp"

namespace cairn {
namespace {

constexpr int lowest_priority = 19;
/// Of processor time.
constexpr std::int64_t piece_us = 4'000;
/// A thread that has slept is let in once, also where others want the core. What it takes there it
/// pays for by waiting some hundred times as long.
constexpr std::int64_t proof_us = 100;

std::int64_t processor_time_us() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::int64_t{spent.tv_sec} * 1'000'000 + spent.tv_nsec / 1'000;
}

/// The kernel says which core is idle by letting a thread of idle priority run. That thread only
/// answers, and holds nothing that another thread waits for without a limit.
class AskedThread final : public IdleCores {
 public:
  AskedThread() : shared_(std::make_shared<Shared>()), process_(::getpid()) {
    const BlockedSignals blocked;
    std::thread([shared = shared_] { answer(*shared); }).detach();
  }
  AskedThread(const AskedThread&) = delete;
  AskedThread& operator=(const AskedThread&) = delete;
  /// Does not wait for the thread: on a busy machine that would take long.
  ~AskedThread() override {
    shared_->is_over = true;
    shared_->questions.release();
  }

  void give_way(const std::function<bool()>& is_urgent) override {
    if (process_ != ::getpid() || processor_time_us() - piece_began_us_ < piece_us) return;
    take_slices(is_urgent() ? SCHED_OTHER : SCHED_BATCH);
    if (wait(is_urgent))
      run_on(shared_->idle_core);
    else
      give_back();
    piece_began_us_ = processor_time_us();
  }

  void give_back() override {
    take_slices(SCHED_OTHER);
    run_anywhere();
  }

 private:
  struct Shared {
    std::counting_semaphore<2> questions{0};  ///< one of them may be the end
    std::counting_semaphore<1> answers{0};
    std::atomic<int> idle_core = -1;  ///< of the last answer
    std::atomic<bool> is_over = false;
  };

  static void answer(Shared& shared) {
    use_idle_priority();
    while (true) {
      shared.questions.acquire();
      if (shared.is_over) return;
      for (const auto begin_us = processor_time_us(); processor_time_us() - begin_us < proof_us;)
        continue;
      shared.idle_core = ::sched_getcpu();
      shared.answers.release();
    }
  }

  /// With SCHED_BATCH a message that wakes up this thread does not interrupt the thread that runs.
  void take_slices(int policy) {
    const sched_param none{};
    if (std::exchange(policy_, policy) != policy) ::sched_setscheduler(0, policy, &none);
  }

  /// Else its cores were changed meanwhile, by the program, its user or the system: those count.
  bool is_where_it_was_put() const {
    cpu_set_t now;
    return allowed_ && ::sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &core_);
  }

  /// The kernel would spread the work of several ranks over all cores, those that compute too.
  void run_on(int core) {
    if (core < 0 || core >= CPU_SETSIZE) return;
    if (!is_where_it_was_put()) {
      allowed_.emplace();
      if (::sched_getaffinity(0, sizeof(cpu_set_t), &*allowed_) != 0) return allowed_.reset();
    }
    if (!CPU_ISSET(core, &*allowed_)) return run_anywhere();
    CPU_ZERO(&core_);
    CPU_SET(core, &core_);
    ::sched_setaffinity(0, sizeof(core_), &core_);
  }

  void run_anywhere() {
    if (is_where_it_was_put()) ::sched_setaffinity(0, sizeof(cpu_set_t), &*allowed_);
    allowed_.reset();
  }

  /// False if it became urgent.
  bool wait(const std::function<bool()>& is_urgent) {
    constexpr std::chrono::milliseconds look_every(1);
    // An answer may still be on its way, from when it became urgent.
    if (!std::exchange(is_asked_, true)) shared_->questions.release();
    while (!is_urgent())
      if (shared_->answers.try_acquire_for(look_every)) {
        is_asked_ = false;
        return true;
      }
    return false;
  }

  const std::shared_ptr<Shared> shared_;
  const pid_t process_;  ///< the thread does not exist in a child made by fork
  int policy_ = SCHED_OTHER;
  std::optional<cpu_set_t> allowed_;  ///< while it runs on one core
  cpu_set_t core_{};                  ///< that one
  bool is_asked_ = false;
  std::int64_t piece_began_us_ = 0;
};

}  // namespace

void use_idle_priority() {
  const sched_param none{};
  if (::sched_setscheduler(0, SCHED_IDLE, &none) != 0)  // of this thread
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), lowest_priority);
}

std::unique_ptr<IdleCores> make_idle_cores() {
  try {
    return std::make_unique<AskedThread>();
  } catch (const std::system_error&) {
    return nullptr;
  }
}

}  // namespace cairn
