#include "tools/commands_json.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/command_table.hpp"
#include "tools/exit_codes.hpp"
#include "tools/help_text.hpp"
#include "tools/help_topics.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

Json help_json(const CLI::App& app) {
  Json options = Json::array();
  Json arguments = Json::array();
  Json commands = Json::object();
  for (const CLI::Option* one : options_of(app))
    options.push_back(
        {{"names", names_of(*one)}, {"value", value_of(*one)}, {"help", one->get_description()}});
  for (const CLI::Option* one : positionals_of(app))
    arguments.push_back({{"value", value_of(*one)}, {"help", one->get_description()}});
  for (const CLI::App* one : subcommands_of(app)) {
    Json below = help_json(*one);
    below["summary"] = one->get_description();
    commands[one->get_name()] = below;
  }
  return {{"options", options}, {"arguments", arguments}, {"commands", commands}};
}

Json table_json(const CLI::App& app) {
  Json commands = Json::array();
  for (const CommandRow& row : command_table()) {
    Json one = {{"name", row.name},
                {"group", row.group},
                {"summary", row.summary},
                {"is_for_scripts", is_for_scripts(row)},
                {"is_python", row.is_outside}};
    if (!row.is_outside) one["help"] = help_json(*app.get_subcommand(std::string(row.name)));
    commands.push_back(one);
  }
  Json names = Json::object();
  for (const OtherName& other : other_names()) names[std::string(other.name)] = other.words;
  Json topics = Json::object();
  for (const HelpTopic& topic : help_topics()) topics[std::string(topic.name)] = topic.title;
  return {{"commands", commands}, {"names", names}, {"topics", topics}};
}

}  // namespace

void add_commands_command(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("commands", summary_of("commands"));
  sub->group("");
  sub->callback([&app, &exit_code] {
    std::cout << table_json(app).dump(1) << "\n";
    exit_code = exit_ok;
  });
}

}  // namespace cairn
