// Which call of a series returns the error of a step.

#include "rbio/done_page.hpp"
#include "rbio/series.hpp"

namespace cairn::rbio {

Status Series::outcome_of(Ticket ticket) {
  const auto failure = failures_.find(ticket);
  if (failure == failures_.end()) return {};
  failure->second.is_reported = true;
  returned_.insert(ticket);
  return tl::unexpected(failure->second.error);
}

Status Series::first_unreported() {
  for (const auto& [ticket, failure] : failures_)
    if (!failure.is_reported) return outcome_of(ticket);
  return {};
}

/// Of a step whose outcome is not settled. Only the writer knows the reason.
Status Series::known_failure(const BegunStep& begun) const {
  if (begun.outcome)
    return *begun.outcome ? Status{} : Status(tl::unexpected(begun.outcome->error()));
  if (begun.job) return writer_->failure_of(*begun.job);
  const auto number = static_cast<std::uint64_t>(begun.ticket);
  const Code code = page_ ? outcome_in(*page_, number) : notices_.outcome_of(number);
  if (code == Code::ok) return {};
  const int writer = roles_.group_ranks.front();
  return tl::unexpected(Error{code,
                              fmt::format("step {}: rank {}, the writer of this rank's group, "
                                          "cannot write it; rbio_wait returns the reason",
                                          begun.step, writer),
                              writer});
}

Status Series::failure_of(Ticket ticket) {
  CAIRN_TRY(check_known(ticket));
  Status known;
  const auto number = static_cast<std::uint64_t>(ticket);
  const auto failure = failures_.find(ticket);
  if (failure != failures_.end()) known = tl::unexpected(failure->second.error);
  if (number > settled()) known = known_failure(unsettled_[number - settled() - 1]);
  if (known) return {};
  returned_.insert(ticket);
  known.error().is_reported = true;
  return known;
}

Status Series::progress() {
  CAIRN_TRY(check_open());
  move_messages_on();
  for (const auto& [ticket, failure] : failures_)
    if (!returned_.contains(ticket)) return failure_of(ticket);
  for (const BegunStep& begun : unsettled_)
    if (!returned_.contains(begun.ticket)) CAIRN_TRY(failure_of(begun.ticket));
  return {};
}

}  // namespace cairn::rbio
