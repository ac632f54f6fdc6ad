#include "tools/explain_arguments.hpp"

#include <iostream>

#include "files/posix_files.hpp"
#include "tools/explain_command.hpp"
#include "tools/verify_command.hpp"

namespace cairn {
namespace {

/// What both have.
template <class Command>
void add_places(CLI::App& sub, Command& command, const std::string& about_caches) {
  sub.add_option("-p,--prefix", command.source.prefix,
                 "The prefix directory, in place of SCR_PREFIX")
      ->type_name("DIR");
  sub.add_option("-c,--cache", command.caches, about_caches)
      ->type_name("FOLDER")
      ->allow_extra_args(false);
  sub.add_option("dataset", command.datasets, "Names, numbers or UUIDs of datasets; all if none")
      ->type_name("DATASET");
  sub.add_flag("--json", command.json, "Print JSON");
}

void make_absolute(std::vector<std::string>& folders) {
  for (std::string& folder : folders) folder = normalise(folder, current_process().working_folder);
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand(
      "explain", "Tell what a restart would take now, why not the rest, and what to do");
  auto command = std::make_shared<ExplainCommand>();
  add_places(*sub, *command,
             "A folder that holds caches (<store>/<user>/cairn.<job>), or copies, at any depth, in "
             "place of those that the settings tell of; may be repeated");
  sub->add_option("-n,--ranks", command->ranks,
                  "Ranks of the run; as many as wrote the newest dataset if not given")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  sub->footer(
      "Exit codes: 0 done, 1 it could not be found out, or there is no such dataset, 2 wrong "
      "usage.");
  sub->callback([command, &exit_code] {
    const auto files = make_posix_files();
    const auto clock = make_system_clock();
    make_absolute(command->caches);
    exit_code = run_explain_command(*command, *files, *clock, current_process(), std::cout,
                                    Log(log_to_stderr));
  });
}

void add_verify(CLI::App& app, int& exit_code) {
  auto* sub =
      app.add_subcommand("verify", "Read every byte of datasets, and repair what can be repaired");
  auto command = std::make_shared<VerifyCommand>();
  add_places(*sub, *command,
             "A folder that holds caches (<store>/<user>/cairn.<job>), or copies, at any depth; "
             "may be repeated. They are verified, or with --prefix repaired from");
  sub->add_flag("--repair", command->repair, "Repair what is damaged; no job may run");
  sub->add_flag("--force", command->force,
                "The job that seems to live in the prefix directory is known to be dead");
  sub->footer(
      "Exit codes: 0 all is as it was written, 3 some is not, and can be or was repaired, 4 some "
      "cannot be repaired, 1 it could not be found out, 2 wrong usage.");
  sub->callback([command, &exit_code] {
    const auto files = make_posix_files();
    const auto clock = make_system_clock();
    make_absolute(command->caches);
    exit_code = run_verify_command(*command, *files, *clock, current_process(), std::cout,
                                   Log(log_to_stderr));
  });
}

}  // namespace cairn
