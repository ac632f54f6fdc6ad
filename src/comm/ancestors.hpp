// Whether a rank of an MPI program started this process: as the kernel knows it, not the
// environment, which children inherit.
#pragma once

#include <string>
#include <vector>

namespace cairn {

/// A process above this one, as far as this user may see it.
struct Ancestor {
  std::string program;           ///< the kernel's name of it, at most 15 characters
  bool has_mpi_library = false;  ///< the library of an MPI is loaded into it
};

/// Local. The nearest first. `proc` is where the kernel shows its processes.
std::vector<Ancestor> ancestors_of(long process, const std::string& proc = "/proc");

/// True if one of them runs with an MPI, and no launcher is nearer: what it starts inherits the
/// variables that its own launcher has set.
bool has_rank_below_launcher(const std::vector<Ancestor>& ancestors);

}  // namespace cairn
