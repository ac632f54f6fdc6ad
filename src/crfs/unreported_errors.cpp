#include "crfs/unreported_errors.hpp"

namespace cairn {

void UnreportedErrors::add(dev_t device, ino_t number, Lost lost) {
  const std::lock_guard lock(mutex_);
  lost_.insert_or_assign({device, number}, std::move(lost));
  any_ = true;
}

int UnreportedErrors::take(dev_t device, ino_t number) {
  if (!any_) return 0;
  const std::lock_guard lock(mutex_);
  const auto found = lost_.find({device, number});
  if (found == lost_.end()) return 0;
  const int error = found->second.error;
  lost_.erase(found);
  any_ = !lost_.empty();
  return error;
}

int UnreportedErrors::report_to_reader(dev_t device, ino_t number) {
  if (!any_) return 0;
  const std::lock_guard lock(mutex_);
  const auto found = lost_.find({device, number});
  if (found == lost_.end() || std::exchange(found->second.was_returned_to_reader, true)) return 0;
  return found->second.error;
}

int UnreportedErrors::take_below(const std::string& directory) {
  if (!any_) return 0;
  const std::lock_guard lock(mutex_);
  int error = 0;
  std::erase_if(lost_, [&](const auto& one) {
    const bool is_below = one.second.file.starts_with(directory);
    if (is_below) error = one.second.error;
    return is_below;
  });
  any_ = !lost_.empty();
  return error;
}

void UnreportedErrors::leave_to_the_end(dev_t device, ino_t number) {
  if (!any_) return;
  const std::lock_guard lock(mutex_);
  const auto found = lost_.find({device, number});
  if (found == lost_.end()) return;
  gone_.push_back(std::move(found->second));
  lost_.erase(found);
}

std::vector<UnreportedErrors::Lost> UnreportedErrors::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Lost> all = gone_;
  for (const auto& [file, lost] : lost_) all.push_back(lost);
  return all;
}

}  // namespace cairn
