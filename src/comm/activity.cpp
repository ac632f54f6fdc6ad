#include "comm/activity.hpp"

namespace cairn {

void carry_out(Communicator& comm, std::vector<Activity*> active) {
  while (!active.empty()) {
    bool moved = false;
    std::erase_if(active, [&moved](Activity* activity) {
      const Activity::Step step = activity->advance();
      moved = moved || step != Activity::Step::waits;
      return step == Activity::Step::done;
    });
    // A message that was complete as soon as it was posted wakes nobody.
    if (!moved) comm.idle();
  }
}

}  // namespace cairn
