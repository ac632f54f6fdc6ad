// Which process this is, so that another process of the same machine can see later whether it
// still lives. A process id alone is given again.
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

struct ProcessIdentity {
  /// The kernel that the process ids are of: its boot, and the namespace of its process ids. Empty
  /// where the system does not say.
  std::string kernel;
  std::uint64_t process = 0;
  /// In clock ticks since the boot; 0 where the system does not say.
  std::uint64_t start_ticks = 0;

  bool operator==(const ProcessIdentity&) const = default;
};

ProcessIdentity this_process();

/// The start of this machine. Empty where the system does not say.
std::string this_boot();

enum class Life {
  lives,
  gone,
  unknown,  ///< it is, or may be, a process of another machine
};

/// Local.
Life life_of(const ProcessIdentity& process);

}  // namespace cairn
