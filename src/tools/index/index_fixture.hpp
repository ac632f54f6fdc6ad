// The commands of `cairn index` in a prefix directory with three checkpoints, for their tests.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/command_output.hpp"
#include "support/prefix_fixture.hpp"
#include "support/report_checks.hpp"
#include "tools/index/index_command.hpp"

namespace cairn {

/// Three checkpoints of three ranks, the newest of them current, and a job that has ended.
class IndexCommandTest : public PrefixFixture, protected CommandOutput {
 protected:
  IndexCommandTest() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    process_ = {{{"USER", "ann"}, {"SCR_PREFIX", prefix()}}, "node1", base_.path(), 1};
  }

  /// All have files of the same names; only the newest has its files unchanged.
  void flush_three() {
    for (const int dataset : {1, 2, 3}) flush_well(dataset);
    run_well([](PrefixRank& rank) {
      if (!rank.keeper) return;
      ASSERT_TRUE(rank.keeper->set_current("ckpt.3"));
      ASSERT_TRUE(rank.keeper->resign());
    });
  }
  std::string own_name(int rank, int file) const {
    return fmt::format("{}/ckpt/r{}/f{}", prefix(), rank, file);
  }

  int run_index(IndexCommand command) {
    const int code = keep_output_of([&](std::ostream& out, const Log& log) {
      return run_index_command(command, *files_, *clock_, process_, out, log);
    });
    const bool changes = command.action != IndexCommand::Action::list &&
                         command.action != IndexCommand::Action::show;
    if (!changes && !command.json) expect_json_to_say_the_same(command, code);
    return code;
  }
  void expect_json_to_say_the_same(IndexCommand command, int code) {
    std::ostringstream json;
    command.json = true;
    EXPECT_EQ(run_index_command(command, *files_, *clock_, process_, json, Log()), code);
    auto report = nlohmann::json::parse(json.str());
    take_errors(report, logged());
    if (printed().empty())
      EXPECT_TRUE(report.empty()) << json.str();
    else if (command.action == IndexCommand::Action::show)  // a list has less
      expect_same(printed(), report);
  }
  int run_index(IndexCommand::Action action, const std::string& name = "") {
    return run_index(command_for(action, name));
  }
  static IndexCommand command_for(IndexCommand::Action action, const std::string& name = "") {
    IndexCommand command;
    command.action = action;
    command.name = name;
    return command;
  }
  nlohmann::json json_of_index(IndexCommand command) {
    command.json = true;
    exit_code_ = run_index(command);
    return printed_json();
  }
  std::vector<std::string> listed(bool dropped = false) {
    IndexCommand command;
    command.dropped = dropped;
    std::vector<std::string> names;
    const auto json = json_of_index(command);
    for (const auto& dataset : json[dropped ? "dropped" : "datasets"])
      names.push_back(dataset["name"]);
    return names;
  }
  std::string current() { return *read_current(*files_, folder()); }

  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
  ProcessFacts process_;
  int exit_code_ = 0;
};

}  // namespace cairn
