#include "tools/report.hpp"

#include <algorithm>
#include <array>

namespace cairn {
namespace {

void print(Report& report, bool as_json, std::ostream& out) {
  if (!as_json) {
    out << report.text;
    return;
  }
  for (const Error& error : report.failures) report.facts["errors"].push_back(error.text);
  if (report.datasets_key.empty())
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

int worse(int a, int b) {
  constexpr std::array from_the_best = {exit_ok,      exit_try_again, exit_usage,
                                        exit_failure, exit_damaged,   exit_beyond_repair};
  const auto rank = [&](int code) {
    return std::find(from_the_best.begin(), from_the_best.end(), code);
  };
  return rank(a) < rank(b) ? b : a;
}

int print_report(Result<Report> found, bool as_json, std::ostream& out, const Log& log,
                 const ErrorExit& special) {
  Report report;
  if (found)
    report = *std::move(found);
  else
    report.failures = {found.error()};
  print(report, as_json, out);
  out << std::flush;
  int exit_code = out ? report.exit_code : worse(report.exit_code, exit_failure);
  for (const Error& error : report.failures) {
    log.error("{}", error.text);
    exit_code = worse(exit_code, error.code == special.code ? special.exit_code : exit_failure);
  }
  return exit_code;
}

std::string dataset_label(std::uint64_t number, const std::string& name) {
  return name.empty() ? fmt::format("dataset {}", number)
                      : fmt::format("dataset {} ({})", number, name);
}

}  // namespace cairn
