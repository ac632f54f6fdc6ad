#include "tools/index/index_arguments.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <limits>

#include "base/colour.hpp"
#include "tools/arguments.hpp"
#include "tools/id_command.hpp"
#include "tools/index/index_command.hpp"
#include "tools/print_command.hpp"

namespace cairn {
namespace {

using Action = IndexCommand::Action;
using Shared = std::shared_ptr<IndexCommand>;

constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 failed, or damage was found, 2 wrong usage.";

/// Of the terminal that the output goes to. What goes elsewhere, to grep say, is not cut.
std::size_t columns_of_output() {
  constexpr std::size_t narrowest = 40;
  winsize size = {};
  if (::isatty(STDOUT_FILENO) == 0) return std::numeric_limits<std::size_t>::max();
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::max<std::size_t>(size.ws_col, narrowest);
}

void add_run(CLI::App& sub, const Shared& command, int& exit_code) {
  sub.footer(exit_codes);
  when_called(sub, exit_code, [command](const Started& here) {
    command->columns = columns_of_output();
    command->has_colour = has_colour(STDOUT_FILENO);
    if (!command->list_file.empty())
      command->list_file = normalise(command->list_file, here.process.working_folder);
    return run_index_command(*command, *here.files, *here.clock, here.process, std::cout, here.log);
  });
}

/// What all actions have.
Shared add_action(CLI::App& index, const std::string& name, const std::string& help, Action action,
                  int& exit_code) {
  auto* sub = index.add_subcommand(name, help);
  auto command = std::make_shared<IndexCommand>();
  command->action = action;
  add_prefix(*sub, command->source);
  add_json(*sub, command->json);
  add_run(*sub, command, exit_code);
  return command;
}

void add_name(CLI::App& sub, IndexCommand& command) {
  sub.add_option("name", command.name, "Name of a dataset, or its UUID")
      ->required()
      ->type_name("NAME");
}

void add_reading(CLI::App& index, int& exit_code) {
  auto list = add_action(index, "list", "List the datasets, newest first; the default",
                         Action::list, exit_code);
  index.get_subcommand("list")->add_flag("--dropped", list->dropped,
                                         "List the dropped datasets, which can be added again");
  auto show =
      add_action(index, "show", "Show everything about one dataset", Action::show, exit_code);
  auto* sub = index.get_subcommand("show");
  add_name(*sub, *show);
  sub->add_flag("--files", show->files, "Also the files of each rank");
  sub->add_flag("--check", show->check, "Read every file and compare it with its checksums");
}

/// Those that have a name and nothing else.
void add_simple_changes(CLI::App& index, int& exit_code) {
  struct Simple {
    const char* name;
    const char* help;
    Action action;
  };
  for (const Simple& simple :
       {Simple{"current", "Choose the checkpoint that a restart uses", Action::current},
        Simple{"delete", "Remove a dataset and its files", Action::remove}}) {
    auto command = add_action(index, simple.name, simple.help, simple.action, exit_code);
    add_name(*index.get_subcommand(simple.name), *command);
    add_force(*index.get_subcommand(simple.name), command->force);
  }
  for (const auto& [name, action, help] :
       {std::tuple("build", Action::build, "Rebuild the listing from the records of the datasets"),
        std::tuple("import", Action::import, "Import the datasets that SCR 3 has written")}) {
    auto command = add_action(index, name, help, action, exit_code);
    add_force(*index.get_subcommand(name), command->force);
  }
}

/// A dropped dataset, or files that Cairn did not write.
void add_adding(CLI::App& index, int& exit_code) {
  auto add = add_action(index, "add", "Put back a dropped dataset, or add files as a checkpoint",
                        Action::add, exit_code);
  auto* sub = index.get_subcommand("add");
  add_name(*sub, *add);
  const auto with_files = [add](const auto&) { add->action = Action::add_files; };
  auto* names = sub->add_option("files", add->names,
                                "Files of a checkpoint, below the prefix directory; {rank} stands "
                                "for the rank, and a file without it is shared by all ranks")
                    ->type_name("FILE")
                    ->each(with_files);
  auto* ranks = sub->add_option("--ranks", add->ranks, "Number of ranks that read the files")
                    ->type_name("N")
                    ->check(CLI::Range(1U, 1U << 24))
                    ->each(with_files);
  auto* list = sub->add_option("--list", add->list_file,
                               "A list in place of FILE, with a line RANK FILE for each file")
                   ->type_name("LIST")
                   ->each(with_files);
  names->needs(ranks);
  names->excludes(list);
  add_force(*sub, add->force);
}

/// A flag that makes it another action.
void add_changes_in_two_ways(CLI::App& index, int& exit_code) {
  auto drop =
      add_action(index, "drop", "Forget a dataset, but keep its files", Action::drop, exit_code);
  auto* sub = index.get_subcommand("drop");
  add_name(*sub, *drop);
  sub->add_flag_callback(
      "--after", [drop] { drop->action = Action::drop_after; },
      "Forget all datasets that are newer than NAME, not NAME itself");
  add_force(*sub, drop->force);
  auto quarantine = add_action(index, "quarantine", "Keep restarts from using a checkpoint",
                               Action::quarantine, exit_code);
  sub = index.get_subcommand("quarantine");
  add_name(*sub, *quarantine);
  sub->add_flag_callback(
      "--lift", [quarantine] { quarantine->action = Action::lift; },
      "Let restarts use it again, also after failures");
  add_force(*sub, quarantine->force);
}

void add_id(CLI::App& index, int& exit_code) {
  auto* sub = index.add_subcommand(
      "id", "Show the id by which caches know the prefix directory, or give it another");
  auto command = std::make_shared<IdCommand>();
  sub->add_option("id", command->id,
                  "The id of the caches that the next run is to use: the last part of "
                  "their names, cairn.JOB.ID")
      ->type_name("ID");
  add_prefix(*sub, command->source);
  add_force(*sub, command->force);
  add_json(*sub, command->json);
  sub->footer(exit_codes);
  when_called(*sub, exit_code, command, run_id_command);
}

}  // namespace

void add_index(CLI::App& app, int& exit_code) {
  auto* index = app.add_subcommand("index", summary_of("index"));
  index->require_subcommand(0, 1);  // main.cpp adds "list"
  index->footer(exit_codes);
  add_reading(*index, exit_code);
  add_simple_changes(*index, exit_code);
  add_adding(*index, exit_code);
  add_changes_in_two_ways(*index, exit_code);
  add_id(*index, exit_code);
}

void add_scr_index(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("scr-index", summary_of("scr-index"));
  sub->group("");
  auto command = std::make_shared<IndexCommand>();
  auto* what = sub->add_option_group("What to do", "One of these; default: --list");
  what->add_flag_callback(
      "-l,--list", [command] { command->action = Action::list; }, "List the datasets");
  const auto by_name = [&](const char* option, Action action, const char* help) {
    what->add_option_function<std::string>(
            option,
            [command, action](const std::string& name) {
              command->action = action;
              command->name = name;
            },
            help)
        ->type_name("NAME");
  };
  by_name("-a,--add", Action::add, "Put back a dropped dataset");
  what->add_option_function<std::uint64_t>(
          "-b,--build",
          [command](std::uint64_t number) {
            command->action = Action::build;
            command->number = number;
          },
          "Rebuild the scavenged dataset of this number; if it is listed, rebuild the listing")
      ->type_name("ID");
  by_name("-c,--current", Action::current, "Choose the checkpoint that a restart uses");
  by_name("-d,--drop", Action::drop, "Forget a dataset, but keep its files");
  by_name("--drop-after", Action::drop_after, "Forget all datasets that are newer");
  what->require_option(0, 1);
  add_prefix(*sub, command->source);
  add_force(*sub, command->force);
  add_json(*sub, command->json);
  // SCR's commands take these; here there is nothing for them to change.
  sub->add_flag("-v,--verbose")->group("");
  sub->add_option("-j,--joblauncher")->group("");
  add_run(*sub, command, exit_code);
}

void add_print(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("print", summary_of("print"));
  auto command = std::make_shared<PrintCommand>();
  sub->add_option("file", command->file, "A file with records, or the log log.json")
      ->required()
      ->type_name("FILE");
  add_json(*sub, command->json);
  sub->footer(
      "Exit codes: 0 done, 1 the file cannot be read, or parts of it are damaged or unknown, 2 "
      "wrong usage.");
  when_called(*sub, exit_code, [command](const Started& here) {
    command->file = normalise(command->file, here.process.working_folder);
    return run_print_command(*command, *here.files, std::cout, here.log);
  });
}

}  // namespace cairn
