// A few ranks of a communicator as a communicator of their own. Making one needs no messages; tags
// are shared with the parent, so a Group and its parent must not use the same tag at once.
#pragma once

#include <vector>

#include "comm/communicator.hpp"

namespace cairn {

class Group final : public Communicator {
 public:
  /// `members` are ranks of `parent`, without repeats; rank i of the group is members[i]. The
  /// calling rank must be among them. `parent` must outlive the group.
  Group(Communicator& parent, std::vector<int> members);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  Request isend(Bytes data, int to, int tag) override;
  Request irecv(MutableBytes buffer, int from, int tag) override;
  void idle() override { parent_.idle(); }

 private:
  Communicator& parent_;
  std::vector<int> members_;
  int rank_;
};

}  // namespace cairn
