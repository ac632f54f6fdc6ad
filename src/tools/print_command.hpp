// cairn print: shows the content of a file that Cairn has written.
#pragma once

#include <ostream>
#include <string>

#include "base/log.hpp"
#include "files/files.hpp"

namespace cairn {

/// With json: {"file", "bytes", "records": [{"type", "version", "bytes", "content"}], ...}: an
/// "error" in place of a content that this version cannot read; "lost_bytes": those that are in no
/// whole record. A content has the fields of record_json.hpp. Of the log for programs "entries",
/// its lines, are in place of the records.
struct PrintCommand {
  std::string file;  ///< absolute
  bool json = false;
};

constexpr std::uint64_t largest_printed_file = std::uint64_t{1} << 30;

/// Needs no lock, and changes nothing. Returns the exit code: 0; 1 if the file cannot be read, or
/// not all of it is records that this version knows, or lines of a log.
int run_print_command(const PrintCommand& command, Files& files, std::ostream& out, const Log& log);

}  // namespace cairn
