// cairn rbio: shows, verifies and extracts data that programs have written with rbio.h.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "base/log.hpp"
#include "files/files.hpp"

namespace cairn {

struct RbioCommand {
  enum class Action { list, show, verify, extract };

  Action action = Action::list;
  std::string path;  ///< absolute: a series, or for show a step or a part
  bool json = false;
  bool ranks = false;                 ///< show: also what each rank wrote
  std::optional<std::uint64_t> step;  ///< verify, extract: this one only
  std::string field;                  ///< extract
  std::string output;                 ///< extract: absolute, or "-": standard output
  bool raw = false;                   ///< extract: the bytes alone, without the header of NumPy
  bool force = false;                 ///< extract: replace a file
};

/// With json: list {"directory", "steps", "unpublished", "note"}; show {"path", "state", "reason",
/// "parts", "note"}; verify {"directory", "steps", "note"}, each step with its "damage"; extract
/// {"step", "field", "dtype", "shape", "bytes", "file"}. Takes no lock, and changes nothing in the
/// series. Returns the exit code: 0; 1 if something is damaged or could not be done; 2 for options
/// that exclude each other.
int run_rbio_command(const RbioCommand& command, Files& files, std::ostream& out, const Log& log);

}  // namespace cairn
