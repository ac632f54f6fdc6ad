#include "comm/peer_core.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/blocked_signals.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t local_listener_tag = 0;
constexpr std::uint64_t network_listener_tag = 1;
constexpr std::uint64_t process_watch_bit = std::uint64_t{1} << 63;
constexpr std::size_t strangers_max = 64;
/// A failure has to pass at most log2(size) ranks, each of which looks this often.
constexpr std::chrono::milliseconds tick{50};
/// For the notice of a failure to arrive by another way.
constexpr std::chrono::milliseconds grace{500};

std::string reason(int error_number) { return std::generic_category().message(error_number); }

Status watch_for_input(const Socket& epoll, const Socket& socket, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0) return {};
  return tl::unexpected(errno_error(errno, "watch", "a socket"));
}

bool is_token(Bytes payload, const Token& token) {
  return payload.size() == token.size() &&
         std::equal(payload.begin(), payload.end(), token.begin());
}

}  // namespace

PeerCore::PeerCore(int rank, int size, PeerNetworkOptions options)
    : rank_(rank),
      size_(size),
      options_(std::move(options)),
      process_(::getpid()),
      peers_(static_cast<std::size_t>(size)),
      last_look_(Clock::now()),
      last_idle_(last_look_) {}

PeerCore::~PeerCore() = default;

bool PeerCore::is_in_its_process() const { return ::getpid() == process_; }

// --- opening ---

namespace {

Result<std::vector<Contact>> exchange_contacts(const PeerNetwork::Exchange& exchange,
                                               const Contact& mine, int size) {
  CAIRN_ASSIGN(const std::vector<Blob> all, exchange(bytes_of(mine)));
  std::vector<Contact> contacts(static_cast<std::size_t>(size));
  if (all.size() != contacts.size())
    return fail(Code::corrupt, "{} contacts for {} ranks", all.size(), size);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() != sizeof(Contact))
      return fail(Code::corrupt, "the contact of rank {} has {} bytes", i, all[i].size());
    std::memcpy(&contacts[i], all[i].data(), sizeof(Contact));
  }
  return contacts;
}

}  // namespace

/// An error of one rank must not keep it from the exchanges, in which the others wait.
Status PeerCore::listen(const PeerNetwork::Exchange& exchange) {
  Contact mine;
  const auto listen_here = [&]() -> Status {
    CAIRN_ASSIGN(mine, describe_this_process(options_.place));
    epoll_ = Socket(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return tl::unexpected(errno_error(errno, "make", "a descriptor for sockets"));
    CAIRN_ASSIGN(local_listener_, listen_locally(mine));
    return watch_for_input(epoll_, local_listener_, local_listener_tag);
  };
  Status listens = listen_here();
  CAIRN_ASSIGN(std::vector<Contact> contacts, exchange_contacts(exchange, mine, size_));
  const bool is_one_machine =
      std::all_of(contacts.begin(), contacts.end(),
                  [&](const Contact& each) { return each.is_on_machine_of(contacts[0]); });
  if (!is_one_machine || options_.avoid_local_sockets) {
    const auto listen_there = [&]() -> Status {
      CAIRN_ASSIGN(network_listener_, listen_on_network(mine, is_one_machine));
      return watch_for_input(epoll_, network_listener_, network_listener_tag);
    };
    if (listens) listens = listen_there();
    CAIRN_ASSIGN(contacts, exchange_contacts(exchange, mine, size_));
  }
  for (std::size_t i = 0; i < contacts.size(); ++i) peers_[i].contact = contacts[i];
  return listens;
}

std::vector<int> PeerCore::neighbours() const {
  std::vector<int> found;
  for (int hop = 1; hop < size_; hop *= 2)
    for (const int other : {(rank_ + hop) % size_, (rank_ + size_ - hop) % size_})
      if (other != rank_ && std::find(found.begin(), found.end(), other) == found.end())
        found.push_back(other);
  return found;
}

Status PeerCore::connect_neighbours() {
  Lock lock(mutex_);
  const std::vector<int> all = neighbours();
  const auto until = Clock::now() + options_.patience;
  for (const int other : all) {
    if (other > rank_) {
      reach(other);
    } else {
      peer(other).is_awaited = true;
      peer(other).must_be_there_by = until;
    }
  }
  const auto is_reached = [&](int other) {
    const Link* link = link_of(other);
    return link != nullptr && link->stage == Link::Stage::open;
  };
  while (!failed_ && !std::all_of(all.begin(), all.end(), is_reached)) pump(lock, tick);
  if (failed_) return tl::unexpected(*failed_);
  return {};
}

Status PeerCore::start_watching() {
  const BlockedSignals blocked;
  has_thread_ = true;
  try {
    std::thread([self = shared_from_this()] { self->keep_watch(); }).detach();
  } catch (const std::system_error& error) {
    has_thread_ = false;
    return fail(Code::io, "cannot start a thread for messages: {}", error.what());
  }
  return {};
}

void PeerCore::keep_watch() {
  Lock lock(mutex_);
  while (!is_stopping_) {
    changed_.wait_for(lock, tick);
    if (!is_stopping_ && !is_pumping_) pump(lock, std::chrono::milliseconds(0));
    give_reports(lock);
  }
  has_thread_ = false;
  changed_.notify_all();
}

// --- connections ---

Link* PeerCore::link_of(int rank) {
  const auto found = links_.find(peer(rank).link);
  return found == links_.end() ? nullptr : found->second.get();
}

std::string PeerCore::name_of(int rank) {
  return fmt::format("rank {} ({})", rank, peer(rank).contact.text());
}

Link& PeerCore::add_link(Socket socket, Link::Stage stage, bool is_ours) {
  const std::uint64_t number = next_link_++;
  auto link =
      std::make_unique<Link>(number, std::move(socket), stage, options_.limit_write, Clock::now());
  link->is_ours = is_ours;
  epoll_event event{};
  event.events = EPOLLIN | (stage == Link::Stage::connecting ? EPOLLOUT : 0u);
  event.data.u64 = number;
  link->waits_to_write = stage == Link::Stage::connecting;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link->socket.get(), &event);
  return *(links_[number] = std::move(link));
}

void PeerCore::remove(std::uint64_t number) {
  const auto found = links_.find(number);
  if (found == links_.end()) return;
  const Link& link = *found->second;
  if (link.peer < 0) --strangers_;
  if (link.peer >= 0 && peer(link.peer).link == number) peer(link.peer).link = 0;
  links_.erase(found);
}

/// Begins a connection unless there is one, or the peer makes it.
void PeerCore::reach(int rank) {
  Peer& other = peer(rank);
  if (other.link != 0 || other.is_awaited) return;
  other.ways = ways_to(other.contact, peer(rank_).contact, options_.avoid_local_sockets);
  other.next_way = 0;
  other.must_be_there_by = Clock::now() + options_.patience;
  try_ways(rank);
}

/// What became of the way that was tried last.
void PeerCore::note_failed_way(Peer& other, const std::string& why) const {
  if (other.next_way >= other.ways.size()) return;
  if (!other.why_not.empty()) other.why_not += "; ";
  other.why_not += fmt::format("{}: {}", other.ways[other.next_way].text(), why);
}

void PeerCore::try_ways(int rank) {
  Peer& other = peer(rank);
  if (other.next_way == 0) other.why_not = other.ways.empty() ? "it has no address" : "";
  for (; other.next_way < other.ways.size(); ++other.next_way) {
    int error_number = 0;
    Socket socket = begin_connecting(other.ways[other.next_way], error_number);
    if (socket) {
      Link& link = add_link(std::move(socket), Link::Stage::connecting, true);
      link.peer = rank;
      other.link = link.number;
      return;
    }
    if (error_number == EAGAIN) return;  // many want to connect there; look_at_clock() tries again
    note_failed_way(other, reason(error_number));
  }
  // If it has ended, its neighbours know that, and why: perhaps because of another rank's failure.
  const Clock::time_point now = Clock::now();
  if (!other.refused_since) other.refused_since = now;
  other.next_way = 0;
  if (now - *other.refused_since < grace) return;
  cannot_reach(rank, other.why_not);
}

void PeerCore::try_next_way(Link& link, const std::string& why_not) {
  const int rank = link.peer;
  note_failed_way(peer(rank), why_not);
  ++peer(rank).next_way;
  remove(link.number);
  try_ways(rank);
}

void PeerCore::connected(Link& link) {
  int error_number = 0;
  socklen_t bytes = sizeof error_number;
  ::getsockopt(link.socket.get(), SOL_SOCKET, SO_ERROR, &error_number, &bytes);
  if (error_number != 0) return try_next_way(link, reason(error_number));
  if (process_behind(link.socket) < 0)
    return try_next_way(link, "a process of another user has taken its place");
  prepare_connection(link.socket);
  link.stage = Link::Stage::greeting;
  const Token& shown = peer(link.peer).contact.token;
  const auto address = reinterpret_cast<std::uintptr_t>(peer(rank_).contact.token.data());
  link.put(Frame{Frame::Kind::hello, static_cast<std::uint32_t>(rank_),
                 static_cast<std::uint32_t>(link.peer), shown.size(), 0, address},
           Blob(shown.begin(), shown.end()));
  flush(link);
}

void PeerCore::accept_from(const Socket& listening, bool is_local) {
  while (true) {
    Socket socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Otherwise it would be found ready again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        fail_network(Error{
            Code::io, fmt::format("rank {} cannot accept a connection: {}", rank_, reason(errno)),
            rank_});
      return;
    }
    if (strangers_ >= strangers_max || (is_local && process_behind(socket) < 0)) continue;
    prepare_connection(socket);
    ++strangers_;
    add_link(std::move(socket), Link::Stage::greeting, false);
  }
}

/// Of two connections that two ranks begin at the same time the one of the lower rank stays.
Status PeerCore::answer_hello(Link& link, const Frame& frame, Bytes payload) {
  const auto from = static_cast<int>(frame.subject);
  if (link.is_ours || link.peer >= 0 || frame.subject >= static_cast<std::uint32_t>(size_) ||
      from == rank_ || frame.channel != static_cast<std::uint32_t>(rank_) ||
      !is_token(payload, peer(rank_).contact.token))
    return fail(Code::untrusted, "a stranger");
  if (const Link* ours = link_of(from); ours != nullptr) {
    if (ours->stage == Link::Stage::open) return fail(Code::untrusted, "connected already");
    if (rank_ < from) {
      link.put(Frame{Frame::Kind::crossed});
      link.stage = Link::Stage::closing;
      flush(link);
      return {};
    }
    remove(ours->number);
  }
  --strangers_;
  link.peer = from;
  const Token& shown = peer(from).contact.token;
  const auto address = reinterpret_cast<std::uintptr_t>(peer(rank_).contact.token.data());
  link.put(Frame{Frame::Kind::welcome, static_cast<std::uint32_t>(rank_), frame.subject,
                 shown.size(), 0, address},
           Blob(shown.begin(), shown.end()));
  open_link(link, from, frame.address);
  return {};
}

Status PeerCore::take_welcome(Link& link, const Frame& frame, Bytes payload) {
  if (!link.is_ours || link.stage != Link::Stage::greeting ||
      !is_token(payload, peer(rank_).contact.token))
    return fail(Code::untrusted, "a stranger");
  open_link(link, link.peer, frame.address);
  return {};
}

void PeerCore::take_crossed(Link& link) {
  if (!link.is_ours || link.stage != Link::Stage::greeting) return;
  peer(link.peer).link = 0;
  peer(link.peer).is_awaited = true;
  link.stage = Link::Stage::closing;
}

/// Its token, read from its memory, shows that this is the process and that the kernel allows it.
void PeerCore::open_link(Link& link, int rank, std::uint64_t token_address) {
  Peer& other = peer(rank);
  other.link = link.number;
  other.is_awaited = false;
  other.must_be_there_by.reset();
  other.refused_since.reset();
  other.ways.clear();
  link.stage = Link::Stage::open;
  ++counts_.connections;
  ++version_;
  if (const pid_t process = process_behind(link.socket); process > 0) {
    Token found{};
    if (options_.may_copy_memory && copy(process, token_address, found) == 0 &&
        found == other.contact.token)
      link.process = process;
    link.process_watch = watch_process(process);
    if (link.process_watch)
      (void)watch_for_input(epoll_, link.process_watch, link.number | process_watch_bit);
  }
  if (failed_) send_error_to(link, Frame::Kind::failed, 0, *failed_);
  for (Waiting& each : std::exchange(other.waiting, {})) {
    ++counts_.frames_sent;
    if (each.owner != nullptr || each.owned.empty())
      link.put(each.frame, each.payload, each.owner);
    else
      link.put(each.frame, std::move(each.owned));
  }
  if (is_closing_) link.put(Frame{Frame::Kind::bye});
  flush(link);
}

int PeerCore::copy(pid_t process, std::uint64_t address, MutableBytes to) const {
  if (options_.refuse_copy)
    if (const int refused = options_.refuse_copy(address, to); refused != 0) return refused;
  return copy_from_process(process, address, to);
}

/// A connection that is broken shows that when it is read, after all that has arrived before.
void PeerCore::flush(Link& link) {
  if (link.stage == Link::Stage::connecting) return;
  if (link.has_output()) link.last_sent = Clock::now();
  const int error_number = link.flush([this](Operation& operation) { done(operation); });
  if (error_number == EFAULT)
    fail_network(
        Error{Code::io, fmt::format("rank {} cannot read what it has to send", rank_), rank_});
  watch(link);
}

void PeerCore::watch(Link& link) {
  if (link.has_output() == link.waits_to_write) return;
  link.waits_to_write = link.has_output();
  epoll_event event{};
  event.events = EPOLLIN | (link.waits_to_write ? EPOLLOUT : 0u);
  event.data.u64 = link.number;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.socket.get(), &event);
}

// --- what happens ---

void PeerCore::pump(Lock& lock, std::chrono::milliseconds timeout) {
  epoll_event events[32];
  int count = 0;
  if (timeout.count() == 0) {
    count = ::epoll_wait(epoll_.get(), events, std::size(events), 0);
  } else {
    is_pumping_ = true;
    lock.unlock();
    count =
        ::epoll_wait(epoll_.get(), events, std::size(events), static_cast<int>(timeout.count()));
    lock.lock();
    is_pumping_ = false;
  }
  for (int i = 0; i < count; ++i) handle(events[i].data.u64, events[i].events);
  look_at_clock();
  sweep();
}

void PeerCore::handle(std::uint64_t tag, std::uint32_t events) {
  if (tag == local_listener_tag) return accept_from(local_listener_, true);
  if (tag == network_listener_tag) return accept_from(network_listener_, false);
  const auto found = links_.find(tag & ~process_watch_bit);
  if (found == links_.end()) return;
  Link& link = *found->second;
  if ((tag & process_watch_bit) != 0) return process_ended(link);
  if (link.stage == Link::Stage::lost) return;
  if (link.stage == Link::Stage::connecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) connected(link);
    return;
  }
  if ((events & EPOLLOUT) != 0) flush(link);
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(link);
}

void PeerCore::read(Link& link) {
  const Link::End how = link.read(*this, Clock::now());
  if (how != Link::End::none && how != Link::End::more) ended(link, how);
}

/// Connections that have nothing more to do.
void PeerCore::sweep() {
  std::vector<std::uint64_t> over;
  for (const auto& [number, link] : links_)
    if (link->stage == Link::Stage::closing && (!link->has_output() || failed_))
      over.push_back(number);
  for (const std::uint64_t number : over) remove(number);
}

void PeerCore::look_at_clock() {
  const Clock::time_point now = Clock::now();
  const auto pause = now - last_look_;
  if (pause < tick / 2) return;
  last_look_ = now;
  // This process was stopped: what the others have sent meanwhile may still have to be read.
  if (pause > options_.silence / 4)
    for (const auto& [number, link] : links_) link->last_heard = link->begun = now;
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, link] : links_) numbers.push_back(number);
  for (const std::uint64_t number : numbers)
    if (const auto found = links_.find(number); found != links_.end())
      look_at_link(*found->second, now);
  for (int rank = 0; rank < size_ && !failed_; ++rank) {
    Peer& other = peer(rank);
    if (!other.must_be_there_by) continue;
    if (now > *other.must_be_there_by)
      cannot_reach(rank, fmt::format("no answer for {} ms{}{}", options_.patience.count(),
                                     other.why_not.empty() ? "" : "; ", other.why_not));
    else if (other.link == 0 && !other.is_awaited)
      try_ways(rank);
  }
}

/// Long enough for a process that is alive; short enough that each way is tried before the end.
std::chrono::milliseconds PeerCore::patience_with(const Link& link) const {
  if (link.stage == Link::Stage::lost) return grace;
  const std::size_t ways =
      link.peer < 0 ? 0 : peers_[static_cast<std::size_t>(link.peer)].ways.size();
  return options_.patience / std::max<std::int64_t>(4, 2 * static_cast<std::int64_t>(ways));
}

void PeerCore::look_at_link(Link& link, Clock::time_point now) {
  if (link.stage != Link::Stage::open) {
    if (now - link.begun < patience_with(link)) return;
    if (link.stage == Link::Stage::lost) lost(link);
    const bool is_opening =
        link.stage == Link::Stage::connecting || link.stage == Link::Stage::greeting;
    if (link.peer >= 0 && link.is_ours && is_opening) return try_next_way(link, "no answer");
    return remove(link.number);
  }
  if (now - link.last_heard > options_.silence)
    return fail_network(Error{Code::io,
                              fmt::format("{} has given no sign of life for {} ms",
                                          name_of(link.peer), options_.silence.count()),
                              link.peer});
  if (now - link.last_sent > options_.silence / 4 && !link.has_output()) {
    link.put(Frame{Frame::Kind::beat});
    flush(link);
  }
}

}  // namespace cairn
