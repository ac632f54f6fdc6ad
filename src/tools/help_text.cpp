#include "tools/help_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/command_table.hpp"
#include "tools/wrapped_text.hpp"

namespace cairn {
namespace {

constexpr std::size_t text_column = 24;
const std::string usual_exit_codes = "Exit codes: 0 done, 1 failed, 2 wrong usage.";

bool is_option_group(const CLI::App& app) { return app.get_name().empty(); }

void collect(const CLI::App& app, bool positional, std::vector<const CLI::Option*>& found) {
  for (const CLI::Option* one : app.get_options([&](const CLI::Option* option) {
         const bool is_shown = !option->get_group().empty() &&
                               !(is_option_group(app) && option == app.get_help_ptr());
         return is_shown && option->get_positional() == positional;
       }))
    found.push_back(one);
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* one) { return is_option_group(*one); }))
    collect(*group, positional, found);
}

bool takes_several(const CLI::Option& option) { return option.get_expected_max() > 1; }

/// "DIR", "[DIR ...]"
std::string usage_of(const CLI::Option& positional) {
  const std::string name = value_of(positional) + (takes_several(positional) ? " ..." : "");
  return positional.get_required() ? name : "[" + name + "]";
}

std::string usage_line(const CLI::App& app, const std::string& name) {
  std::string line = "usage: " + name;
  if (!subcommands_of(app).empty())
    line += app.get_require_subcommand_min() > 0 ? " COMMAND" : " [COMMAND]";
  line += " [options]";
  for (const CLI::Option* one : positionals_of(app)) line += " " + usage_of(*one);
  return line + "\n";
}

std::string section(const std::string& title, const std::string& text) {
  return text.empty() ? "" : "\n" + title + ":\n" + text;
}

/// As the help of Python's commands writes them.
std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

}  // namespace

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* one) { return !is_option_group(*one) && !one->get_group().empty(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> found;
  collect(app, false, found);
  std::stable_partition(found.begin(), found.end(), [&](const CLI::Option* one) {
    return one == app.get_help_ptr() || one == app.get_version_ptr();
  });
  return found;
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  std::vector<const CLI::Option*> found;
  collect(app, true, found);
  return found;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string value_of(const CLI::Option& option) {
  const std::string type = option.get_type_size() == 0 ? "" : option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  const auto choices = type.find(":{");
  return choices == std::string::npos ? name : type.substr(choices + 1);
}

std::string HelpText::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const {
  if (app->get_parent() == nullptr) return overview();
  std::string text =
      usage_line(*app, name) + "\n" + wrapped(sentence(app->get_description()), 0) + "\n";
  std::string arguments, options, commands;
  for (const CLI::Option* one : positionals_of(*app))
    arguments += in_columns("  " + value_of(*one), one->get_description(), text_column);
  for (const CLI::Option* one : options_of(*app)) {
    const std::string value = value_of(*one);
    options += in_columns(
        fmt::format("  {}{}{}", fmt::join(names_of(*one), ", "), value.empty() ? "" : " ", value),
        one->get_description(), text_column);
  }
  for (const CLI::App* one : subcommands_of(*app))
    commands += in_columns("  " + one->get_name(), one->get_description(), text_column);
  text +=
      section("commands", commands) + section("arguments", arguments) + section("options", options);
  const std::string exit_codes = app->get_footer();
  return text + "\n" + wrapped(exit_codes.empty() ? usual_exit_codes : exit_codes, 0) + "\n";
}

}  // namespace cairn
