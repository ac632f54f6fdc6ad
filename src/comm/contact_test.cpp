// Which address of a process is tried, and what happens where something else listens there.
#include "comm/contact.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "comm/peer_processes.hpp"

namespace cairn {
namespace {

NetworkAddress ipv4(const char* text) {
  NetworkAddress address;
  address.family = AF_INET;
  ::inet_pton(AF_INET, text, address.bytes.data());
  return address;
}

std::vector<std::string> texts_of(const std::vector<NetworkAddress>& addresses) {
  std::vector<std::string> texts;
  for (const NetworkAddress& each : addresses) texts.push_back(Way{false, {}, each, 7}.text());
  return texts;
}

constexpr unsigned up = IFF_UP | IFF_RUNNING;

TEST(Addresses, OfInterfacesThatLeadToOtherNodesComeFirst) {
  const std::vector<NetworkInterface> interfaces = {
      {up | IFF_LOOPBACK, false, ipv4("127.0.0.1")},
      {IFF_UP, true, ipv4("172.17.0.1")},
      {up, true, ipv4("172.18.0.1")},
      {up | IFF_POINTOPOINT, false, ipv4("10.8.0.1")},
      {IFF_UP, false, ipv4("192.168.9.1")},
      {0, false, ipv4("192.168.10.1")},
      {up, false, ipv4("10.0.0.1")},
      {up, false, ipv4("10.1.0.1")},
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(
      texts_of(addresses_of(interfaces, false)),
      (Texts{"10.0.0.1 port 7", "10.1.0.1 port 7", "172.17.0.1 port 7", "172.18.0.1 port 7"}));
  EXPECT_EQ(texts_of(addresses_of(interfaces, true)), Texts{"127.0.0.1 port 7"});
  EXPECT_EQ(texts_of(addresses_of({interfaces[2]}, false)), Texts{"172.18.0.1 port 7"})
      << "better than none";
}

TEST(Addresses, ThatBothMachinesHaveAreTriedLast) {
  Contact mine;
  Contact theirs;
  mine.machine[0] = 'a';
  theirs.machine[0] = 'b';
  theirs.port = 7;
  mine.addresses = {ipv4("10.0.0.1"), ipv4("172.17.0.1"), ipv4("172.18.0.1")};
  theirs.addresses = {ipv4("172.17.0.1"), ipv4("10.0.0.2"), ipv4("172.18.0.1"), ipv4("10.1.0.2")};
  std::vector<std::string> ways;
  for (const Way& way : ways_to(theirs, mine, false)) ways.push_back(way.text());
  EXPECT_EQ(ways, (std::vector<std::string>{"10.0.0.2 port 7", "10.1.0.2 port 7",
                                            "172.17.0.1 port 7", "172.18.0.1 port 7"}));
}

/// Listens at an address, and answers each connection in its own way, until the process ends.
void let_stranger_listen(const NetworkAddress& at, std::uint32_t port, int kind) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(&address.sin_addr, at.bytes.data(), 4);
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening, 8) != 0)
    throw std::runtime_error("a stranger cannot listen");
  if (kind == 0) return;  // connected by the kernel, and never answered
  std::thread([=] {
    while (true) {
      const int link = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      std::array<char, 100> bytes{};
      const ssize_t got = ::recv(link, bytes.data(), bytes.size(), 0);
      const std::string_view banner = "220 a server of mail, for example, greets the world......";
      if (kind == 1) (void)!::send(link, banner.data(), banner.size(), MSG_NOSIGNAL);
      if (kind == 2 && got > 0)
        (void)!::send(link, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
      if (kind == 3) ::close(link);
    }
  }).detach();
}

/// Rank 1 gives `strange` for its addresses, before its own one if `and_own`.
PeerNetwork::Exchange give_strange_addresses(PeerNetwork::Exchange exchange, int rank,
                                             std::vector<NetworkAddress> strange, bool and_own,
                                             const std::function<void(std::uint32_t)>& at_port) {
  return [=, exchange = std::move(exchange)](Bytes mine) {
    Contact contact;
    if (rank != 1 || mine.size() != sizeof contact) return exchange(mine);
    std::memcpy(static_cast<void*>(&contact), mine.data(), sizeof contact);
    if (contact.port == 0) return exchange(mine);
    std::vector<NetworkAddress> given = strange;
    if (and_own) given.push_back(contact.addresses[0]);
    contact.addresses = {};
    std::copy(given.begin(), given.end(), contact.addresses.begin());
    at_port(contact.port);
    return exchange(bytes_of(contact));
  };
}

class StrangersAtAddresses : public testing::TestWithParam<int> {};

TEST_P(StrangersAtAddresses, DelayTheConnectionAndDoNoHarm) {
  const int kind = GetParam();
  const std::vector<NetworkAddress> strange = {ipv4("127.0.0.2"), ipv4("127.0.0.3"),
                                               ipv4("127.0.0.4")};
  PeerProcesses processes(2);
  processes.start([&](int rank) -> std::string {
    PeerNetworkOptions options;
    options.avoid_local_sockets = true;
    options.patience = std::chrono::milliseconds(4000);
    const auto exchange = give_strange_addresses(processes.exchange(rank), rank, strange, true,
                                                 [&](std::uint32_t port) {
                                                   for (const NetworkAddress& each : strange)
                                                     let_stranger_listen(each, port, kind);
                                                 });
    const double begin_s = PeerProcesses::now_s();
    const auto network = PeerNetwork::open(rank, 2, exchange, options);
    if (!network) return network.error().text;
    if (PeerProcesses::now_s() - begin_s > 2.6) return "takes most of its time for strangers";
    (*network)->begin(1)->barrier();
    return "fine";
  });
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
}

INSTANTIATE_TEST_SUITE_P(Kinds, StrangersAtAddresses, testing::Range(0, 4));

TEST(PeerNetworkOpening, NamesTheRanksAndTheAddressesThatCannotBeReached) {
  const std::vector<NetworkAddress> strange = {ipv4("127.0.0.2"), ipv4("127.0.0.3")};
  PeerProcesses processes(2);
  processes.start([&](int rank) -> std::string {
    PeerNetworkOptions options;
    options.avoid_local_sockets = true;
    options.place = fmt::format("n{}", rank);
    options.patience = std::chrono::milliseconds(1000);
    const auto exchange = give_strange_addresses(processes.exchange(rank), rank, strange, false,
                                                 [](std::uint32_t) {});
    const auto network = PeerNetwork::open(rank, 2, exchange, options);
    return network ? "open" : network.error().text;
  });
  for (const auto& end : processes.wait()) {
    for (const char* part : {"rank 0 (process ", " on n0) cannot reach rank 1 (process ",
                             " on n1): 127.0.0.2 port ", ": Connection refused; 127.0.0.3 port "})
      EXPECT_NE(end.text.find(part), std::string::npos) << part << " in " << end.text;
  }
}

}  // namespace
}  // namespace cairn
