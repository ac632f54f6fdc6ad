// Chunks become operations on the backing file.
#pragma once

#include "aggregate/backing_file.hpp"
#include "aggregate/chunk.hpp"
#include "aggregate/scheduler.hpp"

namespace cairn {

/// As many as one system call takes.
inline constexpr std::size_t pieces_most = 1024;

struct WriteOutcome {
  int error = 0;          ///< the last, as minus an errno
  std::uint64_t end = 0;  ///< behind the last byte that was written
};

/// Writes the chunk and those behind it. What lies behind one another in them is one operation; an
/// error loses the rest of one operation, and the others are carried out. Needs no memory.
WriteOutcome write_chunks(Scheduler& scheduler, BackingFile& backing, const Chunk& first);

}  // namespace cairn
