#include "rbio/done_notices.hpp"

namespace cairn::rbio {
namespace {

constexpr int done_tag = 6;

void do_nothing() {}

}  // namespace

void DoneNotices::expect_one(Communicator& group) {
  std::vector<Request> requests;
  requests.push_back(group.irecv({}, 0, done_tag));
  messages_.add(std::move(requests), do_nothing);
}

void DoneNotices::send_up_to(Communicator& group, std::uint64_t step) {
  while (messages_.added() < step) {
    std::vector<Request> requests;
    for (const int member : members_) requests.push_back(group.isend({}, member, done_tag));
    messages_.add(std::move(requests), do_nothing);
  }
}

}  // namespace cairn::rbio
