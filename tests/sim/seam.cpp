#include "seam.hpp"

namespace cairn::sim {

void Seam::pass(std::string_view what, std::string_view where, std::string_view to) {
  if (std::uncaught_exceptions() > 0) return;  // a process that has ended does nothing any more
  scheduler_.yield();
  const int rank = scheduler_.current();
  trace_.call(calls_, rank, what, where, to);
  if (++calls_ > most_calls)
    throw Violation(fmt::format("(f) a run does not end: more than {} calls", most_calls));
  fire_events();
  int& left = calls_left_[static_cast<std::size_t>(rank)];
  if (left >= 0 && left-- == 0) scheduler_.end(rank);
  scheduler_.throw_if_ended();
}

void Seam::fire_events() {
  while (!events_.empty() && events_.begin()->first < calls_) {
    const std::function<void()> event = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    event();
  }
}

}  // namespace cairn::sim
