#include "tools/rbio/rbio_arguments.hpp"

#include <iostream>

#include "files/posix_files.hpp"
#include "tools/command_table.hpp"
#include "tools/job_settings.hpp"
#include "tools/rbio/rbio_command.hpp"
#include "tools/rbio/rbio_extract.hpp"

namespace cairn {
namespace {

using RbioAction = RbioCommand::Action;
using SharedRbio = std::shared_ptr<RbioCommand>;

constexpr const char* rbio_exit_codes =
    "Exit codes: 0 done and all is whole, 1 failed, or something is damaged or cannot be read, 2 "
    "wrong usage.";

void run(RbioCommand& command, int& exit_code) {
  const std::string here = current_process().working_folder;
  command.path = normalise(command.path, here);
  if (!command.output.empty() && command.output != standard_output)
    command.output = normalise(command.output, here);
  const auto files = make_posix_files();
  exit_code = run_rbio_command(command, *files, std::cout, Log(log_to_stderr));
}

/// The options of all actions.
SharedRbio add_action(CLI::App& rbio, const std::string& name, const std::string& help,
                      RbioAction action, int& exit_code) {
  auto* sub = rbio.add_subcommand(name, help);
  auto command = std::make_shared<RbioCommand>();
  command->action = action;
  sub->add_flag("--json", command->json, "Print JSON");
  sub->footer(rbio_exit_codes);
  sub->callback([command, &exit_code] { run(*command, exit_code); });
  return command;
}

void add_series(CLI::App& sub, RbioCommand& command) {
  sub.add_option("directory", command.path, "The directory that the program opens with rbio_open")
      ->required()
      ->type_name("DIR");
}

void add_step(CLI::App& sub, RbioCommand& command, const std::string& help) {
  sub.add_option("--step", command.step, help)->type_name("N")->check(CLI::NonNegativeNumber);
}

void add_extract(CLI::App& rbio, int& exit_code) {
  auto command = add_action(rbio, "extract", "Copy one field of a step, over all ranks, to a file",
                            RbioAction::extract, exit_code);
  auto* sub = rbio.get_subcommand("extract");
  add_series(*sub, *command);
  sub->add_option("field", command->field, "Name of the field")->required()->type_name("FIELD");
  add_step(*sub, *command, "The step (default: the newest whole one)");
  sub->add_option("-o,--output", command->output,
                  "The file to write; - is the standard output, which gets the bytes before a "
                  "damaged block")
      ->required()
      ->type_name("FILE");
  sub->add_flag("--raw", command->raw, "Write the elements alone, without the header of NumPy");
  sub->add_flag("--force", command->force, "Replace the file if it exists");
}

}  // namespace

void add_rbio(CLI::App& app, int& exit_code) {
  auto* rbio = app.add_subcommand("rbio", summary_of("rbio"));
  rbio->require_subcommand(1);
  rbio->footer(rbio_exit_codes);
  auto list = add_action(*rbio, "list", "List the steps of a series, in the order written",
                         RbioAction::list, exit_code);
  add_series(*rbio->get_subcommand("list"), *list);
  auto show = add_action(*rbio, "show", "Show the fields of a step, or of one part of it",
                         RbioAction::show, exit_code);
  rbio->get_subcommand("show")
      ->add_option("path", show->path, "A directory step.NUMBER, or a file part.NUMBER.rbio")
      ->required()
      ->type_name("PATH");
  rbio->get_subcommand("show")->add_flag("--ranks", show->ranks,
                                         "Also the elements that each rank wrote");
  auto verify = add_action(*rbio, "verify", "Read every byte, and compare it with its checksum",
                           RbioAction::verify, exit_code);
  add_series(*rbio->get_subcommand("verify"), *verify);
  add_step(*rbio->get_subcommand("verify"), *verify, "This step only");
  add_extract(*rbio, exit_code);
}

}  // namespace cairn
