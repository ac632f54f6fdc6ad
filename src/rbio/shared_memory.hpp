// Memory that the processes of one node share: the seam, so that tests can do without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace cairn::rbio {

/// Unmapped when destroyed. When its maker destroys it, the memory itself is free again, also where
/// others still map it: they must not touch it any more.
class Segment {
 public:
  virtual ~Segment() = default;
  virtual MutableBytes bytes() = 0;
  /// For attach(); empty for memory of this process alone.
  virtual const std::string& name() const = 0;
};

class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  /// All pages are there on return, and no other user may open it. no_space or io.
  virtual Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) = 0;
  /// What another process of this user on this node has created.
  virtual Result<std::unique_ptr<Segment>> attach(const std::string& name, std::uint64_t bytes) = 0;
};

std::unique_ptr<SharedMemory> make_shared_memory();

/// From `memory`, or else, after a warning, of this process alone; also where `memory` is null.
/// no_space or io if there is not so much.
Result<std::unique_ptr<Segment>> make_segment(SharedMemory* memory, std::uint64_t bytes,
                                              const Log& log);

}  // namespace cairn::rbio
