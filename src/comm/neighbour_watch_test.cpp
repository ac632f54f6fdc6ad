#include "comm/neighbour_watch.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <thread>

#include "comm/alone.hpp"
#include "comm/contact.hpp"
#include "comm/peer_processes.hpp"
#include "comm/team.hpp"

namespace cairn {
namespace {

/// Rank 0 of two, of which rank 1 is another process.
class TwoRanks final : public Communicator {
 public:
  explicit TwoRanks(pid_t other) : other_(other) {}

  int rank() const override { return 0; }
  int size() const override { return 2; }
  Request isend(Bytes, int, int) override { return nullptr; }
  Request irecv(MutableBytes place, int, int) override {
    std::memcpy(place.data(), "n2", 2);
    return nullptr;
  }
  void idle() override {}
  /// The other one says the same, but for its process id.
  void allgather(Bytes mine, MutableBytes all) override {
    const auto id = static_cast<std::int64_t>(other_);
    std::memcpy(all.data(), mine.data(), mine.size());
    std::memcpy(all.data() + mine.size(), mine.data(), mine.size());
    std::memcpy(all.data() + 2 * mine.size() - sizeof id, &id, sizeof id);
  }

 private:
  const pid_t other_;
};

/// No rank may need so long: a test that does fails by its own time limit.
constexpr std::chrono::hours unlimited(1);

Status wait_for_failure(NeighbourWatch& watch, std::chrono::seconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  Status found;
  while (found && std::chrono::steady_clock::now() < end) {
    found = watch.failure();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return found;
}

/// Nothing is under way in these tests.
constexpr std::chrono::milliseconds no_messages(0);

TEST(NeighbourWatch, NamesTheRankThatWasKilled) {
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  TwoRanks comm(child);
  NeighbourWatchOptions options;
  options.last_messages_take = no_messages;
  NeighbourWatch watch(comm, "n1", options);
  EXPECT_TRUE(wait_for_failure(watch, std::chrono::seconds(1))) << "it lives";
  ::kill(child, SIGKILL);  // and stays as a zombie, as a child of a launcher that does not look
  const Status gone = wait_for_failure(watch, std::chrono::seconds(20));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().rank, 1);
  EXPECT_EQ(gone.error().text, fmt::format("rank 1 (process {} on n2) has ended", child));
  ::waitpid(child, nullptr, 0);
}

TEST(NeighbourWatch, AnEndIsNoFailureWhileLastMessagesMayArrive) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  TwoRanks comm(child);
  // The first look of a watch is at once.
  const auto first_look = [&](std::chrono::milliseconds last_messages_take) {
    NeighbourWatchOptions options;
    options.last_messages_take = last_messages_take;
    return NeighbourWatch(comm, "n1", options).failure();
  };
  EXPECT_FALSE(first_look(no_messages)) << "it sees the end";
  EXPECT_TRUE(first_look(unlimited));
  EXPECT_GE(NeighbourWatchOptions().last_messages_take, std::chrono::seconds(1)) << "by default";
  ::waitpid(child, nullptr, 0);
}

TEST(NeighbourWatch, ARankAloneWatchesNothing) {
  Alone comm;
  NeighbourWatch watch(comm, "n1");
  EXPECT_TRUE(watch.failure());
}

using Machines = std::vector<std::uint64_t>;

TEST(RingOfMachines, HasTheRanksOfEachOneTogether) {
  const struct {
    const char* what;
    Machines machine_of_rank;
    std::vector<int> ring;
  } rows[] = {
      {"one rank", {5}, {0}},
      {"one machine", {5, 5, 5}, {0, 1, 2}},
      {"in blocks", {9, 9, 7, 7, 8}, {0, 1, 2, 3, 4}},
      {"in turn", {9, 7, 8, 9, 7}, {0, 3, 1, 4, 2}},
      {"backwards", {7, 8, 9, 8, 7}, {0, 4, 1, 3, 2}},
      {"one rank on each", {3, 2, 1}, {0, 1, 2}},
      {"some on unknown ones", {0, 4, 0, 4, 0}, {0, 1, 3, 2, 4}},
  };
  for (const auto& row : rows)
    EXPECT_EQ(ring_of_machines(row.machine_of_rank), row.ring) << row.what;
}

/// All processes are on this machine, whatever they say.
NeighbourWatchOptions on_machine(std::uint64_t machine) {
  NeighbourWatchOptions options;
  options.machine = machine;
  options.loopback = true;
  options.last_messages_take = no_messages;
  return options;
}

/// Ranks of one machine may have nodes of different names.
std::string name_of_node(int rank) { return fmt::format("n{}", rank); }

/// Changes the contacts that this rank sends, which say where others reach it.
class ChangedContacts final : public Communicator {
 public:
  using Change = std::function<void(Contact&)>;

  ChangedContacts(Communicator& inner, Change change) : inner_(inner), change_(std::move(change)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Request isend(Bytes data, int to, int tag) override {
    if (data.size() != sizeof(Contact)) return inner_.isend(data, to, tag);
    Contact& contact = sent_.emplace_back();
    std::memcpy(&contact, data.data(), sizeof contact);
    change_(contact);
    return inner_.isend(bytes_of(contact), to, tag);
  }
  Request irecv(MutableBytes buffer, int from, int tag) override {
    return inner_.irecv(buffer, from, tag);
  }
  void idle() override { inner_.idle(); }

 private:
  Communicator& inner_;
  const Change change_;
  std::deque<Contact> sent_;
};

using Watched = std::vector<std::vector<int>>;

/// The ranks that each one watches, all of them threads of this process.
Watched watched_by_each(const Machines& machines, std::chrono::milliseconds patience = unlimited,
                        const std::map<int, ChangedContacts::Change>& changes = {}) {
  Watched watched(machines.size());
  Team team(static_cast<int>(machines.size()));
  team.run([&](Communicator& inner) {
    const auto rank = static_cast<std::size_t>(inner.rank());
    const auto found = changes.find(inner.rank());
    ChangedContacts comm(inner, found == changes.end() ? [](Contact&) {} : found->second);
    NeighbourWatchOptions options = on_machine(machines[rank]);
    options.patience = patience;
    NeighbourWatch watch(comm, name_of_node(inner.rank()), options);
    watched[rank] = watch.watched();
    inner.barrier();
  });
  return watched;
}

TEST(NeighbourWatch, GoesAroundEachMachineAndAllOfThem) {
  EXPECT_EQ(watched_by_each({7, 7, 7}), (Watched{{1}, {2}, {0}}));
  EXPECT_EQ(watched_by_each({7, 8}), (Watched{{1}, {0}})) << "each is before and behind the other";
  EXPECT_EQ(watched_by_each({7, 8, 9, 6}), (Watched{{1}, {2}, {3}, {0}})) << "one rank on each";
  EXPECT_EQ(watched_by_each({7, 8, 9, 7, 8}), (Watched{{3}, {4}, {0}, {0, 1}, {1, 2}}))
      << "in turn";
  EXPECT_EQ(watched_by_each({7, 7, 8, 8}), (Watched{{1}, {0, 2}, {3}, {2, 0}}));
  EXPECT_EQ(watched_by_each({0, 0}), (Watched{{1}, {0}})) << "no machine is known";
}

/// Takes connections to loopback.
struct Listener {
  Listener() { socket = std::move(*listen_on_network(contact, true)); }
  Contact contact;
  Socket socket;
};

Socket connect_to(const Contact& contact) {
  Contact nobody;
  int error_number = 0;
  Socket socket = begin_connecting(ways_to(contact, nobody, true).front(), error_number);
  pollfd look{socket.get(), POLLOUT, 0};
  ::poll(&look, 1, 5000);
  return socket;
}

TEST(NeighbourWatch, WithoutAConnectionWatchesItsOwnMachine) {
  const Machines machines = {7, 7, 8, 8};
  const Watched expected = {{1}, {0}, {3}, {2, 0}};
  const auto to_nothing = [](Contact& contact) { contact.port = 0; };
  EXPECT_EQ(watched_by_each(machines, unlimited, {{2, to_nothing}}), expected);

  const auto to_closed_port = [](Contact& contact) { contact.port = Listener().contact.port; };
  EXPECT_EQ(watched_by_each(machines, unlimited, {{2, to_closed_port}}), expected);

  const Listener silent;
  const std::chrono::milliseconds patience(500);
  const auto to_silence = [&](Contact& contact) { contact.port = silent.contact.port; };
  EXPECT_EQ(watched_by_each(machines, patience, {{2, to_silence}}), expected);
  EXPECT_EQ(watched_by_each({7, 8, 9}, patience, {{1, to_silence}}), (Watched{{}, {2}, {0}}))
      << "alone on its machine";
}

/// Answers as one that does not know the token of the rank that connects.
TEST(NeighbourWatch, DoesNotTakeAStrangerForItsNeighbour) {
  Listener stranger;
  std::thread answering([&] {
    pollfd look{stranger.socket.get(), POLLIN, 0};
    ::poll(&look, 1, 10000);
    const Socket link(::accept4(stranger.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Token shown{};
    (void)::recv(link.get(), shown.data(), shown.size(), MSG_WAITALL);
    (void)::send(link.get(), shown.data(), shown.size(), MSG_NOSIGNAL);
  });
  const auto to_stranger = [&](Contact& contact) { contact.port = stranger.contact.port; };
  EXPECT_EQ(watched_by_each({7, 7, 8, 8}, unlimited, {{2, to_stranger}}),
            (Watched{{1}, {0}, {3}, {2, 0}}));
  answering.join();
}

TEST(NeighbourWatch, IsNotKeptFromItsNeighbourByStrangers) {
  constexpr int silent_ones = 100;
  std::vector<Socket> strangers;
  const auto let_strangers_come = [&](Contact& contact) {
    for (const std::size_t bytes : {4, 16, 200}) {
      const Blob rubbish(bytes, std::byte{'x'});
      const Socket& stranger = strangers.emplace_back(connect_to(contact));
      EXPECT_EQ(::send(stranger.get(), rubbish.data(), bytes, MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes));
    }
    (void)connect_to(contact);  // and away
    for (int i = 0; i < silent_ones; ++i) strangers.push_back(connect_to(contact));
  };
  EXPECT_EQ(watched_by_each({7, 8}, unlimited, {{1, let_strangers_come}}), (Watched{{1}, {0}}));
}

// --- ends, among processes ---

enum Places { all_watch, has_acted };

/// What a rank finds out of those that it watches.
std::string found_by(NeighbourWatch& watch) {
  const std::vector<int> watched = watch.watched();
  for (const double until = PeerProcesses::now_s() + 20; PeerProcesses::now_s() < until;) {
    if (const Status status = watch.failure(); !status) return status.error().text;
    if (watch.watched() != watched)
      return fmt::format("watches {} of {} ranks", watch.watched().size(), watched.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return "nothing";
}

struct Ended {
  std::vector<std::string> found;  ///< by each rank; empty for `actor` and those that do not look
  std::int64_t actor = 0;          ///< its process
};

using Act = std::function<void(std::unique_ptr<NeighbourWatch>&)>;

/// When all watch each other, `actor` acts. Only `watchers` wait for what they find.
Ended let_act(const Machines& machines, int actor, const std::vector<int>& watchers,
              const Act& act) {
  PeerProcesses processes(static_cast<int>(machines.size()));
  processes.start([&](int rank) -> std::string {
    const std::uint64_t machine = machines[static_cast<std::size_t>(rank)];
    const auto network = processes.open(rank);
    auto watch = std::make_unique<NeighbourWatch>(*network->begin(1), name_of_node(rank),
                                                  on_machine(machine));
    processes.meet(all_watch);
    if (rank == actor) act(watch);
    std::string found;
    if (std::count(watchers.begin(), watchers.end(), rank) != 0) {
      found = found_by(*watch);
      ++processes.number(has_acted);
    }
    // The end of a rank is no event before that.
    while (processes.number(has_acted) < static_cast<std::int64_t>(watchers.size()))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return found;
  });
  Ended ended;
  ended.actor = processes.process(actor);
  for (const PeerProcesses::End& end : processes.wait()) ended.found.push_back(end.text);
  return ended;
}

void die(std::unique_ptr<NeighbourWatch>&) { ::raise(SIGKILL); }

TEST(NeighbourWatch, NamesTheRankThatWasKilledOnAnotherMachine) {
  const Ended ended = let_act({7, 7, 8}, 2, {1}, die);
  EXPECT_EQ(ended.found[1], fmt::format("rank 2 (process {} on n2) has ended", ended.actor));
}

TEST(NeighbourWatch, NamesTheFirstRankOfItsMachineAndOfTheNextOne) {
  const Ended ended = let_act({7, 7, 8}, 0, {1, 2}, die);
  const std::string first = fmt::format("rank 0 (process {} on n0) has ended", ended.actor);
  EXPECT_EQ(ended.found[1], first);
  EXPECT_EQ(ended.found[2], first);
}

TEST(NeighbourWatch, NamesTheRankThatWasKilledWhereEachIsAlone) {
  const Ended ended = let_act({7, 8, 9}, 0, {2}, die);
  EXPECT_EQ(ended.found[2], fmt::format("rank 0 (process {} on n0) has ended", ended.actor));
}

/// The connections of its watch: those of the network among the processes are no TCP.
std::vector<int> own_tcp_connections() {
  std::vector<int> found;
  for (int each = 3; each < 256; ++each) {
    sockaddr_storage peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(each, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
      found.push_back(each);
  }
  return found;
}

TEST(NeighbourWatch, ALostConnectionIsNoDeath) {
  const Ended ended = let_act({7, 7, 8}, 2, {1}, [](std::unique_ptr<NeighbourWatch>&) {
    const linger reset{1, 0};
    for (const int each : own_tcp_connections()) {
      ::setsockopt(each, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      const Socket nothing(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ::dup3(nothing.get(), each, O_CLOEXEC);  // closes it, and its number stays in use
    }
  });
  EXPECT_EQ(ended.found[1], "watches 1 of 2 ranks") << "and still its own machine";
}

TEST(NeighbourWatch, AFarewellIsNoDeath) {
  const Ended ended =
      let_act({7, 8}, 1, {0}, [](std::unique_ptr<NeighbourWatch>& watch) { watch.reset(); });
  EXPECT_EQ(ended.found[0], "watches 0 of 1 ranks");
}

TEST(NeighbourWatch, AChildOfTheNeighbourSaysNoFarewellForIt) {
  const Ended ended = let_act({7, 8}, 1, {0}, [](std::unique_ptr<NeighbourWatch>& watch) {
    const pid_t child = ::fork();
    if (child == 0) {
      watch.reset();
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    die(watch);
  });
  EXPECT_EQ(ended.found[0], fmt::format("rank 1 (process {} on n1) has ended", ended.actor));
}

}  // namespace
}  // namespace cairn
