#include "session/halt_watch.hpp"

namespace cairn {
namespace {

constexpr std::int64_t step_us = 100'000;
constexpr int steps_between_looks = 10;

}  // namespace

std::unique_ptr<HaltWatch> HaltWatch::start(HaltFile file, Background& background) {
  std::unique_ptr<HaltWatch> watch(new HaltWatch(std::move(file)));
  // Not of idle priority: beside busy cores it would hold the file's lock for long.
  watch->thread_ = background.keep_working([&watched = *watch] { return watched.step(); });
  return watch->thread_ ? std::move(watch) : nullptr;
}

Result<HaltRecord> HaltWatch::last() const {
  const std::scoped_lock lock(mutex_);
  auto record = last_;
  if (record)
    for (const Change& change : changes_) change(*record);
  return record;
}

void HaltWatch::change(Change change) {
  const std::scoped_lock lock(mutex_);
  changes_.push_back(std::move(change));
}

Status HaltWatch::trouble() const {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

std::vector<HaltWatch::Change> HaltWatch::end() {
  thread_.reset();
  return std::move(changes_);
}

std::int64_t HaltWatch::step() {
  if (change_file() || --steps_to_look_ > 0) return step_us;
  steps_to_look_ = steps_between_looks;
  auto record = file_.read();
  const std::scoped_lock lock(mutex_);
  last_ = std::move(record);
  return step_us;
}

/// True if there was something to change. What fails is tried again.
bool HaltWatch::change_file() {
  std::vector<Change> changes;
  {
    const std::scoped_lock lock(mutex_);
    changes = changes_;
  }
  if (changes.empty()) return false;
  HaltRecord changed;
  const HaltChange done = file_.change([&](HaltRecord& record) {
    for (const Change& change : changes) change(record);
    changed = record;
  });
  const std::scoped_lock lock(mutex_);
  trouble_ = done.status;
  if (!done.is_made) return true;
  last_ = changed;
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(changes.size()));
  return true;
}

}  // namespace cairn
