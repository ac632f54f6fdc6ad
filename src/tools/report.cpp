#include "tools/report.hpp"

#include <algorithm>

namespace cairn {
namespace {

void print(const Report& report, bool as_json, std::ostream& out) {
  if (!as_json)
    out << report.text;
  else if (report.datasets_key.empty())
    out << text_of_json(report.facts);
  else
    write_json(out, report.facts, report.datasets_key, report.datasets);
}

}  // namespace

void Report::some_lines(std::string_view before, const std::vector<std::string>& lines,
                        std::size_t most) {
  for (std::size_t i = 0; i < std::min(lines.size(), most); ++i) line("{}{}", before, lines[i]);
  if (lines.size() > most) line("  and {} more; --json shows all", lines.size() - most);
}

int print_report(const Result<Report>& report, bool as_json, std::ostream& out, const Log& log,
                 const ErrorExit& special) {
  int exit_code = report ? report->exit_code : exit_failure;
  if (report) print(*report, as_json, out);
  out << std::flush;
  if (!out && exit_code == exit_ok) exit_code = exit_failure;
  for (const Error& error : report ? report->failures : std::vector<Error>{report.error()}) {
    log.error("{}", error.text);
    exit_code = error.code == special.code ? special.exit_code : exit_failure;
  }
  return exit_code;
}

std::string dataset_label(std::uint64_t number, const std::string& name) {
  return name.empty() ? fmt::format("dataset {}", number)
                      : fmt::format("dataset {} ({})", number, name);
}

}  // namespace cairn
