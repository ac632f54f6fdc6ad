// Chunks become operations on the backing file.
#pragma once

#include "aggregate/backing_file.hpp"
#include "aggregate/chunk.hpp"
#include "aggregate/scheduler.hpp"

namespace cairn {

/// As many pieces as one system call takes.
inline constexpr std::size_t pieces_most = 1024;

struct WriteOutcome {
  int error = 0;          ///< the last, as minus an errno
  std::uint64_t end = 0;  ///< behind the last byte that was written
};

/// Writes `first` and the chunks linked behind it. Adjacent data are one operation. An error loses
/// the rest of its operation only; the others follow. Allocates no memory.
WriteOutcome write_chunks(Scheduler& scheduler, BackingFile& backing, const Chunk& first);

}  // namespace cairn
