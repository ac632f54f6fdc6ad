#include "comm/contact.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

namespace cairn {
namespace {

template <std::size_t size>
void set_text(std::array<char, size>& to, const std::string& from) {
  to.fill('\0');
  std::copy_n(from.begin(), std::min(from.size(), size - 1), to.begin());
}

/// Of bytes that another process has sent: the last one may not be zero.
template <std::size_t size>
std::string text_of(const std::array<char, size>& from) {
  return std::string(from.data(), strnlen(from.data(), size));
}

Status fill_random(MutableBytes bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(errno_error(errno, "get random bytes for", "a connection"));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

/// Unix-domain sockets reach where the kernel and the network namespace are the same.
std::string name_of_machine() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat network {};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return {};
  return fmt::format("{}.{}.{}", boot, network.st_dev, network.st_ino);
}

/// In the abstract name space: a zero, then the name.
socklen_t local_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
}

socklen_t network_address(const NetworkAddress& from, std::uint32_t port,
                          sockaddr_storage& address) {
  address = {};
  const auto port_in_order = htons(static_cast<std::uint16_t>(port));
  if (from.family == AF_INET6) {
    auto& six = reinterpret_cast<sockaddr_in6&>(address);
    six.sin6_family = AF_INET6;
    six.sin6_port = port_in_order;
    std::memcpy(&six.sin6_addr, from.bytes.data(), sizeof six.sin6_addr);
    return sizeof six;
  }
  auto& four = reinterpret_cast<sockaddr_in&>(address);
  four.sin_family = AF_INET;
  four.sin_port = port_in_order;
  std::memcpy(&four.sin_addr, from.bytes.data(), sizeof four.sin_addr);
  return sizeof four;
}

NetworkAddress address_from(const sockaddr* from) {
  NetworkAddress address;
  address.family = from->sa_family;
  if (from->sa_family == AF_INET)
    std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in*>(from)->sin_addr, 4);
  else
    std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr, 16);
  return address;
}

std::vector<NetworkInterface> own_interfaces(int family) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
    struct stat bridge {};
    const std::string of_bridges = fmt::format("/sys/class/net/{}/bridge", each->ifa_name);
    found.push_back(
        {each->ifa_flags, ::stat(of_bridges.c_str(), &bridge) == 0, address_from(each->ifa_addr)});
  }
  return found;
}

bool is_link_local(const NetworkAddress& address) {
  return address.family == AF_INET6 && address.bytes[0] == std::byte{0xfe} &&
         (address.bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

std::vector<NetworkAddress> own_addresses(int family, bool loopback) {
  return addresses_of(own_interfaces(family), loopback);
}

bool has_address(const Contact& contact, const NetworkAddress& address) {
  return std::find(contact.addresses.begin(), contact.addresses.end(), address) !=
         contact.addresses.end();
}

Result<Socket> bind_and_listen(Socket socket, const sockaddr* address, socklen_t bytes) {
  constexpr int backlog = 4096;
  if (!socket || ::bind(socket.get(), address, bytes) != 0 || ::listen(socket.get(), backlog) != 0)
    return tl::unexpected(errno_error(errno, "listen on", "a socket"));
  return socket;
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  if (descriptor < 0 || descriptor > 2) return;
  descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  const int error_number = errno;
  ::close(descriptor);
  errno = error_number;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = other.release();
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int Socket::release() { return std::exchange(descriptor_, -1); }

/// A bridge without a container has no carrier, so it does not run.
std::vector<NetworkAddress> addresses_of(const std::vector<NetworkInterface>& interfaces,
                                         bool loopback) {
  const auto is_likely = [](const NetworkInterface& each) {
    return !each.is_bridge && (each.flags & IFF_RUNNING) != 0 &&
           (each.flags & IFF_POINTOPOINT) == 0;
  };
  std::vector<NetworkAddress> found;
  for (const bool likely : {true, false})
    for (const NetworkInterface& each : interfaces)
      if ((each.flags & IFF_UP) != 0 && ((each.flags & IFF_LOOPBACK) != 0) == loopback &&
          !is_link_local(each.address) && is_likely(each) == likely &&
          found.size() < Contact::addresses_max)
        found.push_back(each.address);
  return found;
}

std::string Way::text() const {
  if (is_local) return "its local socket";
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.family, address.bytes.data(), text.data(), text.size());
  return fmt::format("{} port {}", text.data(), port);
}

std::string Contact::text() const {
  return fmt::format("process {} on {}", process, text_of(place));
}

Result<Contact> describe_this_process(const std::string& place) {
  Contact mine;
  CAIRN_TRY(fill_random(mine.token));
  set_text(mine.machine, name_of_machine());
  // A machine without a name is like no other one.
  if (mine.machine[0] == '\0')
    std::memcpy(mine.machine.data() + 1, mine.token.data(), mine.token.size());
  set_text(mine.place, place);
  mine.process = ::getpid();
  return mine;
}

Result<Socket> listen_locally(Contact& mine) {
  std::uint64_t number = 0;
  CAIRN_TRY(fill_random(mutable_bytes_of(number)));
  const std::string name = fmt::format("cairn.{}.{:016x}", mine.process, number);
  sockaddr_un address;
  const socklen_t bytes = local_address(name, address);
  CAIRN_ASSIGN(
      Socket listening,
      bind_and_listen(Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                      reinterpret_cast<const sockaddr*>(&address), bytes));
  set_text(mine.local_name, name);
  return listening;
}

Result<Socket> listen_on_network(Contact& mine, bool loopback) {
  int family = AF_INET;
  std::vector<NetworkAddress> addresses = own_addresses(family, loopback);
  if (addresses.empty()) addresses = own_addresses(family = AF_INET6, loopback);
  if (addresses.empty()) return fail(Code::io, "{} has no address in a network", mine.text());
  NetworkAddress any;
  any.family = family;
  sockaddr_storage address;
  socklen_t bytes = network_address(loopback ? addresses.front() : any, 0, address);
  CAIRN_ASSIGN(
      Socket listening,
      bind_and_listen(Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                      reinterpret_cast<const sockaddr*>(&address), bytes));
  if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    return tl::unexpected(errno_error(errno, "find the port of", "a socket"));
  mine.port = ntohs(family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                      : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  std::copy(addresses.begin(), addresses.end(), mine.addresses.begin());
  return listening;
}

std::vector<Way> ways_to(const Contact& peer, const Contact& mine, bool avoid_local) {
  if (peer.is_on_machine_of(mine) && !avoid_local)
    return {Way{true, text_of(peer.local_name), {}, 0}};
  std::vector<Way> ways;
  for (const NetworkAddress& address : peer.addresses)
    if (address.family == AF_INET || address.family == AF_INET6)
      ways.push_back(Way{false, {}, address, peer.port});
  std::stable_partition(ways.begin(), ways.end(),
                        [&](const Way& way) { return !has_address(mine, way.address); });
  return ways;
}

Socket begin_connecting(const Way& way, int& error_number) {
  sockaddr_storage address;
  socklen_t bytes = 0;
  int family = AF_UNIX;
  if (way.is_local) {
    bytes = local_address(way.local_name, reinterpret_cast<sockaddr_un&>(address));
  } else {
    bytes = network_address(way.address, way.port, address);
    family = way.address.family;
  }
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error_number = 0;
  if (socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0)
    return socket;
  if (socket && errno == EINPROGRESS) return socket;
  error_number = errno;
  return {};
}

void prepare_connection(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

pid_t process_behind(const Socket& socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return 0;
  // Of a TCP connection the system knows no process.
  if (peer.uid == static_cast<uid_t>(-1)) return 0;
  return peer.uid == ::geteuid() ? std::max(peer.pid, pid_t{0}) : -1;
}

Socket watch_process(pid_t process) {
#ifdef SYS_pidfd_open
  return Socket(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
#else
  return {};
#endif
}

int copy_from_process(pid_t process, std::uint64_t address, MutableBytes to) {
  while (!to.empty()) {
    const iovec mine{to.data(), to.size()};
    const iovec theirs{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), to.size()};
    const ssize_t copied = ::process_vm_readv(process, &mine, 1, &theirs, 1, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return errno;
    if (copied == 0) return EFAULT;
    to = to.subspan(static_cast<std::size_t>(copied));
    address += static_cast<std::uint64_t>(copied);
  }
  return 0;
}

}  // namespace cairn
