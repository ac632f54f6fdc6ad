// Types what cairn explain recommends to type.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "tools/index/index_command.hpp"
#include "tools/publish_command.hpp"
#include "tools/verify/verify_command.hpp"

namespace cairn {

struct AdvisedCommand {
  std::string name;  ///< "verify", "index quarantine"
  std::string prefix;
  std::vector<std::string> caches;
  std::vector<std::string> words;
  bool repair = false;
  bool lift = false;
};

/// Of a line with a command in it, up to what is said of it. In no name is a space or a comma.
inline AdvisedCommand parse_advised(const std::string& line) {
  AdvisedCommand command;
  const auto begin = line.find("cairn ");
  EXPECT_NE(begin, std::string::npos) << line;
  std::istringstream in(line.substr(begin, line.find(", ", begin) - begin));
  std::string word;
  in >> word >> command.name;
  if (command.name == "index" && in >> word) command.name += " " + word;
  while (in >> word) {
    if (word == "--prefix")
      in >> command.prefix;
    else if (word == "--cache")
      in >> command.caches.emplace_back();
    else if (word == "--repair")
      command.repair = true;
    else if (word == "--lift")
      command.lift = true;
    else
      command.words.push_back(word);
  }
  return command;
}

/// Returns its exit code. What nodes do `scavenge` does, called with the prefix directory.
inline int run_advised(const AdvisedCommand& advised, Files& files, Clock& clock,
                       const ProcessFacts& process, std::ostream& out, const Log& log,
                       const std::function<int(const std::string&)>& scavenge = nullptr) {
  using Action = IndexCommand::Action;
  if (advised.name == "verify") {
    VerifyCommand command;
    command.source.prefix = advised.prefix;
    command.caches = advised.caches;
    command.datasets = advised.words;
    command.repair = advised.repair;
    return run_verify_command(command, files, clock, process, out, log);
  }
  if (advised.name == "rebuild") {
    PublishCommand command;
    command.source.prefix = advised.prefix;
    command.datasets = advised.words;
    return run_publish_command(command, files, clock, process, out, log);
  }
  if (advised.name == "scavenge" && scavenge) return scavenge(advised.prefix);
  const std::map<std::string, Action> actions = {{"index quarantine", Action::lift},
                                                 {"index add", Action::add},
                                                 {"index delete", Action::remove},
                                                 {"index import", Action::import}};
  const auto action = actions.find(advised.name);
  if (action == actions.end()) {
    ADD_FAILURE() << "what is cairn " << advised.name << "?";
    return -1;
  }
  IndexCommand command;
  command.action = action->second;
  command.source.prefix = advised.prefix;
  if (!advised.words.empty()) command.name = advised.words.front();
  return run_index_command(command, files, clock, process, out, log);
}

}  // namespace cairn
