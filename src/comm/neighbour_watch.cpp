#include "comm/neighbour_watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "comm/contact.hpp"
#include "comm/neighbour_connections.hpp"

namespace cairn {
namespace {

constexpr std::chrono::milliseconds looks_every(200);
constexpr int place_tag = 603;

/// What all ranks know of one.
struct RankProcess {
  std::uint64_t machine = 0;  ///< where its id is valid; 0: not known
  std::int64_t id = 0;
};

/// The kernel and its namespace of process ids.
std::uint64_t machine_of_ids() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat ids {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &ids) != 0) return 0;
  return std::hash<std::string>()(fmt::format("{}.{}.{}", boot, ids.st_dev, ids.st_ino)) | 1;
}

/// The node of the rank `from`, while the rank `to` gets that of this one. Settings may give ranks
/// of one machine different nodes.
std::string exchange_places(Communicator& comm, const std::string& mine, int to, int from) {
  std::array<char, 64> sent{};
  std::array<char, 64> got{};
  std::copy_n(mine.begin(), std::min(mine.size(), sent.size()), sent.begin());
  std::array<Request, 2> requests = {comm.irecv(mutable_bytes_of(got), from, place_tag),
                                     comm.isend(bytes_of(sent), to, place_tag)};
  wait_all(comm, requests);
  return std::string(got.data(), ::strnlen(got.data(), got.size()));
}

}  // namespace

struct NeighbourWatch::Watched {
  int rank = 0;
  std::string name;
  bool is_connection = false;  ///< else the process itself
  Socket socket;
  std::optional<Clock::time_point> ended_since = std::nullopt;

  enum class Look { lives, has_ended, unknown };
  Look look() const;
};

std::vector<int> ring_of_machines(std::span<const std::uint64_t> machine_of_rank) {
  std::unordered_map<std::uint64_t, int> first_ranks;
  std::vector<int> first_beside;
  for (const std::uint64_t machine : machine_of_rank) {
    const int rank = static_cast<int>(first_beside.size());
    first_beside.push_back(machine == 0 ? rank : first_ranks.emplace(machine, rank).first->second);
  }
  std::vector<int> ring(first_beside.size());
  std::iota(ring.begin(), ring.end(), 0);
  std::stable_sort(ring.begin(), ring.end(), [&](int a, int b) {
    return first_beside[static_cast<std::size_t>(a)] < first_beside[static_cast<std::size_t>(b)];
  });
  return ring;
}

NeighbourWatch::NeighbourWatch(Communicator& comm, const std::string& place,
                               const NeighbourWatchOptions& options)
    : last_messages_take_(options.last_messages_take), process_(::getpid()) {
  const auto size = static_cast<std::size_t>(comm.size());
  const RankProcess mine{options.machine.value_or(machine_of_ids()), process_};
  std::vector<RankProcess> all(size);
  comm.allgather(bytes_of(mine), std::as_writable_bytes(std::span(all)));
  std::vector<std::uint64_t> machines;
  for (const RankProcess& each : all) machines.push_back(each.machine);
  const std::vector<int> ring = ring_of_machines(machines);
  const auto at =
      static_cast<std::size_t>(std::find(ring.begin(), ring.end(), comm.rank()) - ring.begin());
  const int next = ring[(at + 1) % size];
  const int before = ring[(at + size - 1) % size];
  const auto is_here = [&](int rank) {
    return rank == comm.rank() ||
           (mine.machine != 0 && machines[static_cast<std::size_t>(rank)] == mine.machine);
  };
  if (const int beside = is_here(next) ? next : *std::find_if(ring.begin(), ring.end(), is_here);
      beside != comm.rank()) {
    const int watcher =
        is_here(before) ? before : *std::find_if(ring.rbegin(), ring.rend(), is_here);
    const std::string its_place = exchange_places(comm, place, watcher, beside);
    const std::int64_t process = all[static_cast<std::size_t>(beside)].id;
    watched_.push_back(Watched{beside, fmt::format("process {} on {}", process, its_place), false,
                               watch_process(static_cast<pid_t>(process))});
  }
  const auto if_elsewhere = [&](int rank) { return is_here(rank) ? -1 : rank; };
  NeighbourConnections made =
      connect_neighbours(comm, if_elsewhere(next), if_elsewhere(before), place, options);
  watched_.push_back(Watched{next, made.contact_of_next.text(), true, std::move(made.next)});
  std::erase_if(watched_, [](const Watched& each) { return !each.socket; });
  if (made.before) watched_by_ = std::make_unique<Socket>(std::move(made.before));
}

NeighbourWatch::~NeighbourWatch() {
  const std::byte farewell{};
  if (watched_by_ && ::getpid() == process_)
    (void)::send(watched_by_->get(), &farewell, sizeof farewell, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// A connection that ends in order, without farewell, is that of a process that is gone.
NeighbourWatch::Watched::Look NeighbourWatch::Watched::look() const {
  if (!is_connection) {
    pollfd process{socket.get(), POLLIN, 0};
    return ::poll(&process, 1, 0) > 0 ? Look::has_ended : Look::lives;
  }
  std::byte farewell{};
  const ssize_t got = ::recv(socket.get(), &farewell, sizeof farewell, MSG_DONTWAIT);
  if (got == 0) return Look::has_ended;
  const bool is_silent = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return is_silent ? Look::lives : Look::unknown;
}

Status NeighbourWatch::failure() {
  if (watched_.empty()) return {};
  const Clock::time_point now = Clock::now();
  if (now < next_look_) return {};
  next_look_ = now + looks_every;
  std::erase_if(watched_, [&](Watched& each) {
    const auto look = each.ended_since ? Watched::Look::has_ended : each.look();
    if (look == Watched::Look::has_ended && !each.ended_since) each.ended_since = now;
    return look == Watched::Look::unknown;
  });
  for (const Watched& each : watched_)
    if (each.ended_since && now - *each.ended_since >= last_messages_take_)
      return tl::unexpected(
          Error{Code::io, fmt::format("rank {} ({}) has ended", each.rank, each.name), each.rank});
  return {};
}

std::vector<int> NeighbourWatch::watched() const {
  std::vector<int> ranks;
  for (const Watched& each : watched_) ranks.push_back(each.rank);
  return ranks;
}

}  // namespace cairn
