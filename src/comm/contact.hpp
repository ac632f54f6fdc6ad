// How the processes of a PeerNetwork find and reach each other: sockets, made and connected.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// Owns a descriptor, closed when another program is executed, and never one of 0 to 2: there a
/// program that has closed these would print into it.
class Socket {
 public:
  Socket() = default;
  /// Takes over `descriptor`, or another one for the same.
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release();

 private:
  int descriptor_ = -1;
};

using Token = std::array<std::byte, 16>;

/// An address of a network interface.
struct NetworkAddress {
  std::int32_t family = 0;  ///< AF_INET or AF_INET6
  std::array<std::byte, 16> bytes{};

  bool operator==(const NetworkAddress&) const = default;
};

/// An interface of this machine.
struct NetworkInterface {
  unsigned flags = 0;      ///< IFF_UP ...
  bool is_bridge = false;  ///< as container engines make them, with the same address on each node
  NetworkAddress address;
};

/// Where other processes may reach this one, in the order in which they should try: at most
/// Contact::addresses_max. `loopback`: only from this machine.
std::vector<NetworkAddress> addresses_of(const std::vector<NetworkInterface>& interfaces,
                                         bool loopback);

/// What the other processes know of one. The same size everywhere, so that an allgather exchanges
/// it.
struct Contact {
  static constexpr std::size_t addresses_max = 4;

  std::array<char, 96> machine{};  ///< one for all that reach each other without a network
  std::array<char, 64> place{};    ///< the name of its node, for people
  std::int64_t process = 0;
  Token token{};  ///< random; a connection to this process has to show it
  std::array<char, 48> local_name{};
  std::uint32_t port = 0;  ///< 0: not reachable over the network
  std::array<NetworkAddress, addresses_max> addresses{};

  bool is_on_machine_of(const Contact& other) const { return machine == other.machine; }
  /// "process 123 on n1"
  std::string text() const;
};

/// Of this process, without sockets. Fails where the system gives no random bytes.
Result<Contact> describe_this_process(const std::string& place);

/// Listens in the abstract name space of Unix-domain sockets, which needs no file, and sets the
/// name.
Result<Socket> listen_locally(Contact& mine);
/// Listens on a port that the system chooses; sets it and the addresses. `loopback`: only there.
Result<Socket> listen_on_network(Contact& mine, bool loopback);

/// Every way to reach a process, the best one first.
struct Way {
  bool is_local = false;
  std::string local_name;
  NetworkAddress address;
  std::uint32_t port = 0;

  /// "10.0.0.1 port 4711"
  std::string text() const;
};
/// Addresses that both machines have come last: there a process of this machine answers.
std::vector<Way> ways_to(const Contact& peer, const Contact& mine, bool avoid_local);

/// Begins to connect. EAGAIN in `error_number`: try later; other errors: this way is none.
Socket begin_connecting(const Way& way, int& error_number);
/// Sets what all connections have, and is harmless for any socket.
void prepare_connection(const Socket& socket);

/// The process at the other end of a Unix-domain socket if it has the same user; 0: not known here;
/// -1: of another user.
pid_t process_behind(const Socket& socket);
/// Readable once the process has ended, even if its children have the socket. Empty where the
/// system has none.
Socket watch_process(pid_t process);

/// From the memory of another process of this machine. 0, or the error number.
int copy_from_process(pid_t process, std::uint64_t address, MutableBytes to);

}  // namespace cairn
