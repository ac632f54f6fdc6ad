#include "comm/peer_network.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <filesystem>
#include <random>

#include "comm/communicator_checks.hpp"
#include "comm/contact.hpp"
#include "comm/frame.hpp"
#include "comm/peer_processes.hpp"
#include "comm/team.hpp"

namespace cairn {
namespace {

class CommunicatorOverPeers : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(CommunicatorOverPeers, DoesWhatEveryCommunicatorMust) {
  const auto [size, over_tcp] = GetParam();
  Team team(size);
  PeerNetworkOptions options;
  options.avoid_local_sockets = over_tcp;
  EXPECT_NO_THROW(team.run([&](Communicator& comm) {
    auto network = PeerNetwork::open(comm, options);
    checks::require(network.has_value(), network ? "" : network.error().text);
    {
      const auto channel = (*network)->begin(1);
      checks::all(*channel);
    }
    comm.barrier();
    const Status closed = (*network)->close();
    checks::require(closed.has_value(), closed ? "" : closed.error().text);
  }));
}

INSTANTIATE_TEST_SUITE_P(Sizes, CommunicatorOverPeers,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 7, 8, 16),
                                          testing::Bool()));

/// All ranks as processes, each of which must return "fine".
void expect_fine(int size, const std::function<std::string(PeerProcesses&, int rank)>& rank_main) {
  PeerProcesses processes(size);
  processes.start([&](int rank) { return rank_main(processes, rank); });
  int rank = 0;
  for (const auto& end : processes.wait(60)) {
    EXPECT_EQ(end.status, 0) << "rank " << rank;
    EXPECT_EQ(end.text, "fine") << "rank " << rank;
    ++rank;
  }
}

class PeersAsProcesses : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(PeersAsProcesses, DoWhatEveryCommunicatorMust) {
  const auto [size, over_tcp] = GetParam();
  PeerNetworkOptions options;
  options.avoid_local_sockets = over_tcp;
  expect_fine(size, [&](PeerProcesses& processes, int rank) -> std::string {
    const auto network = processes.open(rank, options);
    for (const std::uint32_t channel : {1, 2, 7}) checks::all(*network->begin(channel));
    const auto last = network->begin(8);
    last->barrier();
    const Status closed = network->close();
    return closed ? "fine" : closed.error().text;
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, PeersAsProcesses,
                         testing::Combine(testing::Values(2, 7, 16), testing::Bool()));

std::size_t open_descriptors() {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

TEST(PeerNetwork, LeavesNoDescriptorsAndPassesNoneToOtherPrograms) {
  expect_fine(4, [&](PeerProcesses& processes, int rank) -> std::string {
    const std::size_t before = open_descriptors();
    auto network = processes.open(rank);
    checks::messages_go_round_a_ring(*network->begin(1));
    namespace fs = std::filesystem;
    for (const auto& each : fs::directory_iterator("/proc/self/fd")) {
      const int descriptor = std::stoi(each.path().filename());
      std::error_code gone;
      const std::string target = fs::read_symlink(each.path(), gone).string();
      if (target.find("socket:") == std::string::npos &&
          target.find("anon_inode") == std::string::npos)
        continue;
      if ((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) return "passed on: " + target;
    }
    if (!network->close()) return "close";
    network.reset();
    return open_descriptors() == before ? "fine" : "descriptors are left";
  });
}

TEST(PeerNetwork, NeverUsesTheDescriptorsOfInputAndOutput) {
  expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
    for (int descriptor = 0; descriptor < 3; ++descriptor) ::close(descriptor);
    const auto network = processes.open(rank);
    checks::messages_go_round_a_ring(*network->begin(1));
    for (int descriptor = 0; descriptor < 3; ++descriptor)
      if (::fcntl(descriptor, F_GETFD) >= 0) return "uses one of them";
    return "fine";
  });
}

TEST(PeerNetwork, ChangesNoSignalHandlersAndItsThreadTakesNoSignals) {
  expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
    std::vector<struct sigaction> before(65);
    for (int number = 1; number < 65; ++number)
      ::sigaction(number, nullptr, &before[static_cast<std::size_t>(number)]);
    const auto network = processes.open(rank);
    checks::messages_go_round_a_ring(*network->begin(1));
    for (int number = 1; number < 65; ++number) {
      struct sigaction now {};
      ::sigaction(number, nullptr, &now);
      if (now.sa_handler != before[static_cast<std::size_t>(number)].sa_handler) return "a handler";
    }
    // The calling thread blocks it, so it stays pending unless another thread takes it.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::kill(::getpid(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    return "fine";
  });
}

TEST(PeerNetwork, CopiesLongMessagesFromMemoryToMemory) {
  expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
    const auto network = processes.open(rank);
    const auto comm = network->begin(1);
    const std::uint64_t before = network->counts().frames_sent;
    Blob data = checks::pattern(3, 1 << 20);
    Blob copy(data.size());
    if (rank == 0) send(*comm, data, 1, 5);
    if (rank == 1) recv(*comm, copy, 0, 5);
    if (rank == 1 && copy != data) return "wrong bytes";
    if (network->counts().frames_sent - before != 1) return "more than an offer and its answer";
    if (network->counts().copied_bytes != (rank == 1 ? data.size() : 0)) return "not copied";
    comm->barrier();
    return "fine";
  });
}

/// Long messages in both directions at once, beginning with the given number of refusals.
std::string exchange_long_messages(PeerNetwork& network) {
  const auto comm = network.begin(1);
  const int other = 1 - comm->rank();
  for (std::uint32_t round = 0; round < 6; ++round) {
    const Blob mine = checks::pattern(round + static_cast<std::uint32_t>(comm->rank()), 700001);
    const Blob expected = checks::pattern(round + static_cast<std::uint32_t>(other), 700001);
    Blob first(mine.size());
    Blob second(mine.size());
    Request requests[] = {comm->irecv(first, other, 1), comm->irecv(second, other, 2),
                          comm->isend(mine, other, 2), comm->isend(mine, other, 1)};
    wait_all(*comm, requests);
    if (first != expected || second != expected) return "wrong bytes";
  }
  comm->barrier();
  return "fine";
}

TEST(PeerNetwork, SendsThroughTheSocketWhatTheKernelRefusesToCopy) {
  for (const int refuse_from : {0, 1, 4}) {
    for (const int with : {EPERM, EFAULT}) {
      expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
        PeerNetworkOptions options;
        int copies = 0;
        options.refuse_copy = [&](std::uint64_t, MutableBytes) {
          return rank == 1 && copies++ >= refuse_from ? with : 0;
        };
        const auto network = processes.open(rank, options);
        const std::string outcome = exchange_long_messages(*network);
        if (rank == 0 && network->counts().copied_bytes == 0) return "rank 0 may copy";
        if (rank == 1 && refuse_from == 0 && network->counts().copied_bytes != 0) return "copied";
        return outcome;
      });
    }
  }
}

TEST(PeerNetwork, WorksWhereTheKernelRefusesToCopy) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user whose processes are protected";
  expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return "setuid";
    ::prctl(PR_SET_DUMPABLE, 0);
    const auto network = processes.open(rank);
    const std::string outcome = exchange_long_messages(*network);
    return network->counts().copied_bytes == 0 ? outcome : "the kernel allows it";
  });
}

TEST(PeerNetwork, CarriesMessagesOfOneGiB) {
  for (const bool may_copy : {true, false}) {
    expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
      PeerNetworkOptions options;
      options.may_copy_memory = may_copy;
      const auto network = processes.open(rank, options);
      const auto comm = network->begin(1);
      constexpr std::size_t bytes = Communicator::max_message_bytes;
      auto* const memory =
          static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
      const MutableBytes message(memory, bytes);
      if (rank == 0) message[0] = message[bytes / 2] = message[bytes - 1] = std::byte{7};
      if (rank == 0) send(*comm, message, 1, 1);
      if (rank == 1) recv(*comm, message, 0, 1);
      for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1})
        if (message[at] != std::byte{7}) return "wrong bytes";
      if (message[1] != std::byte{0} || message[bytes - 2] != std::byte{0}) return "wrong bytes";
      comm->barrier();
      return "fine";
    });
  }
}

TEST(PeerNetwork, KeepsNoMoreThanAMiBOfMessagesThatNobodyReceives) {
  for (const std::size_t bytes : {0, 1000, 32 << 10}) {
    expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
      const auto network = processes.open(rank);
      const auto comm = network->begin(1);
      const std::size_t count = bytes > 1000 ? 300 : 20000;
      const Blob content = checks::pattern(1, bytes);
      if (rank == 0) {
        std::vector<Request> sends;
        for (std::size_t i = 0; i < count; ++i) sends.push_back(comm->isend(content, 1, 1));
        comm->barrier();
        wait_all(*comm, sends);
        comm->barrier();
        return "fine";
      }
      comm->barrier();
      if (network->counts().kept_bytes > 1 << 20) return "keeps too much";
      for (std::size_t i = 0; i < count; ++i) {
        Blob buffer(bytes);
        recv(*comm, buffer, 0, 1);
        if (buffer != content) return "wrong bytes";
      }
      comm->barrier();
      return network->counts().kept_bytes == 0 ? "fine" : "keeps what was received";
    });
  }
}

TEST(PeerNetwork, NeedsLogarithmicallyManyFramesAndConnections) {
  expect_fine(16, [&](PeerProcesses& processes, int rank) -> std::string {
    const auto network = processes.open(rank);
    const auto comm = network->begin(1);
    comm->barrier();
    const std::uint64_t before = network->counts().frames_sent;
    comm->barrier();
    const std::uint64_t of_barrier = network->counts().frames_sent - before;
    if (of_barrier != 4) return fmt::format("{} frames for a barrier", of_barrier);
    // 1, 2, 4 and 8 before and behind; the last two are the same rank.
    if (network->counts().connections != 7)
      return fmt::format("{} connections", network->counts().connections);
    comm->barrier();
    const int far = (rank + 5) % 16;
    const int other_far = (rank + 11) % 16;
    std::int32_t value = rank;
    std::int32_t theirs = -1;
    Request pair[] = {comm->irecv(mutable_bytes_of(theirs), other_far, 1),
                      comm->isend(bytes_of(value), far, 1)};
    wait_all(*comm, pair);
    comm->barrier();
    if (network->counts().connections != 9)
      return fmt::format("{} connections after a message", network->counts().connections);
    return theirs == other_far ? "fine" : "wrong bytes";
  });
}

TEST(PeerNetwork, UnwindsOneChannelOnAllRanksIfARankLeavesIt) {
  expect_fine(5, [&](PeerProcesses& processes, int rank) -> std::string {
    const auto network = processes.open(rank);
    for (std::uint32_t channel = 1; channel < 30; ++channel) {
      const auto comm = network->begin(channel);
      const int leaver = static_cast<int>(channel) % 5;
      try {
        comm->barrier();
        Blob buffer(100000);
        const int next = (rank + 1) % 5;
        Request pair[] = {comm->irecv(buffer, (rank + 4) % 5, 1), comm->isend(buffer, next, 1)};
        if (channel % 3 == 0 && rank == leaver)
          network->cancel(channel, Error{Code::io, "stop", -1});
        if (channel % 3 == 1 && rank == leaver) continue;  // drops its messages
        wait_all(*comm, pair);
        checks::all_of_one(*comm);
        if (channel % 3 != 2) {
          recv(*comm, buffer, next, 99);
          return "not unwound";
        }
      } catch (const TransportFailed& failed) {
        if (channel % 3 == 2 || failed.error().rank != leaver)
          return fmt::format("channel {}: rank {}: {}", channel, failed.error().rank,
                             failed.what());
      }
    }
    checks::all_of_one(*network->begin(100));
    return network->failure() ? "fine" : network->failure().error().text;
  });
}

TEST(PeerNetwork, KeepsMessagesOfALaterChannelForThatChannel) {
  using std::chrono::milliseconds;
  for (const std::size_t bytes : {4, 100000}) {
    for (const bool is_early : {false, true}) {
      expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
        const auto network = processes.open(rank);
        const Blob content = checks::pattern(9, bytes);
        Blob buffer(bytes);
        if (rank == 1) {
          std::this_thread::sleep_for(milliseconds(is_early ? 0 : 100));
          network->begin(1);
          const auto comm = network->begin(2);
          send(*comm, content, 0, 1);
          comm->barrier();
          return "fine";
        }
        std::this_thread::sleep_for(milliseconds(is_early ? 100 : 0));
        {
          const auto comm = network->begin(1);
          const Request request = comm->irecv(buffer, 1, 1);
          const double until = PeerProcesses::now_s() + 0.3;
          while (PeerProcesses::now_s() < until) {
            if (request->test()) return "a channel gets what belongs to another one";
            comm->idle();
          }
        }
        const auto comm = network->begin(2);
        recv(*comm, buffer, 1, 1);
        comm->barrier();
        return buffer == content ? "fine" : "wrong bytes";
      });
    }
  }
}

TEST(PeerNetwork, EndsAChannelWhereAMessageHasAnotherSizeThanItsReceiverExpects) {
  for (const std::size_t bytes : {4, 100000}) {
    for (const bool is_early : {false, true}) {
      expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
        const auto network = processes.open(rank);
        const auto comm = network->begin(1);
        Blob buffer(bytes + static_cast<std::size_t>(rank));
        try {
          if (is_early == (rank == 0)) std::this_thread::sleep_for(std::chrono::milliseconds(30));
          if (rank == 0) send(*comm, buffer, 1, 1);
          if (rank == 1) recv(*comm, buffer, 0, 1);
          comm->barrier();
        } catch (const TransportFailed& failed) {
          return failed.error().code == Code::differs ? "fine" : failed.error().text;
        }
        return "accepted";
      });
    }
  }
}

TEST(PeerNetwork, WritesNothingIntoTheBufferOfAReceiveThatIsNoMore) {
  using std::chrono::milliseconds;
  expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
    PeerNetworkOptions options;
    options.may_copy_memory = false;
    int pieces = 0;
    options.limit_write = [&](std::size_t bytes) -> std::size_t {
      if (bytes < 100000) return bytes;
      if (++pieces == 2) std::this_thread::sleep_for(milliseconds(400));
      return 30000;
    };
    const auto network = processes.open(rank, options);
    Blob buffer(200000, std::byte{rank == 0 ? std::uint8_t{1} : std::uint8_t{0}});
    try {
      const auto comm = network->begin(1);
      if (rank == 0) send(*comm, buffer, 1, 1);
      if (rank == 0) comm->barrier();
      const Request request = comm->irecv(buffer, 0, 1);
      while (buffer[100] == std::byte{0}) comm->idle();
    } catch (const TransportFailed&) {
    }
    std::fill(buffer.begin(), buffer.end(), std::byte{2});
    network->begin(2)->barrier();
    const bool is_untouched = buffer == Blob(buffer.size(), std::byte{2});
    return is_untouched ? "fine" : "the buffer has changed";
  });
}

// --- strangers ---

/// Connects to what a process listens on, with a time limit for its answers.
Socket stranger_to(const Contact& contact) {
  const std::vector<Way> ways = ways_to(contact, contact, contact.port != 0);
  int error_number = 0;
  Socket socket = begin_connecting(ways.at(0), error_number);
  ::fcntl(socket.get(), F_SETFL, 0);
  const timeval limit{2, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return socket;
}

void write_to(const Socket& socket, Bytes bytes) {
  (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// "closed" if the other side closes it without a byte.
std::string answer_of(const Socket& socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET) ? "closed"
         : got > 0                                    ? "answers"
                                                      : "stays open";
}

/// Keeps what rank 0 has exchanged.
PeerNetwork::Exchange keep_contact(PeerNetwork::Exchange exchange, Contact& contact) {
  return [exchange = std::move(exchange), &contact](Bytes mine) {
    auto all = exchange(mine);
    if (all && (*all)[0].size() == sizeof contact)
      std::memcpy(static_cast<void*>(&contact), (*all)[0].data(), sizeof contact);
    return all;
  };
}

TEST(PeerNetwork, RefusesStrangers) {
  for (const bool over_tcp : {false, true}) {
    // Ranks 0 and 3 are not connected from the beginning.
    expect_fine(6, [&](PeerProcesses& processes, int rank) -> std::string {
      PeerNetworkOptions options;
      options.avoid_local_sockets = over_tcp;
      options.patience = std::chrono::milliseconds(2000);
      Contact contact;
      auto network =
          *PeerNetwork::open(rank, 6, keep_contact(processes.exchange(rank), contact), options);
      const auto comm = network->begin(1);
      if (rank == 2) {
        const auto hello = [&](std::uint32_t from, std::uint32_t to, const Token& token) {
          const Frame frame{Frame::Kind::hello, from, to, token.size(), 0, 0};
          Blob bytes(token.size() + Frame::header_bytes);
          const FrameHeader header = encode(frame);
          std::copy(header.begin(), header.end(), bytes.begin());
          std::copy(token.begin(), token.end(), bytes.begin() + header.size());
          return bytes;
        };
        Token wrong = contact.token;
        wrong[15] ^= std::byte{1};
        const Blob attempts[] = {
            hello(3, 0, wrong), hello(1, 0, contact.token), hello(0, 0, contact.token),
            hello(9, 0, contact.token), hello(3, 2, contact.token), checks::pattern(1, 5000),
            // A message, and the farewell of a rank, before any greeting.
            [] {
              const FrameHeader header = encode(Frame{Frame::Kind::message, 1, 1, 30000, 0, 0});
              return Blob(header.begin(), header.end());
            }(),
            [] {
              const FrameHeader header = encode(Frame{Frame::Kind::bye});
              return Blob(header.begin(), header.end());
            }()};
        for (const Blob& attempt : attempts) {
          const Socket stranger = stranger_to(contact);
          write_to(stranger, attempt);
          if (const std::string answer = answer_of(stranger); answer != "closed")
            return fmt::format("a stranger {} {}", &attempt - attempts, answer);
        }
        // Those that say nothing do not keep the others out, and are closed in time.
        std::vector<Socket> silent;
        for (int i = 0; i < 200; ++i) silent.push_back(stranger_to(contact));
        if (answer_of(silent.front()) != "closed") return "keeps a silent stranger";
      }
      checks::all_of_one(*comm);
      return network->failure() ? "fine" : network->failure().error().text;
    });
  }
}

TEST(PeerNetwork, FailsIfARankSendsRubbish) {
  std::mt19937 random(5);
  for (int seed = 0; seed < 30; ++seed) {
    const Blob rubbish = checks::pattern(random(), Frame::header_bytes + random() % 3000);
    expect_fine(2, [&](PeerProcesses& processes, int rank) -> std::string {
      if (rank == 0) {
        const auto network = processes.open(rank);
        const double until = PeerProcesses::now_s() + 5;
        while (network->failure() && PeerProcesses::now_s() < until)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return network->failure() || network->failure().error().rank != 1 ? "accepted" : "fine";
      }
      // This one speaks for itself.
      const auto exchange = processes.exchange(rank);
      Contact mine = *describe_this_process("n1");
      const Socket listening = *listen_locally(mine);
      const auto contacts = *exchange(bytes_of(mine));
      ::fcntl(listening.get(), F_SETFL, 0);
      std::array<char, 256> verdict{};
      (void)exchange(bytes_of(verdict));
      const Socket link(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::array<std::byte, Frame::header_bytes + Frame::token_bytes> hello;
      (void)!::recv(link.get(), hello.data(), hello.size(), MSG_WAITALL);
      Contact theirs;
      std::memcpy(static_cast<void*>(&theirs), contacts[0].data(), sizeof theirs);
      const FrameHeader welcome =
          encode(Frame{Frame::Kind::welcome, 1, 0, Frame::token_bytes, 0, 0});
      write_to(link, welcome);
      write_to(link, theirs.token);
      (void)exchange(bytes_of(verdict));
      write_to(link, rubbish);
      char byte = 0;
      while (::recv(link.get(), &byte, 1, 0) > 0) continue;
      return "fine";
    });
  }
}

TEST(PeerNetwork, FailsToOpenOnAllRanksIfOneHasTooFewDescriptors) {
  for (const rlim_t limit : {3, 4, 5, 6}) {
    PeerProcesses processes(3);
    processes.start([&](int rank) -> std::string {
      if (rank == 1) {
        const rlimit few{limit, limit};
        ::setrlimit(RLIMIT_NOFILE, &few);
      }
      PeerNetworkOptions options;
      options.patience = std::chrono::milliseconds(2000);
      const auto network = PeerNetwork::open(rank, 3, processes.exchange(rank), options);
      return network ? "open" : network.error().text;
    });
    const auto ends = processes.wait();
    for (const auto& end : ends) {
      EXPECT_NE(end.text, "open") << limit;
      EXPECT_EQ(end.text, ends[0].text) << limit;
    }
  }
}

}  // namespace
}  // namespace cairn
