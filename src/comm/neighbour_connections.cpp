#include "comm/neighbour_connections.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>

namespace cairn {
namespace {

constexpr int contact_tag = 601;
constexpr int tried_tag = 602;
/// Those that say nothing must not take all descriptors of the program.
constexpr std::ptrdiff_t strangers_max = 64;

bool send_token(const Socket& socket, const Token& token) {
  return ::send(socket.get(), token.data(), token.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(token.size());
}

/// Both sides at once, and all addresses of the next rank at once: no silent one costs the others
/// any time.
class Connecting {
 public:
  Connecting(Token mine, Token before, Socket listening)
      : mine_(mine), before_(before), listening_(std::move(listening)) {}

  void begin(const std::vector<Way>& ways, const Token& token_of_next) {
    next_ = token_of_next;
    for (const Way& way : ways) {
      int error_number = 0;
      Socket socket = begin_connecting(way, error_number);
      if (socket) attempts_.push_back(Attempt{std::move(socket), true, true});
    }
  }

  /// The connection with the next rank is made, or cannot be had.
  bool has_tried() const {
    return connections_.next || std::none_of(attempts_.begin(), attempts_.end(),
                                             [](const Attempt& each) { return each.is_ours; });
  }

  /// Waits a millisecond at most.
  void move_on() {
    std::vector<pollfd> looks;
    for (const Attempt& each : attempts_)
      looks.push_back({each.socket.get(), each.is_connecting ? short{POLLOUT} : short{POLLIN}, 0});
    looks.push_back({listening_.get(), POLLIN, 0});
    if (::poll(looks.data(), looks.size(), 1) <= 0) return;
    for (std::size_t i = 0; i < attempts_.size(); ++i)
      if (looks[i].revents != 0 && !move_on(attempts_[i])) attempts_[i].socket = Socket();
    std::erase_if(attempts_, [](const Attempt& each) { return !each.socket; });
    if (looks.back().revents != 0) accept_one();
  }

  NeighbourConnections take() { return std::move(connections_); }

 private:
  struct Attempt {
    Socket socket;
    bool is_ours = false;  ///< this process has begun it
    bool is_connecting = false;
    Token shown{};
    std::size_t shown_bytes = 0;
  };

  /// False if nothing more is to come of it.
  bool move_on(Attempt& attempt) {
    if (std::exchange(attempt.is_connecting, false)) return send_token(attempt.socket, next_);
    const ssize_t got = ::recv(attempt.socket.get(), attempt.shown.data() + attempt.shown_bytes,
                               attempt.shown.size() - attempt.shown_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    if (got <= 0) return false;
    attempt.shown_bytes += static_cast<std::size_t>(got);
    if (attempt.shown_bytes < attempt.shown.size()) return true;
    if (attempt.shown == mine_) keep(attempt);
    return false;
  }

  /// Only one is answered. Otherwise the rank before could watch one that is dropped here.
  void keep(Attempt& attempt) {
    Socket& kept = attempt.is_ours ? connections_.next : connections_.before;
    if (kept) return;
    if (attempt.is_ours || send_token(attempt.socket, before_)) kept = std::move(attempt.socket);
  }

  void accept_one() {
    Socket socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const auto is_stranger = [](const Attempt& each) { return !each.is_ours; };
    if (std::count_if(attempts_.begin(), attempts_.end(), is_stranger) >= strangers_max)
      attempts_.erase(std::find_if(attempts_.begin(), attempts_.end(), is_stranger));
    attempts_.push_back(Attempt{std::move(socket)});
  }

  const Token mine_;
  const Token before_;
  Token next_{};
  Socket listening_;
  std::vector<Attempt> attempts_;
  NeighbourConnections connections_;
};

/// Each gets the contact of the other.
void exchange_contacts(Communicator& comm, const Contact& mine, int next, Contact& of_next,
                       int before, Contact& of_before) {
  std::vector<Request> requests;
  const auto exchange_with = [&](int rank, Contact& theirs) {
    if (rank < 0) return;
    requests.push_back(comm.irecv(mutable_bytes_of(theirs), rank, contact_tag));
    requests.push_back(comm.isend(bytes_of(mine), rank, contact_tag));
  };
  exchange_with(next, of_next);
  exchange_with(before, of_before);
  wait_all(comm, requests);
}

}  // namespace

NeighbourConnections connect_neighbours(Communicator& comm, int next, int before,
                                        const std::string& place,
                                        const NeighbourWatchOptions& options) {
  if (next < 0 && before < 0) return {};
  const Result<Contact> described = describe_this_process(place);
  Contact mine = described.value_or(Contact{});
  Socket listening;
  if (described && before >= 0)
    if (auto listens = listen_on_network(mine, options.loopback)) listening = *std::move(listens);
  Contact of_next;
  Contact of_before;
  exchange_contacts(comm, mine, next, of_next, before, of_before);

  Connecting connecting(mine.token, of_before.token, std::move(listening));
  if (described && next >= 0) connecting.begin(ways_to(of_next, mine, true), of_next.token);
  // The rank before says when it has tried, so that none waits for one that cannot come. A loop of
  // messages alone would not serve the sockets.
  Request heard = before >= 0 ? comm.irecv({}, before, tried_tag) : nullptr;
  Request said;
  bool has_said = next < 0;
  const auto until = std::chrono::steady_clock::now() + options.patience;
  for (bool is_in_time = true; is_in_time && (heard || !has_said);) {
    connecting.move_on();
    is_in_time = std::chrono::steady_clock::now() < until;
    if (!has_said && (connecting.has_tried() || !is_in_time)) {
      said = comm.isend({}, next, tried_tag);
      has_said = true;
    }
    if (heard && heard->test()) heard.reset();
  }
  wait(comm, said);
  wait(comm, heard);
  NeighbourConnections made = connecting.take();
  made.contact_of_next = of_next;
  return made;
}

}  // namespace cairn
