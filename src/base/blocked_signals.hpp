// Keeps signals from the library's threads: they go to the program's own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace cairn {

/// Blocks all signals of the calling thread while it lives. A thread started meanwhile inherits
/// that.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace cairn
