#include "comm/peer_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <thread>
#include <utility>

#include "comm/peer_core.hpp"

namespace cairn {
namespace {

class PeerMessage final : public PendingMessage {
 public:
  explicit PeerMessage(std::shared_ptr<PeerCore> core) : core_(std::move(core)) {}
  ~PeerMessage() override {
    if (!operation.done) core_->withdraw(operation);
  }
  PeerMessage(const PeerMessage&) = delete;
  PeerMessage& operator=(const PeerMessage&) = delete;

  bool test() override { return core_->test(operation); }

  Operation operation;

 private:
  const std::shared_ptr<PeerCore> core_;
};

class PeerCommunicator final : public Communicator {
 public:
  PeerCommunicator(std::shared_ptr<PeerCore> core, std::uint32_t channel)
      : core_(std::move(core)), channel_(channel) {
    core_->begin_channel(channel);
  }
  ~PeerCommunicator() override { core_->end_channel(channel_); }
  PeerCommunicator(const PeerCommunicator&) = delete;
  PeerCommunicator& operator=(const PeerCommunicator&) = delete;

  int rank() const override { return core_->rank(); }
  int size() const override { return core_->size(); }

  Request isend(Bytes data, int to, int tag) override {
    std::unique_ptr<PeerMessage> message = make(to, tag, data.size());
    message->operation.data = data;
    core_->send(message->operation);
    return message;
  }

  Request irecv(MutableBytes buffer, int from, int tag) override {
    std::unique_ptr<PeerMessage> message = make(from, tag, buffer.size());
    message->operation.buffer = buffer;
    core_->receive(message->operation);
    return message;
  }

  void idle() override { core_->idle(channel_, seen_); }

 private:
  std::unique_ptr<PeerMessage> make(int peer, int tag, std::size_t bytes) {
    if (peer < 0 || peer >= size() || tag < 0 || tag > max_tag || bytes > max_message_bytes)
      throw std::logic_error(
          fmt::format("{} ranks have no rank {}, or no tag {}, or {} bytes are too long", size(),
                      peer, tag, bytes));
    auto message = std::make_unique<PeerMessage>(core_);
    message->operation.peer = peer;
    message->operation.tag = static_cast<std::uint32_t>(tag);
    message->operation.channel = channel_;
    return message;
  }

  const std::shared_ptr<PeerCore> core_;
  const std::uint32_t channel_;
  std::uint64_t seen_ = 0;
};

/// 0 for success, else the code, and a text.
using VerdictText = std::array<char, 256>;

VerdictText verdict_of(const Status& status) {
  VerdictText verdict{};
  if (status) return verdict;
  verdict[0] = static_cast<char>(status.error().code);
  const std::string& text = status.error().text;
  std::copy_n(text.begin(), std::min(text.size(), verdict.size() - 2), verdict.begin() + 1);
  return verdict;
}

/// That of the lowest rank with an error.
Status agree_over(const PeerNetwork::Exchange& exchange, const Status& mine) {
  const VerdictText verdict = verdict_of(mine);
  CAIRN_ASSIGN(const std::vector<Blob> all, exchange(bytes_of(verdict)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty() || all[rank][0] == std::byte{0}) continue;
    const Bytes text = Bytes(all[rank]).subspan(1);
    const auto length =
        static_cast<std::size_t>(std::find(text.begin(), text.end(), std::byte{0}) - text.begin());
    return tl::unexpected(Error{static_cast<Code>(all[rank][0]),
                                std::string(reinterpret_cast<const char*>(text.data()), length),
                                static_cast<int>(rank)});
  }
  return {};
}

}  // namespace

PeerNetwork::PeerNetwork(std::shared_ptr<PeerCore> core) : core_(std::move(core)) {}

PeerNetwork::~PeerNetwork() {
  if (core_) leave();
}

Result<std::unique_ptr<PeerNetwork>> PeerNetwork::open(int rank, int size, const Exchange& exchange,
                                                       PeerNetworkOptions options) {
  auto core = std::make_shared<PeerCore>(rank, size, std::move(options));
  const Status listens = core->listen(exchange);
  CAIRN_TRY(agree_over(exchange, listens));
  Status connects = core->connect_neighbours();
  if (connects) connects = core->start_watching();
  std::unique_ptr<PeerNetwork> network(new PeerNetwork(std::move(core)));
  CAIRN_TRY(agree_over(exchange, connects));
  return network;
}

Result<std::unique_ptr<PeerNetwork>> PeerNetwork::open(Communicator& comm,
                                                       PeerNetworkOptions options) {
  const Exchange exchange = [&comm](Bytes mine) -> Result<std::vector<Blob>> {
    Blob all(mine.size() * static_cast<std::size_t>(comm.size()));
    comm.allgather(mine, all);
    std::vector<Blob> each;
    for (std::size_t at = 0; at < all.size(); at += mine.size()) {
      const Bytes piece = Bytes(all).subspan(at, mine.size());
      each.emplace_back(piece.begin(), piece.end());
    }
    return each;
  };
  return open(comm.rank(), comm.size(), exchange, std::move(options));
}

std::unique_ptr<Communicator> PeerNetwork::begin(std::uint32_t channel) {
  assert(channel > 0);
  return std::make_unique<PeerCommunicator>(core_, channel);
}

void PeerNetwork::cancel(std::uint32_t channel, Error why) { core_->cancel(channel, why); }
Status PeerNetwork::failure() const { return core_->failure(); }
Status PeerNetwork::death() const { return core_->death(); }
void PeerNetwork::report_awaited(std::chrono::milliseconds waited) {
  core_->report_awaited(waited);
}
void PeerNetwork::report_late(std::chrono::milliseconds waited) { core_->report_late(waited); }
PeerNetworkCounts PeerNetwork::counts() const { return core_->counts(); }
Status PeerNetwork::close() { return core_->close(); }
bool PeerNetwork::leave(std::chrono::milliseconds at_most) { return core_->leave(at_most); }

void PeerCore::cancel(std::uint32_t channel, const Error& why) {
  if (!is_in_its_process()) return;
  const Lock lock(mutex_);
  Error mine = why;
  mine.rank = rank_;
  cancel_locked(channel, std::move(mine));
}

PeerNetworkCounts PeerCore::counts() const {
  const Lock lock(mutex_);
  return counts_;
}

// --- the end ---

Status PeerCore::close() {
  if (!is_in_its_process()) return {};
  Lock lock(mutex_);
  const std::chrono::milliseconds step(5);
  const auto wait_until = [&](auto holds) {
    for (const auto until = Clock::now() + options_.patience; !failed_ && !holds();) {
      if (Clock::now() > until) return;
      pump(lock, step);
    }
  };
  const auto none_of_links = [&](auto holds) {
    return std::none_of(links_.begin(), links_.end(),
                        [&](const auto& each) { return holds(*each.second); });
  };
  wait_until([&] { return none_of_links([](const Link& link) { return link.has_output(); }); });
  is_closing_ = true;
  for (const auto& [number, link] : links_) {
    if (link->stage != Link::Stage::open) continue;
    link->put(Frame{Frame::Kind::bye});
    flush(*link);
  }
  wait_until([&] {
    return none_of_links([](const Link& link) {
      return (link.stage == Link::Stage::open && !link.has_said_bye) || link.has_output();
    });
  });
  const Status result = failed_ ? Status(tl::unexpected(*failed_)) : Status{};
  lock.unlock();
  leave(std::chrono::milliseconds(100));
  return result;
}

bool PeerCore::leave(std::chrono::milliseconds at_most) {
  if (!is_in_its_process()) return false;
  const auto until = Clock::now() + at_most;
  Lock lock(mutex_, std::defer_lock);
  // The thread that has it may hang in the system.
  while (!lock.try_lock()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& [number, link] : links_) {
    if (is_closing_ || is_stopping_ || link->stage != Link::Stage::open) continue;
    link->put(Frame{Frame::Kind::bye});
    flush(*link);
  }
  is_closing_ = true;
  // A rank that gets neither this nor the notice of a failure would take this one for the cause.
  const auto is_blocked = [&](const auto& each) {
    const Link::Stage stage = each.second->stage;
    const bool is_opening = stage == Link::Stage::connecting || stage == Link::Stage::greeting;
    return each.second->has_output() || (failed_ && is_opening);
  };
  while (std::any_of(links_.begin(), links_.end(), is_blocked) &&
         Clock::now() < until - at_most / 2)
    pump(lock, std::chrono::milliseconds(5));
  is_stopping_ = true;
  if (!failed_) {
    failed_ = Error{Code::io, "this rank has closed its connections", rank_};
    has_only_left_ = true;
  }
  is_interrupted_ = true;
  changed_.notify_all();
  const bool has_ended = changed_.wait_until(lock, until, [this] { return !has_thread_; });
  if (has_ended) {
    links_.clear();
    strangers_ = 0;
    for (Peer& each : peers_) each.link = 0;
    local_listener_ = {};
    network_listener_ = {};
    if (!is_pumping_) epoll_ = {};
  }
  return has_ended;
}

}  // namespace cairn
