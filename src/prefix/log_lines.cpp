#include "prefix/log_lines.hpp"

#include <chrono>
#include <utility>

namespace cairn {
namespace {

/// Of a call, once.
constexpr auto longest_wait = std::chrono::milliseconds(50);
/// For all lines.
constexpr auto longest_last_wait = std::chrono::seconds(1);
constexpr std::size_t most_waiting_bytes = std::size_t{1} << 20;
/// The thread looks whether it is to end.
constexpr auto longest_sleep = std::chrono::seconds(1);

}  // namespace

std::unique_ptr<LogLines> LogLines::start(Background& background, Write write) {
  std::unique_ptr<LogLines> lines(new LogLines(std::move(write)));
  lines->thread_ = background.keep_working([&its = *lines] { return its.write_next(); });
  return lines->thread_ ? std::move(lines) : nullptr;
}

LogLines::~LogLines() {
  if (thread_ == nullptr) return;
  {
    std::unique_lock lock(mutex_);
    written_.wait(lock, [this] { return lines_written_ == lines_added_; });
    is_closing_ = true;
  }
  added_.notify_all();
  thread_.reset();
}

bool LogLines::add(const std::string& path, std::string line) {
  std::unique_lock lock(mutex_);
  if (waiting_bytes_ + line.size() > most_waiting_bytes) return false;
  waiting_bytes_ += line.size();
  if (!waiting_.empty() && waiting_.back().path == path)
    waiting_.back().lines += line;
  else
    waiting_.push_back({path, std::move(line)});
  const std::uint64_t number = ++lines_added_;
  added_.notify_all();
  const auto is_written = [&] { return lines_written_ >= number; };
  if (!is_slow_) is_slow_ = !written_.wait_for(lock, longest_wait, is_written);
  return true;
}

bool LogLines::wait_until_written() {
  std::unique_lock lock(mutex_);
  return written_.wait_for(lock, longest_last_wait,
                           [this] { return lines_written_ == lines_added_; });
}

std::int64_t LogLines::write_next() {
  std::deque<Text> texts;
  std::uint64_t last = 0;
  {
    std::unique_lock lock(mutex_);
    added_.wait_for(lock, longest_sleep, [this] { return is_closing_ || !waiting_.empty(); });
    texts = std::exchange(waiting_, {});
    waiting_bytes_ = 0;
    last = lines_added_;
  }
  for (const Text& text : texts) write_(text.path, text.lines);
  const std::scoped_lock lock(mutex_);
  lines_written_ = last;
  if (waiting_.empty()) is_slow_ = false;
  written_.notify_all();
  return 0;
}

}  // namespace cairn
