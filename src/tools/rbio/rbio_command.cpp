#include "tools/rbio/rbio_command.hpp"

#include <algorithm>

#include "tools/exit_codes.hpp"
#include "tools/rbio/rbio_extract.hpp"
#include "tools/rbio/rbio_text.hpp"
#include "tools/record_json.hpp"

namespace cairn {
namespace {

int failed(const Error& error, const Log& log) {
  log.error("{}", error.text);
  return exit_failure;
}

/// exit_failure if a step is not whole.
template <class Step>
int code_of(const std::vector<Step>& steps) {
  const bool whole = std::all_of(steps.begin(), steps.end(),
                                 [](const Step& one) { return one.state == StepState::whole; });
  return whole ? exit_ok : exit_failure;
}

/// Of the steps of a series: `facts` is a Result.
template <class Facts>
int print_steps(const RbioCommand& command, const Facts& facts, std::ostream& out, const Log& log) {
  if (!facts) return failed(facts.error(), log);
  if (command.json)
    out << text_of_json(json_of(*facts));
  else
    print(out, *facts);
  return code_of(facts->steps);
}

int show(const RbioCommand& command, Files& files, std::ostream& out, const Log& log) {
  const auto facts = facts_of_step(files, command.path);
  if (!facts) return failed(facts.error(), log);
  if (command.json)
    out << text_of_json(json_of(*facts, command.ranks));
  else
    print(out, *facts, command.ranks);
  return facts->state == StepState::whole ? exit_ok : exit_failure;
}

int extract(const RbioCommand& command, Files& files, std::ostream& out, const Log& log) {
  if (command.output == standard_output && command.json) {
    log.error("cairn rbio extract: --json and -o - both write to the standard output; give a file");
    return exit_usage;
  }
  const auto facts = extract_field(command, files, out, log);
  if (!facts) return failed(facts.error(), log);
  if (command.output == standard_output) return exit_ok;
  if (command.json)
    out << text_of_json(json_of(*facts));
  else
    print(out, *facts);
  return exit_ok;
}

}  // namespace

int run_rbio_command(const RbioCommand& command, Files& files, std::ostream& out, const Log& log) {
  int code = exit_failure;
  switch (command.action) {
    case RbioCommand::Action::list:
      code = print_steps(command, facts_of_series(files, command.path), out, log);
      break;
    case RbioCommand::Action::show:
      code = show(command, files, out, log);
      break;
    case RbioCommand::Action::verify:
      code = print_steps(command, check_series(files, command.path, command.step), out, log);
      break;
    case RbioCommand::Action::extract:
      code = extract(command, files, out, log);
      break;
  }
  out << std::flush;
  return out ? code : exit_failure;
}

}  // namespace cairn
