#include "rbio/step_messages.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

namespace cairn::rbio {

void StepMessages::add(std::vector<Request> requests, std::function<void()> when_complete) {
  steps_.push_back({std::move(when_complete), std::move(requests)});
}

void StepMessages::progress() {
  for (Step& step : steps_)
    std::erase_if(step.requests,
                  [](const Request& request) { return !request || request->test(); });
  while (!steps_.empty() && steps_.front().requests.empty()) {
    const Step step = std::move(steps_.front());
    steps_.pop_front();
    ++completed_;
    step.when_complete();
  }
}

void StepMessages::leave_behind() {
  static std::mutex mutex;
  static auto& left_behind = *new std::vector<Step>;
  const std::scoped_lock lock(mutex);
  std::move(steps_.begin(), steps_.end(), std::back_inserter(left_behind));
  steps_.clear();
}

}  // namespace cairn::rbio
