// Identifies a process, so that another process of the same machine can check later whether it is
// alive. A process id alone is not enough, as the system reuses it.
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

struct ProcessIdentity {
  /// Where the process id is valid: the boot of the kernel, and the namespace of process ids. Empty
  /// if unknown.
  std::string kernel;
  std::uint64_t process = 0;
  /// In clock ticks since the boot; 0 if unknown.
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
