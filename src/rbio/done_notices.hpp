// How the members of a group that cannot see the page of their writer learn, without a collective
// call, that it has done with a step: one message per step, with its outcome.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "comm/communicator.hpp"
#include "rbio/step_messages.hpp"

namespace cairn::rbio {

class DoneNotices {
 public:
  /// On a writer: to these members of the group.
  void send_to(std::vector<int> members) { members_ = std::move(members); }
  /// On a member: in begin(), for one more step.
  void expect_one(Communicator& group);
  /// On a writer: for each step up to this one, unless it was sent before.
  void send_up_to(Communicator& group, std::uint64_t step,
                  const std::function<Code(std::uint64_t step)>& outcome_of);
  /// Never waits.
  void progress() { messages_.progress(); }

  /// On a member: the writer has done with so many steps.
  std::uint64_t received() const { return messages_.completed(); }
  /// On a member: ok unless the writer has reported that this step has failed.
  Code outcome_of(std::uint64_t step) const;
  StepMessages& messages() { return messages_; }

 private:
  std::vector<int> members_;
  std::map<std::uint64_t, Code> failed_;
  StepMessages messages_;
};

}  // namespace cairn::rbio
