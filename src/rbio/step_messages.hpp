// Messages of steps that are still under way when begin() has returned.
//
// Only the thread that makes the calls of a series touches them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "comm/communicator.hpp"

namespace cairn::rbio {

/// Of one rank. No message is ever cancelled: a peer could then wait for it for ever. The memory of
/// a message belongs to its step here until it is complete.
class StepMessages {
 public:
  StepMessages() = default;
  StepMessages(const StepMessages&) = delete;
  StepMessages& operator=(const StepMessages&) = delete;

  /// Of the next step. progress() calls `when_complete` once its messages and those of the steps
  /// before are complete. It owns the memory of the messages, and is destroyed after the call.
  void add(std::vector<Request> requests, std::function<void()> when_complete);
  /// Never waits.
  void progress();

  /// Steps that were added, and those of which all messages are complete.
  std::uint64_t added() const { return completed_ + steps_.size(); }
  std::uint64_t completed() const { return completed_; }
  bool is_empty() const { return steps_.empty(); }

  /// What is not complete stays as it is until the process ends: its memory is never freed, as MPI
  /// may still use it, and nothing is called any more.
  void leave_behind();

 private:
  struct Step {
    std::function<void()> when_complete;
    std::vector<Request> requests;  ///< destroyed first
  };

  std::deque<Step> steps_;
  std::uint64_t completed_ = 0;
};

}  // namespace cairn::rbio
