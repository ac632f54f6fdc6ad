#include "tools/rbio/rbio_command.hpp"

#include "tools/rbio/rbio_extract.hpp"
#include "tools/rbio/rbio_report.hpp"

namespace cairn {
namespace {

Result<Report> report_for(const RbioCommand& command, Files& files, const Log& log) {
  const auto report = [](const auto& facts) { return report_of(facts); };
  switch (command.action) {
    case RbioCommand::Action::list:
      return facts_of_series(files, command.path).map(report);
    case RbioCommand::Action::show:
      return facts_of_step(files, command.path).map([&](const ShownFacts& facts) {
        return report_of(facts, command.ranks);
      });
    case RbioCommand::Action::verify:
      return check_series(files, command.path, command.step).map(report);
    case RbioCommand::Action::extract:
      break;
  }
  return extract_to_file(command, files, log).map(report);
}

/// The standard output has the field, and no report.
int extract_to_standard_output(const RbioCommand& command, Files& files, std::ostream& out,
                               const Log& log) {
  if (command.json) {
    log.error("cairn rbio extract: --json and -o - both write to the standard output; give a file");
    return exit_usage;
  }
  const Status done = extract_to_stream(command, files, out, log);
  return print_report(done.map([] { return Report{}; }), false, out, log);
}

}  // namespace

int run_rbio_command(const RbioCommand& command, Files& files, std::ostream& out, const Log& log) {
  if (command.output == standard_output)
    return extract_to_standard_output(command, files, out, log);
  return print_report(report_for(command, files, log), command.json, out, log);
}

}  // namespace cairn
