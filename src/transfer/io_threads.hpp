// The threads by which a process moves bytes between stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/error.hpp"
#include "files/background.hpp"

namespace cairn {

struct IoThreads {
  Background& background;
  int threads = 1;                                      ///< at a time, the caller's included
  std::uint64_t piece_bytes = std::uint64_t{16} << 20;  ///< about what one takes at a time

  /// Local. Does piece(0) to piece(count - 1), each once, several at a time; after an error none is
  /// begun any more. Of several errors, that of the lowest number.
  Status each(std::size_t count, const std::function<Status(std::size_t)>& piece) const;
};

}  // namespace cairn
