// The report of a command: facts as JSON, and the same as text. A command makes one report, and one
// function prints it as JSON or as text.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "tools/exit_codes.hpp"
#include "tools/record_json.hpp"

namespace cairn {

struct Report {
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  /// Datasets that JSON has after the facts, a line each, as there may be many; and what they are.
  std::vector<DatasetRecord> datasets;
  std::string datasets_key;
  std::string text;
  int exit_code = exit_ok;
  std::vector<Error> failures;  ///< errors in addition to the reported facts

  /// Adds a line to the text. Replaces control characters of terminals.
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text += printable(fmt::format(format, std::forward<Args>(args)...)) + "\n";
  }
  /// Adds at most `most` of these lines to the text, and how many more JSON has.
  void some_lines(std::string_view before, const std::vector<std::string>& lines,
                  std::size_t most = 20);
  void add_failure(const Status& done) {
    if (!done) failures.push_back(done.error());
  }
};

/// The exit code of an error; exit_failure unless the error has a code of its own.
struct ErrorExit {
  Code code = Code::ok;
  int exit_code = exit_failure;
};

/// The worse of two exit codes.
int worse(int a, int b);

/// Prints the report, and logs each failure, or why there is no report. JSON has these as `errors`.
/// Returns the worst exit code.
int print_report(Result<Report> report, bool as_json, std::ostream& out, const Log& log,
                 const ErrorExit& special = {});

/// "dataset 4 (ckpt.4)"; a name may be unknown.
std::string dataset_label(std::uint64_t number, const std::string& name);

}  // namespace cairn
