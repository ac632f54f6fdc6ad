// The native command `cairn`: one subcommand per task, each in a file of its own.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>

#include "config/options.hpp"
#include "tools/arguments.hpp"
#include "tools/commands_json.hpp"
#include "tools/config_command.hpp"
#include "tools/drain_command.hpp"
#include "tools/exit_codes.hpp"
#include "tools/explain/explain_arguments.hpp"
#include "tools/halt_command.hpp"
#include "tools/help_text.hpp"
#include "tools/help_topics.hpp"
#include "tools/index/index_arguments.hpp"
#include "tools/job_command.hpp"
#include "tools/job_control.hpp"
#include "tools/layout_command.hpp"
#include "tools/log_events_command.hpp"
#include "tools/publish_command.hpp"
#include "tools/rbio/rbio_arguments.hpp"
#include "tools/rebuild_command.hpp"
#include "tools/scavenge_command.hpp"
#include "tools/simulate_command.hpp"

namespace cairn {
namespace {

void add_config(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("config", summary_of("config"));
  auto command = std::make_shared<ConfigCommand>();
  sub->add_option("name", command->names,
                  "Only these settings: SCR_DEBUG; CKPT=0 for all of a line (default: all)")
      ->type_name("SETTING");
  sub->add_flag("--changed", command->only_changed, "Only settings that are not the default");
  add_json(*sub, command->json);
  add_prefix(*sub, command->source);
  sub->footer("Exit codes: 0 all settings are good, 1 some are not, 2 wrong usage.");
  when_called(*sub, exit_code, [command](const Started& here) {
    return run_config_command(*command, *here.files, here.process, std::cout, here.log);
  });
}

/// How --nodes are filled, or else --hosts; one of the two must be there.
void add_ranks(CLI::App& sub, PlannedRanks& ranks) {
  auto* where = sub.add_option_group("Ranks", "Where the ranks are");
  auto* nodes = where->add_option("--nodes", ranks.nodes, "Number of nodes: node0, node1, ...")
                    ->type_name("N");
  where->add_option("--hosts", ranks.hosts, "The node of each rank: n0,n0,n1,...")
      ->type_name("HOSTS");
  where->require_option(1);
  sub.add_option("--ranks-per-node", ranks.per_node, "Ranks on each node of --nodes (1)")
      ->type_name("N")
      ->needs(nodes);
  sub.add_option_function<std::string>(
         "--placement", [&ranks](const std::string& order) { ranks.cyclic = order == "cyclic"; },
         "block: fill one node, then the next (default); or cyclic")
      ->type_name("ORDER")
      ->check(CLI::IsMember({"block", "cyclic"}))
      ->needs(nodes);
}

void add_job(CLI::App& sub, PlannedJob& job) {
  add_ranks(sub, job.ranks);
  const auto add = [&sub](const char* option, const char* type, std::string& value,
                          const std::string& help, const char* usual = "the settings") {
    sub.add_option(option, value, fmt::format("{} (default: {})", help, usual))->type_name(type);
  };
  add("--ckpt", "ID", job.ckpt, "Id of the CKPT descriptor",
      "the one with the smallest interval that is not for output");
  add("--scheme", "SCHEME", job.scheme, "SINGLE, PARTNER, XOR or RS");
  add("--set-size", "N", job.set_size, "Smallest number of members of a set");
  add("--group", "GROUP", job.group, "NODE, WORLD or one of the GROUPS lines");
  add("--failures", "N", job.failures, "Lost members of a set that RS can rebuild");
  add("--copies", "N", job.copies, "Copies that PARTNER keeps");
  add("--hop", "N", job.hop, "Distance of the copies of PARTNER, in members");
  add_prefix(sub, job.source);
}

void add_layout(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("layout", summary_of("layout"));
  auto command = std::make_shared<LayoutCommand>();
  add_job(*sub, command->job);
  add_json(*sub, command->json);
  when_called(*sub, exit_code, [command](const Started& here) {
    return run_layout_command(*command, *here.files, here.process, std::cout, here.log);
  });
}

void add_simulate(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("simulate", summary_of("simulate"));
  auto command = std::make_shared<SimulateCommand>();
  add_job(*sub, command->job);
  sub->add_option("--lose", command->lose,
                  "Names of nodes (n0,n5); 'any K': every choice of K failure groups; 'rate P': "
                  "each group with probability P; another kind of group may follow")
      ->type_name("LOSS")
      ->required();
  sub->add_option(
         "--seed", command->seed,
         "Seed of the samples, which are drawn where there are too many losses to count (1)")
      ->type_name("N");
  sub->add_option("--samples", command->samples, "Number of samples (100000)")->type_name("N");
  add_json(*sub, command->json);
  when_called(*sub, exit_code, [command](const Started& here) {
    return run_simulate_command(*command, *here.files, here.process, std::cout, here.log);
  });
}

void add_rebuild(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("rebuild", summary_of("rebuild"));
  auto folder = std::make_shared<std::string>();
  auto command = std::make_shared<PublishCommand>();
  auto* where =
      sub->add_option("-c,--cache", *folder,
                      "A directory that holds caches (<store>/<user>/cairn.<job>.<id>), or copies, "
                      "at any depth; if not given, the datasets that cairn scavenge saved to the "
                      "prefix directory are rebuilt and published")
          ->type_name("DIR");
  auto* names = sub->add_option("dataset", command->datasets,
                                "Names, numbers or UUIDs of datasets (default: all)")
                    ->type_name("DATASET");
  // Job control names one so.
  sub->add_option("--dataset", command->datasets)
      ->allow_extra_args(false)
      ->excludes(names)
      ->group("");
  add_force(*sub, command->force)->excludes(where);
  sub->add_flag("--run-ended", command->run_ended,
                "Wait only for other jobs; use this only if the last run of the job (SCR_JOB_ID) "
                "has ended")
      ->excludes(where);
  add_prefix(*sub, command->source);
  add_json(*sub, command->json);
  sub->footer(
      "Exit codes: 0 all datasets are whole, 1 some are not, 2 wrong usage, 75 a job or another "
      "scavenge is running: try again later.");
  when_called(*sub, exit_code, [folder, command](const Started& here) {
    if (folder->empty())
      return run_publish_command(*command, *here.files, *here.clock, here.process, std::cout,
                                 here.log);
    const RebuildCommand in_caches{normalise(*folder, here.process.working_folder),
                                   command->datasets, command->json};
    return run_rebuild_command(in_caches, *here.files, *here.clock, std::cout, here.log);
  });
}

void add_scavenge_node(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("scavenge-node", summary_of("scavenge-node"));
  auto command = std::make_shared<ScavengeCommand>();
  sub->add_option("--dataset", command->datasets,
                  "The number, name or UUID of a dataset; if not given, all that are not in the "
                  "prefix directory")
      ->type_name("DATASET")
      ->allow_extra_args(false);
  sub->add_flag("--list", command->list, "Copy nothing, list the datasets");
  add_prefix(*sub, command->source);
  add_json(*sub, command->json);
  sub->add_flag("--progress", command->progress,
                "Print regularly how many bytes are copied, each time as a line \". BYTES\"");
  sub->footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 75 a job or another scavenge is running, or "
      "SCR_END_TIME has come: try again; copied data are kept.");
  command->bar = ::isatty(STDERR_FILENO) == 1;
  when_called(*sub, exit_code, command, run_scavenge_command);
}

void add_drain_node(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("drain-node", summary_of("drain-node"));
  auto command = std::make_shared<DrainCommand>();
  sub->add_flag("--list", command->list,
                "Copy nothing, list the datasets whose copies are unfinished");
  sub->add_flag(
      "--run-ended", command->run_ended,
      "Do not wait 20 s for a sign of life of the last run of the job (SCR_JOB_ID); use this "
      "only if it has ended");
  add_prefix(*sub, command->source);
  add_json(*sub, command->json);
  sub->add_flag("--progress", command->progress,
                "Print regularly how many bytes are copied, each time as a line \". BYTES\"");
  sub->footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 75 a job uses the caches or the prefix "
      "directory, or SCR_END_TIME has come: try again; copied data are kept.");
  command->bar = ::isatty(STDERR_FILENO) == 1;
  when_called(*sub, exit_code, command, run_drain_command);
}

void add_log_events(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("log-events", summary_of("log-events"));
  sub->group("");
  auto source = std::make_shared<JobSettingsSource>();
  add_prefix(*sub, *source);
  when_called(*sub, exit_code, [source](const Started& here) {
    return run_log_events_command(*source, *here.files, *here.clock, here.process, std::cin,
                                  here.log);
  });
}

void add_job_command(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("job", summary_of("job"));
  sub->group("");
  auto source = std::make_shared<JobSettingsSource>();
  add_prefix(*sub, *source);
  when_called(*sub, exit_code, source, run_job_command);
}

void add_halt_conditions(CLI::App& sub, HaltCommand& command) {
  sub.add_option("-c,--checkpoints", command.checkpoints, "Stop after N more checkpoints")
      ->type_name("N");
  sub.add_option("-b,--before", command.before,
                 "End before this local time (YYYY-MM-DDTHH:MM:SS): stop --seconds or "
                 "SCR_HALT_SECONDS earlier")
      ->type_name("TIME");
  sub.add_option("-a,--after", command.after, "Stop after this local time (YYYY-MM-DDTHH:MM:SS)")
      ->type_name("TIME");
  sub.add_option("-s,--seconds", command.seconds,
                 "Stop N seconds before the allocation ends, in place of SCR_HALT_SECONDS")
      ->type_name("N");
  sub.add_flag("-i,--immediate", command.immediate,
               "Stop at the next call that can stop the job, without another checkpoint");
  sub.add_option("--reason", command.reason,
                 "Record this reason in place of JOB_HALTED, unless a request to stop exists "
                 "already; with --unset-reason: take back only this reason")
      ->type_name("TEXT");
  sub.add_flag("--unset-checkpoints", command.unset_checkpoints, "Take --checkpoints back");
  sub.add_flag("--unset-before", command.unset_before, "Take --before back");
  sub.add_flag("--unset-after", command.unset_after, "Take --after back");
  sub.add_flag("--unset-seconds", command.unset_seconds, "Take --seconds back");
  sub.add_flag("--unset-reason", command.unset_reason,
               "Take back the request to stop after the next checkpoint, or --immediate");
}

/// The jobs of the prefix directories that are named after an option, as in all commands; or, under
/// SCR's name, that are the arguments.
void add_halt(CLI::App& app, const std::string& name, int& exit_code) {
  auto* sub = app.add_subcommand(name, summary_of(name));
  auto command = std::make_shared<HaltCommand>();
  add_halt_conditions(*sub, *command);
  sub->add_flag("-l,--list", command->list, "Change nothing, show the current requests");
  sub->add_flag("-r,--remove", command->remove, "Take all requests back");
  sub->add_flag("-v,--verbose", command->verbose, "Also name the halt file");
  add_json(*sub, command->json);
  auto* prefix = sub->add_option("-p,--prefix", command->prefixes,
                                 "The prefix directory, in place of SCR_PREFIX; may be repeated")
                     ->type_name("DIR")
                     ->allow_extra_args(false);
  if (name == "scr-halt") {
    sub->group("");
    sub->add_option("prefixes", command->prefixes,
                    "Prefix directories; default: SCR_PREFIX, else the working directory")
        ->type_name("DIR")
        ->excludes(prefix);
  }
  sub->footer(
      "Exit codes: 0 done, 1 a halt file could not be read or written, 2 wrong usage or value.");
  when_called(*sub, exit_code, command, run_halt_command);
}

/// Prints the help or the version.
bool asks_about_command(const std::vector<std::string>& words) {
  static const std::vector<std::string> options = {"-h", "--help", "-V", "--version"};
  return !words.empty() &&
         std::find(options.begin(), options.end(), words.front()) != options.end();
}

/// The words after "cairn".
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  std::string name = argc > 0 ? name_of_path(argv[0]) : "";
  if (!words.empty() && !words_of_other_name(words.front()).empty()) {
    name = words.front();  // cairn scr_srun
    words.erase(words.begin());
  }
  auto before = words_of_other_name(name);
  if (asks_about_command(words)) before.resize(std::min<std::size_t>(before.size(), 1));
  words.insert(words.begin(), before.begin(), before.end());
  return words;
}

bool is_subcommand(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; }).empty();
}

/// If the first word is the name of a program cairn-<word>, becomes that program, or prints why it
/// cannot. False if the word is a subcommand, or unknown.
bool hand_on(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return false;
  const std::string& name = words.front();
  if (is_subcommand(app, name)) return false;
  const CommandRow* row = find_command(name);
  const std::string program = find_outside_command(name);
  if (program.empty() && row == nullptr) return false;
  if (program.empty())
    log_to_stderr(Severity::error, "cairn " + name + ": the program cairn-" + name +
                                       " is not installed; install the Python part of Cairn");
  else {
    become_outside_command(program, {words.begin() + 1, words.end()});
    log_to_stderr(Severity::error, program + ": " + std::strerror(errno) +
                                       "; check that its first line names an installed Python 3");
  }
  return true;
}

/// Possible names that the user may have meant.
std::vector<std::string_view> names_below(const CLI::App& app, bool is_top) {
  std::vector<std::string_view> names;
  if (is_top)
    for (const CommandRow& row : command_table())
      if (!is_internal(row)) names.push_back(row.name);
  if (!is_top)
    for (const CLI::App* one : subcommands_of(app)) names.push_back(one->get_name());
  return names;
}

/// If a word in the place of a command is none, prints that, and which command may be meant.
bool refuse_unknown(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string path = "cairn";
  for (const std::string& word : words) {
    if (subcommands_of(*at).empty() || word.starts_with('-')) return false;
    if (!is_subcommand(*at, word)) {
      const std::string nearest(nearest_name(word, names_below(*at, at == &app)));
      const std::string hint = nearest.empty() ? "\"" + path + " --help\" lists all"
                                               : "did you mean \"" + path + " " + nearest + "\"?";
      log_to_stderr(Severity::error, "there is no command \"" + path + " " + word + "\"; " + hint);
      return true;
    }
    path += " " + word;
    at = at->get_subcommand(word);
  }
  return false;
}

/// Prints an error in the common style, with a hint to the help of the command.
std::string text_of_wrong_usage(const CLI::App* app, const CLI::Error& error) {
  std::string command = "cairn";
  for (auto below = app->get_subcommands(); !below.empty(); below = app->get_subcommands()) {
    app = below[0];
    command += " " + app->get_name();
  }
  const bool may_be_prefix = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr &&
                             app->get_option_no_throw("--prefix") != nullptr;
  return "cairn: error: " + command + ": " + error.what() +
         (may_be_prefix ? "; --prefix DIR names a prefix directory" : "") + "; see \"" + command +
         " --help\"\n";
}

int parse(CLI::App& app, std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_ok : exit_usage;
  }
  return exit_ok;
}

/// Fails if the output could not be written.
int with_output_written(int exit_code) {
  std::cout.flush();
  if (std::cout) return exit_code;
  log_to_stderr(Severity::error,
                "the output could not be written; look at where it was to go: its file "
                "system may be full");
  return exit_code == exit_ok ? exit_failure : exit_code;
}

void set_version(CLI::App& app) {
  app.set_version_flag("-V,--version", "cairn " CAIRN_VERSION, "Show the version");
  app.get_help_ptr()->description("Show this help");
  for (CLI::App* below :
       app.get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); }))
    set_version(*below);
}

void add_commands(CLI::App& app, int& exit_code) {
  add_config(app, exit_code);
  add_layout(app, exit_code);
  add_simulate(app, exit_code);
  add_rebuild(app, exit_code);
  add_scavenge_node(app, exit_code);
  add_drain_node(app, exit_code);
  add_log_events(app, exit_code);
  add_job_command(app, exit_code);
  for (const char* name : {"halt", "scr-halt"}) add_halt(app, name, exit_code);
  add_explain(app, exit_code);
  add_verify(app, exit_code);
  add_index(app, exit_code);
  add_print(app, exit_code);
  add_rbio(app, exit_code);
  add_scr_index(app, exit_code);
  add_commands_command(app, exit_code);
  set_version(app);
}

/// `cairn index` alone lists.
void add_default_action(std::vector<std::string>& words) {
  if (words.empty() || words.front() != "index") return;
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (rest.empty() || (rest.front().starts_with('-') && !asks_about_command(rest)))
    words.insert(words.begin() + 1, "list");
}

/// "help", "help TOPIC" and "help COMMAND ...", which becomes "COMMAND ... --help". Returns the
/// exit code where it has answered.
std::optional<int> answer_help(std::vector<std::string>& words) {
  if (words.empty() || words.front() != "help") return std::nullopt;
  words.erase(words.begin());
  if (words.size() == 1)
    if (const auto text = help_of_topic(words.front())) {
      std::cout << *text;
      return with_output_written(exit_ok);
    }
  if (!words.empty()) {
    const auto stands_for = words_of_other_name(words.front());
    if (!stands_for.empty()) words = {stands_for.front()};
    if (find_command(words.front()) == nullptr && find_outside_command(words.front()).empty()) {
      log_to_stderr(Severity::error, "there is no command or topic \"" + words.front() +
                                         "\"; \"cairn help\" lists all");
      return exit_usage;
    }
  }
  words.push_back("--help");
  return std::nullopt;
}

int run(int argc, char** argv) {
  CLI::App app("", "cairn");
  app.formatter(std::make_shared<HelpText>());
  app.failure_message(text_of_wrong_usage);
  app.require_subcommand(1);
  int exit_code = exit_ok;
  add_commands(app, exit_code);
  std::vector<std::string> words = words_of(argc, argv);
  if (const auto answered = answer_help(words)) return *answered;
  add_default_action(words);
  if (hand_on(app, words)) return exit_failure;
  if (refuse_unknown(app, words)) return exit_usage;
  const int parsed = parse(app, words);
  return with_output_written(parsed == exit_ok ? exit_code : parsed);
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  try {
    return cairn::run(argc, argv);
  } catch (const std::exception& error) {  // of the standard library: out of memory and the like
    cairn::log_to_stderr(cairn::Severity::error, error.what());
    return cairn::exit_failure;
  }
}
