// File systems that hang or are slow, for tests.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "files/hooked_files.hpp"

namespace cairn::rbio {

/// While it is closed, those who come wait.
class Barrage {
 public:
  void close() { set(false); }
  void open() { set(true); }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
    --waiting_;
  }
  bool is_reached() {
    const std::scoped_lock lock(mutex_);
    return waiting_ > 0;
  }
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  void set(bool is_open) {
    const std::scoped_lock lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool is_open_ = true;
};

/// Operations of this name hang while the barrage is closed. It and `inner` live as long as the
/// result.
inline std::shared_ptr<Files> hanging_files(Files& inner, Barrage& barrage, std::string name) {
  return make_hooked_files(
      inner, [&barrage, name = std::move(name)](const FileOperation& operation) -> Status {
        if (operation.name == name) barrage.pass();
        return {};
      });
}

inline std::shared_ptr<Files> slow_files(Files& inner, std::chrono::milliseconds each_write) {
  return make_hooked_files(inner, [each_write](const FileOperation& operation) -> Status {
    if (operation.name == "write") std::this_thread::sleep_for(each_write);
    return {};
  });
}

}  // namespace cairn::rbio
