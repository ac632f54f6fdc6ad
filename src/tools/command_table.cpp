#include "tools/command_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tools/help_topics.hpp"
#include "tools/wrapped_text.hpp"

namespace cairn {
namespace {

// Made by CMake: `commands` and `names`.
#include "command_table.inc"

constexpr std::string_view for_scripts = "For scripts";
constexpr std::string_view names_of_scr = "Names of SCR";
constexpr std::string_view internal = "Internal";
constexpr std::size_t summary_column = 14;

}  // namespace

std::span<const CommandRow> command_table() { return commands; }

const CommandRow* find_command(std::string_view name) {
  const auto found = std::find_if(std::begin(commands), std::end(commands),
                                  [&](const CommandRow& row) { return row.name == name; });
  return found == std::end(commands) ? nullptr : found;
}

std::string summary_of(std::string_view name) { return std::string(find_command(name)->summary); }

bool is_internal(const CommandRow& row) { return row.group == internal; }

bool is_for_scripts(const CommandRow& row) {
  return row.group == for_scripts || row.group == names_of_scr || is_internal(row);
}

std::span<const OtherName> other_names() { return names; }

std::vector<std::string> words_of_other_name(std::string_view name) {
  std::vector<std::string> words;
  for (const OtherName& other : other_names()) {
    if (other.name != name) continue;
    std::istringstream text{std::string(other.words)};
    for (std::string word; text >> word;) words.push_back(word);
  }
  return words;
}

std::string overview() {
  std::string text =
      "usage: cairn COMMAND [options]\n\n"
      "Checkpoint and restart for parallel programs.\n";
  std::string_view group;
  for (const CommandRow& row : command_table()) {
    if (is_for_scripts(row)) continue;
    if (row.group != group) text += fmt::format("\n{}:\n", group = row.group);
    text += in_columns("  " + std::string(row.name), std::string(row.summary), summary_column);
  }
  text += "\noptions:\n";
  text += in_columns("  -h, --help", "Show this help", summary_column + 4);
  text += in_columns("  -V, --version", "Show the version", summary_column + 4);
  text += "\n\"cairn help COMMAND\" describes a command. \"cairn help TOPIC\" describes:\n";
  for (const HelpTopic& topic : help_topics())
    text += in_columns("  " + std::string(topic.name), std::string(topic.title), summary_column);
  return text + "\n" + wrapped(std::string(common_exit_codes), 0) + "\n";
}

}  // namespace cairn
