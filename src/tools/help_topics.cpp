#include "tools/help_topics.hpp"

#include <fmt/format.h>

#include <array>

#include "tools/command_table.hpp"
#include "tools/wrapped_text.hpp"

namespace cairn {
namespace {

constexpr std::array topics = {
    HelpTopic{"exit-codes", "what the commands return to the shell",
              R"(All commands:
  0    done
  1    failed; the standard error says why
  2    the command line is wrong; nothing was changed
  75   try again later: a job is running, or the time is up (rebuild, scavenge,
       scavenge-node)

cairn run:
  0    the program has reached its end
  3    halted: the job has not reached its end, and can continue later
  4    given up: too many failures, or too few nodes left

cairn verify:
  3    something is damaged, and can be or was repaired
  4    something is damaged, and cannot be repaired, or a newer dataset has
       overwritten it

cairn wrap:
  127  the program cannot be started
  Else it returns what the program returns.

These answer a question:
  cairn doctor        0: a job can run here; 1: it cannot
  cairn down-nodes    0: all nodes are fit; 1: some are not
  cairn should-exit   0: stop; 1: go on

A command that a signal ended returns 128 and the number of the signal.
)"},
    HelpTopic{"jobs", "how a command finds the job, and what its arguments name",
              R"(A command finds a job by its prefix directory: -p DIR, else SCR_PREFIX, else the
working directory. The last run recorded its job id, nodes and caches there. The
environment overrides this record.

What follows the options is what the command works on: datasets (explain,
verify, rebuild, index), a program (run, doctor), settings (config), nodes
(down-nodes) or files (print, report, rbio). It is never the prefix directory,
except for halt, which has SCR's command line, and may ask several jobs.

A dataset is named by its name, its number or its UUID.
)"},
    HelpTopic{"output", "JSON, colour, and where messages go",
              R"(Results go to the standard output; errors, warnings and notes to the standard
error, each with the name of the program before it. --json prints the result for
programs; every command that reports something has it.

Errors, warnings and states are coloured on a terminal. NO_COLOR=1 switches this
off, and so does TERM=dumb.
)"},
    HelpTopic{"scripts", "commands for scripts that launch their program themselves", ""},
};

/// The list is in the table of commands.
std::string commands_for_scripts() {
  std::string text;
  for (const CommandRow& row : command_table())
    if (is_for_scripts(row) && !is_internal(row) && !row.name.starts_with("scr-"))
      text += in_columns("  " + std::string(row.name), std::string(row.summary), 18);
  text += "\nNames of SCR, and what each stands for:\n";
  for (const OtherName& other : other_names())
    text += in_columns("  " + std::string(other.name), fmt::format("cairn {}", other.words), 24);
  return text;
}

}  // namespace

std::span<const HelpTopic> help_topics() { return topics; }

std::optional<std::string> help_of_topic(std::string_view name) {
  for (const HelpTopic& topic : topics)
    if (topic.name == name)
      return fmt::format("{}: {}\n\n{}", topic.name, topic.title,
                         topic.text.empty() ? commands_for_scripts() : std::string(topic.text));
  return std::nullopt;
}

}  // namespace cairn
