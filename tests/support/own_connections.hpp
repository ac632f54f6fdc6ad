// For programs over real MPI: the connections of Cairn's own network are lost, and MPI keeps its
// own.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

/// Of this process, which lives on.
inline void end_own_connections() {
  for (int each = 3; each < 1024; ++each)
    for (const auto name_of : {&::getsockname, &::getpeername}) {
      sockaddr_un address{};
      socklen_t bytes = sizeof address;
      if (name_of(each, reinterpret_cast<sockaddr*>(&address), &bytes) == 0 &&
          address.sun_family == AF_UNIX && std::strncmp(address.sun_path + 1, "cairn.", 6) == 0)
        ::shutdown(each, SHUT_RDWR);
    }
}
