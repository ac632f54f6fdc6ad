#include "comm/neighbour_watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "comm/contact.hpp"

namespace cairn {
namespace {

constexpr std::chrono::milliseconds looks_every(200);
/// An orderly program may end while others still receive what it has sent.
constexpr std::chrono::seconds last_messages_take(3);

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

}  // namespace

NeighbourWatch::NeighbourWatch(Communicator& comm, const std::string& place) : place_(place) {
  const RankProcess mine{machine_of_ids(), ::getpid()};
  std::vector<RankProcess> all(static_cast<std::size_t>(comm.size()));
  comm.allgather(bytes_of(mine), std::as_writable_bytes(std::span(all)));
  for (int step = 1; step < comm.size() && neighbour_ < 0; ++step) {
    const int rank = (comm.rank() + step) % comm.size();
    const RankProcess& other = all[static_cast<std::size_t>(rank)];
    if (mine.machine == 0 || other.machine != mine.machine) continue;
    neighbour_ = rank;
    process_ = other.id;
  }
  if (neighbour_ < 0) return;
  Socket watch = watch_process(static_cast<pid_t>(process_));
  if (watch) watch_ = std::make_unique<Socket>(std::move(watch));
}

NeighbourWatch::~NeighbourWatch() = default;

bool NeighbourWatch::has_ended() const {
  pollfd look{watch_->get(), POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

Status NeighbourWatch::failure() {
  if (!watch_) return {};
  const Clock::time_point now = Clock::now();
  if (now < next_look_) return {};
  next_look_ = now + looks_every;
  if (!ended_since_ && has_ended()) ended_since_ = now;
  if (!ended_since_ || now - *ended_since_ < last_messages_take) return {};
  Error gone{Code::io,
             fmt::format("rank {} (process {} on {}) has ended", neighbour_, process_, place_),
             neighbour_};
  return tl::unexpected(std::move(gone));
}

}  // namespace cairn
