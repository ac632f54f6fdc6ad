// How slowfs differs from the folder it shows: how long it takes, where it fails, what it writes
// down.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace slowfs {

using Clock = std::chrono::steady_clock;

/// The n-th request of a kind fails, or each from the n-th on; counted from when the fault was set.
struct Fault {
  std::string operation, file;  ///< no file: any
  std::uint64_t first = 1;
  bool and_later = false;
  int error = EIO;
  std::uint64_t seen = 0;
};

/// Of requests of a kind.
struct Delay {
  std::string operation, file;  ///< no file: any
  std::chrono::microseconds time{0};
};

template <class Rule>
bool is_about(const Rule& rule, const std::string& operation, const std::string& file) {
  return rule.operation == operation && (rule.file.empty() || rule.file == file);
}

/// Takes "OPERATION[@FILE]" apart.
template <class Rule>
Rule rule_about(const std::string& what) {
  Rule rule;
  const std::size_t at = what.find('@');
  rule.operation = what.substr(0, at);
  if (at != std::string::npos) rule.file = what.substr(at + 1);
  return rule;
}

inline int errno_of(const std::string& name) {
  static const std::map<std::string, int> known = {
      {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},
      {"EINTR", EINTR},   {"EPERM", EPERM},   {"EACCES", EACCES},
      {"ENOMEM", ENOMEM}, {"EROFS", EROFS},   {"EFBIG", EFBIG}};
  if (auto found = known.find(name); found != known.end()) return found->second;
  return std::stoi(name);
}

/// "write:3:EIO", "fsync:1+:ENOSPC", "write@bad.dat:1+:5".
inline Fault fault_of(const std::string& text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == std::string::npos)
    throw std::invalid_argument("a fault is OPERATION[@FILE]:N[+]:ERRNO, not " + text);
  const std::string which = text.substr(first + 1, second - first - 1);
  auto fault = rule_about<Fault>(text.substr(0, first));
  fault.first = std::stoull(which);
  fault.and_later = which.back() == '+';
  fault.error = errno_of(text.substr(second + 1));
  return fault;
}

/// "fsync:20000", "write@slow.dat:1000000".
inline Delay delay_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos)
    throw std::invalid_argument("a delay is OPERATION[@FILE]:US, not " + text);
  auto delay = rule_about<Delay>(text.substr(0, colon));
  delay.time = std::chrono::microseconds(std::stoll(text.substr(colon + 1)));
  return delay;
}

class Behaviour {
 public:
  /// Options of the command line, and at run time attributes `user.slowfs.NAME` of the root.
  void set(const std::string& name, const std::string& value) {
    const std::lock_guard lock(mutex_);
    if (name == "delay-us") {
      delay_ = std::chrono::microseconds(std::stoll(value));
    } else if (name == "delay") {
      delays_.push_back(delay_of(value));
    } else if (name == "bandwidth") {
      bandwidth_ = std::stod(value);
    } else if (name == "short") {
      short_bytes_ = std::stoull(value);
    } else if (name == "fail") {
      faults_.push_back(fault_of(value));
    } else if (name == "clear") {
      faults_.clear(), delays_.clear(), delay_ = {}, bandwidth_ = 0, short_bytes_ = 0;
    } else {
      throw std::invalid_argument("slowfs has no setting " + name);
    }
  }

  /// Counts and delays a request; the error that it shall have, or 0.
  int begin(const std::string& operation, const std::string& file) {
    std::unique_lock lock(mutex_);
    ++counts_[operation];
    int error = 0;
    for (Fault& fault : faults_) {
      if (!is_about(fault, operation, file)) continue;
      ++fault.seen;
      if (fault.seen == fault.first || (fault.and_later && fault.seen > fault.first))
        error = fault.error;
    }
    auto delay = delay_;
    for (const Delay& one : delays_)
      if (is_about(one, operation, file)) delay += one.time;
    lock.unlock();
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    return error;
  }

  /// Waits until the bandwidth allows for so many bytes more. Requests queue as on one wire.
  void transfer(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    if (bandwidth_ <= 0) return;
    free_at_ = std::max(free_at_, Clock::now()) +
               std::chrono::duration_cast<Clock::duration>(
                   std::chrono::duration<double>(static_cast<double>(bytes) / bandwidth_));
    const auto until = free_at_;
    lock.unlock();
    std::this_thread::sleep_until(until);
  }

  /// How much of a write of so many bytes is carried out.
  std::size_t shortened(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    return short_bytes_ == 0 ? bytes : std::min<std::size_t>(bytes, short_bytes_);
  }

  std::string counts() {
    const std::lock_guard lock(mutex_);
    return nlohmann::json(counts_).dump();
  }

 private:
  std::mutex mutex_;
  std::chrono::microseconds delay_{0};
  std::vector<Delay> delays_;
  double bandwidth_ = 0;  // bytes per second; 0: without bound
  std::size_t short_bytes_ = 0;
  Clock::time_point free_at_{};
  std::vector<Fault> faults_;
  std::map<std::string, std::uint64_t> counts_;
};

/// What was changed, in order: a line of JSON for each change in FILE, the bytes written in
/// FILE.data. Changes are made one at a time while there is a log, so that their order is the one
/// written down.
class Log {
 public:
  void open(const std::string& path) {
    lines_ = std::fopen(path.c_str(), "w");
    data_ = ::open((path + ".data").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (!lines_ || data_ < 0) throw std::runtime_error("cannot write the log " + path);
  }

  /// To be held from before a change until it is recorded.
  std::unique_lock<std::mutex> turn() {
    return lines_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  /// With turn() held. `t_ns` is when the change was done, by CLOCK_MONOTONIC.
  void record(nlohmann::json entry) {
    if (!lines_) return;
    entry["t_ns"] = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    const std::string line =
        entry.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
    if (std::fputs(line.c_str(), lines_) < 0 || std::fflush(lines_) != 0) std::abort();
  }

  void record_write(ino_t inode, off_t offset, const char* data, std::size_t bytes) {
    if (!lines_) return;
    if (::write(data_, data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
    record({{"op", "write"},
            {"ino", inode},
            {"offset", offset},
            {"bytes", bytes},
            {"data", data_bytes_}});
    data_bytes_ += bytes;
  }

 private:
  std::mutex mutex_;
  std::FILE* lines_ = nullptr;
  int data_ = -1;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace slowfs
