// What ends a connection, and what that proves.
//
// A process has died if the kernel of its machine says so: by its pidfd, or, where there is none,
// by the orderly end of a connection, which nothing between two machines makes. Whatever else ends
// a connection may do so while both processes live: then it is lost, and so is the network, but no
// job is to be ended for that.
#include <fmt/format.h>
#include <sys/epoll.h>

#include <system_error>
#include <utility>

#include "base/units.hpp"
#include "comm/peer_core.hpp"

namespace cairn {

void PeerCore::ended(Link& link, Link::End how) {
  const int rank = link.peer;
  const bool is_opening =
      link.stage == Link::Stage::connecting || link.stage == Link::Stage::greeting;
  if (rank >= 0 && link.is_ours && is_opening)
    return try_next_way(link, "the connection was closed before an answer");
  if (rank >= 0 && link.stage == Link::Stage::open && !link.has_said_bye) {
    if (how == Link::End::rubbish)
      fail_network(Error{
          Code::io, fmt::format("{} has sent bytes that are no message of Cairn", name_of(rank)),
          rank});
    else if (link.process_watch)
      return wait_for_proof(link);
    else if (how == Link::End::closed)
      died(rank);
    else
      lost(link);
  }
  remove(link.number);
}

void PeerCore::process_ended(Link& link) {
  // Its children may have the socket, so that its end does not come. First what it has sent.
  Link::End how = link.stage == Link::Stage::lost ? Link::End::closed : Link::End::more;
  while (how == Link::End::more) how = link.read(*this, Clock::now());
  if (how == Link::End::rubbish) return ended(link, how);
  if (link.stage != Link::Stage::closing && !link.has_said_bye) died(link.peer);
  remove(link.number);
}

/// A process can close its sockets, and live. If it has died, that shows at once.
void PeerCore::wait_for_proof(Link& link) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link.socket.get(), nullptr);
  link.drop_output();
  link.stage = Link::Stage::lost;
  link.begun = Clock::now();
}

void PeerCore::lost(const Link& link) {
  const std::string why =
      link.broken_by == 0 ? "it was closed" : std::generic_category().message(link.broken_by);
  fail_network(Error{
      Code::io,
      fmt::format("{} has lost its connection to {}: {}", name_of(rank_), name_of(link.peer), why),
      link.peer});
}

void PeerCore::died(int rank) {
  fail_network(Error{Code::io, fmt::format("{} has ended without farewell", name_of(rank)), rank},
               true);
}

void PeerCore::cannot_reach(int rank, const std::string& why) {
  fail_network(Error{
      Code::io, fmt::format("{} cannot reach {}: {}", name_of(rank_), name_of(rank), why), rank});
}

/// A death is news even after a loss: only a death ends the calls of the program.
void PeerCore::fail_network(Error error, bool is_death) {
  if (failed_ && (!is_death || is_death_ || is_stopping_)) return;
  is_death_ = is_death;
  failed_ = std::move(error);
  is_interrupted_ = true;
  ++version_;
  // The notice must not wait behind messages that do not matter any more.
  for (const auto& [number, link] : links_)
    if (link->stage == Link::Stage::open) link->drop_output();
  send_error(Frame::Kind::failed, 0, *failed_);
}

void PeerCore::cancel_locked(std::uint32_t channel, Error why) {
  if (failed_ || is_stale(channel) || cancelled_.count(channel) != 0) return;
  const Error& kept = cancelled_.emplace(channel, std::move(why)).first->second;
  is_interrupted_ = true;
  ++version_;
  send_error(Frame::Kind::cancel, channel, kept);
}

void PeerCore::send_error(Frame::Kind kind, std::uint32_t channel, const Error& error) {
  for (const auto& [number, link] : links_)
    if (link->stage == Link::Stage::open) send_error_to(*link, kind, channel, error);
}

void PeerCore::send_error_to(Link& link, Frame::Kind kind, std::uint32_t channel,
                             const Error& error) {
  Blob payload = encode_error(error);
  const Frame frame{
      kind, static_cast<std::uint32_t>(error.rank), channel, payload.size(), is_death_ ? 1u : 0u,
      0};
  link.put(frame, std::move(payload));
  ++counts_.frames_sent;
  flush(link);
}

void PeerCore::throw_if_over(std::uint32_t channel) const {
  if (failed_) throw TransportFailed(*failed_);
  if (const auto found = cancelled_.find(channel); found != cancelled_.end())
    throw TransportFailed(found->second);
}

Status PeerCore::failure() const {
  if (!is_interrupted_) return {};
  const Lock lock(mutex_);
  if (failed_ && !has_only_left_) return tl::unexpected(*failed_);
  return {};
}

Status PeerCore::death() const {
  if (!is_interrupted_) return {};
  const Lock lock(mutex_);
  if (failed_ && is_death_) return tl::unexpected(*failed_);
  return {};
}

// --- hangs ---

void PeerCore::report_awaited(std::chrono::milliseconds waited) {
  if (!is_in_its_process()) return;
  const Lock lock(mutex_);
  begin_trace(waited);
}

/// Rank 1 is connected with rank 0 from the beginning.
void PeerCore::report_late(std::chrono::milliseconds waited) {
  if (!is_in_its_process() || rank_ > 1) return;
  const Lock lock(mutex_);
  const Link* const first = rank_ == 1 ? link_of(0) : nullptr;
  if (rank_ == 0 || (first != nullptr && silence_of(*first))) begin_trace(waited);
}

void PeerCore::begin_trace(std::chrono::milliseconds waited) {
  trace(Frame{Frame::Kind::trace, static_cast<std::uint32_t>(rank_), 0, 0,
              static_cast<std::uint64_t>(size_), static_cast<std::uint64_t>(waited.count())});
}

/// Of a process that seems to be stopped.
std::optional<PeerCore::Clock::duration> PeerCore::silence_of(const Link& link) const {
  const auto silent = Clock::now() - link.last_heard;
  return silent > options_.silence * 3 / 8 ? std::optional(silent) : std::nullopt;
}

/// Each rank passes it on to the one whose message it waits for. The rank that finds the end of
/// this reports that, so it is one line however many ranks wait.
void PeerCore::trace(const Frame& question) {
  if (failed_) return;
  const std::optional<int> next = awaited();
  const Link* const link = next ? link_of(*next) : nullptr;
  const bool is_connected = link != nullptr && link->stage == Link::Stage::open;
  const auto seconds = [](auto time) {
    return format_seconds(std::chrono::duration<double>(time).count());
  };
  std::string found;
  if (!next || *next == rank_) {
    found = fmt::format("{} is busy with files, or computes", name_of(rank_));
  } else if (!is_connected) {
    found = fmt::format("{} waits for {}, and is not connected with it", name_of(rank_),
                        name_of(*next));
  } else if (const auto silent = silence_of(*link)) {
    found = fmt::format("{} has given no sign of life for {}; it counts as lost after {}",
                        name_of(*next), seconds(*silent), seconds(options_.silence));
  } else if (question.id == 0) {
    found = fmt::format("{} waits for {}", name_of(rank_), name_of(*next));
  } else {
    Frame passed_on = question;
    --passed_on.id;
    return submit(*next, passed_on);
  }
  reports_.push_back(fmt::format("rank {} has waited for {} for background work: {}",
                                 question.subject,
                                 seconds(std::chrono::milliseconds(question.address)), found));
}

/// The rank that the oldest message under way is to come from, or to go to. Nothing if the thread
/// that communicates does something else.
std::optional<int> PeerCore::awaited() const {
  constexpr std::chrono::seconds busy_after(1);
  if (under_way_.empty() || Clock::now() - last_idle_ > busy_after) return std::nullopt;
  return under_way_.begin()->second->peer;
}

/// A line may have to wait for whatever takes it.
void PeerCore::give_reports(Lock& lock) {
  if (reports_.empty()) return;
  const std::vector<std::string> given = std::exchange(reports_, {});
  lock.unlock();
  for (const std::string& text : given)
    if (options_.report) options_.report(text);
  lock.lock();
}

}  // namespace cairn
