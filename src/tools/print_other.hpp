// The output of cairn print for files without records: the log, and directories.
#pragma once

#include "files/files.hpp"
#include "tools/report.hpp"

namespace cairn {

/// The JSON log (docs/format/log.md).
struct PrintedLog {
  std::vector<nlohmann::ordered_json> entries;
  std::size_t lost_bytes = 0;  ///< of whole lines that are no entries
};

PrintedLog find_log_entries(Bytes content);

/// An entry to a line: time, host, event, and then the other fields.
void add_entries(Report& report, const PrintedLog& log);

/// 0.0013759999999999998 -> "0.001376".
std::string text_of_number(double number);

/// The names of the files in a directory that cairn print can show, with their path.
Result<std::vector<std::string>> printable_files(Files& files, const std::string& directory);

}  // namespace cairn
