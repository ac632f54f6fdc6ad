#include "comm/group.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cairn {

Group::Group(Communicator& parent, std::vector<int> members)
    : parent_(parent), members_(std::move(members)) {
  const auto self = std::find(members_.begin(), members_.end(), parent_.rank());
  assert(self != members_.end());
  rank_ = static_cast<int>(self - members_.begin());
  set_place(parent_.place());
}

Request Group::isend(Bytes data, int to, int tag) {
  return parent_.isend(data, members_[static_cast<std::size_t>(to)], tag);
}

Request Group::irecv(MutableBytes buffer, int from, int tag) {
  return parent_.irecv(buffer, members_[static_cast<std::size_t>(from)], tag);
}

}  // namespace cairn
