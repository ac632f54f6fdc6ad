#include "tools/explain/explain_arguments.hpp"

#include "tools/arguments.hpp"
#include "tools/explain/explain_command.hpp"
#include "tools/verify/verify_command.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t largest_number_of_ranks = std::uint32_t{1} << 24;

/// The common options.
template <class Command>
void add_places(CLI::App& sub, Command& command, const std::string& about_caches) {
  add_prefix(sub, command.source);
  sub.add_option("-c,--cache", command.caches, about_caches)
      ->type_name("DIR")
      ->allow_extra_args(false);
  sub.add_option("dataset", command.datasets, "Names, numbers or UUIDs of datasets (default: all)")
      ->type_name("DATASET");
  add_json(sub, command.json);
}

void make_absolute(std::vector<std::string>& folders, const ProcessFacts& process) {
  for (std::string& folder : folders) folder = normalise(folder, process.working_folder);
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
  when_called(*sub, exit_code, [command](const Started& here) {
    make_absolute(command->caches, here.process);
    return run_explain_command(*command, *here.files, *here.clock, here.process, std::cout,
                               here.log);
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
  add_force(*sub, command->force);
  sub->footer(
      "Exit codes: 0 all is as it was written, 3 some is not, and can be or was repaired, 4 some "
      "cannot be repaired, or was replaced by a newer dataset, 1 unknown, as something could not "
      "be read, or has no checksums because it is written and not protected yet, 2 wrong usage.");
  when_called(*sub, exit_code, [command](const Started& here) {
    make_absolute(command->caches, here.process);
    return run_verify_command(*command, *here.files, *here.clock, here.process, std::cout,
                              here.log);
  });
}

}  // namespace cairn
