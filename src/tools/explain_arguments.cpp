#include "tools/explain_arguments.hpp"

#include <iostream>

#include "files/posix_files.hpp"
#include "tools/as_owner.hpp"
#include "tools/command_table.hpp"
#include "tools/explain_command.hpp"
#include "tools/verify_command.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t largest_number_of_ranks = std::uint32_t{1} << 24;

/// What both have.
template <class Command>
void add_places(CLI::App& sub, Command& command, const std::string& about_caches) {
  sub.add_option("-p,--prefix", command.source.prefix,
                 "The prefix directory, in place of SCR_PREFIX")
      ->type_name("DIR");
  sub.add_option("-c,--cache", command.caches, about_caches)
      ->type_name("DIR")
      ->allow_extra_args(false);
  sub.add_option("dataset", command.datasets, "Names, numbers or UUIDs of datasets (default: all)")
      ->type_name("DATASET");
  sub.add_flag("--json", command.json, "Print JSON");
}

void make_absolute(std::vector<std::string>& folders) {
  for (std::string& folder : folders) folder = normalise(folder, current_process().working_folder);
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("explain", summary_of("explain"));
  auto command = std::make_shared<ExplainCommand>();
  add_places(
      *sub, *command,
      "A directory that holds caches (<store>/<user>/cairn.<job>.<id>), or copies, at any depth, "
      "in place of those of the settings; may be repeated");
  sub->add_option("-n,--ranks", command->ranks,
                  "Ranks of the run (default: as many as wrote the newest dataset)")
      ->type_name("N")
      ->check(CLI::Range(1U, largest_number_of_ranks));
  sub->footer(
      "Exit codes: 0 done, 1 the answer could not be found, or there is no such dataset or prefix "
      "directory, 2 wrong usage.");
  sub->callback([command, &exit_code] {
    const auto files = make_posix_files();
    const auto clock = make_system_clock();
    make_absolute(command->caches);
    exit_code = run_explain_command(*command, *files, *clock, current_process(), std::cout,
                                    Log(log_to_stderr));
  });
}

void add_verify(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("verify", summary_of("verify"));
  auto command = std::make_shared<VerifyCommand>();
  add_places(
      *sub, *command,
      "A directory that holds caches (<store>/<user>/cairn.<job>.<id>), or copies, at any depth; "
      "may be repeated. They are verified, or with --prefix they are the source of repairs");
  sub->add_flag("--repair", command->repair, "Repair damage; no job may be running");
  sub->add_flag("--force", command->force, force_help);
  sub->footer(
      "Exit codes: 0 all is as it was written, 3 some is not, and can be or was repaired, 4 some "
      "cannot be repaired, or was replaced by a newer dataset, 1 unknown, as something could not "
      "be read, 2 wrong "
      "usage.");
  sub->callback([command, &exit_code] {
    const auto files = make_posix_files();
    const auto clock = make_system_clock();
    make_absolute(command->caches);
    exit_code = run_verify_command(*command, *files, *clock, current_process(), std::cout,
                                   Log(log_to_stderr));
  });
}

}  // namespace cairn
