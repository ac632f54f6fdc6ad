#include "rbio/done_notices.hpp"

#include <memory>

namespace cairn::rbio {
namespace {

constexpr int done_tag = 6;

}  // namespace

void DoneNotices::expect_one(Communicator& group) {
  const auto code = std::make_shared<std::uint8_t>();
  std::vector<Request> requests;
  requests.push_back(group.irecv(mutable_bytes_of(*code), 0, done_tag));
  messages_.add(std::move(requests), [this, code, step = messages_.added() + 1] {
    if (*code != 0) failed_.emplace(step, static_cast<Code>(*code));
  });
}

void DoneNotices::send_up_to(Communicator& group, std::uint64_t step,
                             const std::function<Code(std::uint64_t step)>& outcome_of) {
  while (messages_.added() < step) {
    const auto code = std::make_shared<std::uint8_t>(
        static_cast<std::uint8_t>(outcome_of(messages_.added() + 1)));
    std::vector<Request> requests;
    for (const int member : members_)
      requests.push_back(group.isend(bytes_of(*code), member, done_tag));
    messages_.add(std::move(requests), [code] {});
  }
}

Code DoneNotices::outcome_of(std::uint64_t step) const {
  const auto failed = failed_.find(step);
  return failed == failed_.end() ? Code::ok : failed->second;
}

}  // namespace cairn::rbio
