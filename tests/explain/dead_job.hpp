// A job that is over, with its caches and its prefix directory, as the commands see it.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>

#include "advised.hpp"
#include "files/hasty_clock.hpp"
#include "support/command_output.hpp"
#include "support/job_bed.hpp"
#include "support/report_checks.hpp"
#include "tools/explain/explain_command.hpp"
#include "tools/id_command.hpp"
#include "tools/verify/verify_command.hpp"

namespace cairn {

class DeadJob : public testing::Test, protected CommandOutput {
 protected:
  DeadJob() {
    ::setenv("TZ", "UTC0", 1);
    process_ = bed_.process_on("login");
  }

  std::string prefix() const { return bed_.settings.prefix; }

  int explain(std::uint32_t ranks = 0, std::vector<std::string> datasets = {},
              std::vector<std::string> caches = {}) {
    ExplainCommand command;
    command.caches = std::move(caches);
    command.ranks = ranks;
    command.datasets = std::move(datasets);
    return run_in_both_ways([&](bool json, std::ostream& out, const Log& log) {
      command.json = json;
      return run_explain_command(command, *files_, *clock_, process_, out, log);
    });
  }

  /// A command that changes nothing, for people and for programs. What programs get is in json_.
  int run_in_both_ways(const std::function<int(bool json, std::ostream&, const Log&)>& command) {
    std::ostringstream json;
    const int code = command(true, json, Log());
    json_ = nlohmann::json::parse(json.str());
    EXPECT_EQ(
        keep_output_of([&](std::ostream& out, const Log& log) { return command(false, out, log); }),
        code);
    take_errors(json_, logged());
    if (json_.empty())
      EXPECT_EQ(printed(), "");
    else if (!prints("last sign of life"))  // which is older the second time
      expect_same(printed(), json_);
    return code;
  }

  /// The forecast of explain() is what the job then does: dataset 0 is none.
  void expect_forecast(int dataset, const Nodes& nodes = four_nodes()) {
    ASSERT_EQ(explain(static_cast<std::uint32_t>(nodes.size())), 0) << logged();
    const std::string first = printed().substr(0, printed().find('\n'));
    const std::string words = dataset == 0 ? "FROM SCRATCH" : fmt::format("(ckpt.{})", dataset);
    EXPECT_NE(first.find(words), std::string::npos) << printed();
    EXPECT_EQ(bed_.restart(nodes), dataset) << printed();
  }

  /// Types the command in a line of what explain() has printed, where there are no settings of the
  /// job but its own.
  int follow(const std::string& line) {
    const AdvisedCommand advised = parse_advised(line);
    ProcessFacts process = process_;
    process.environment.erase("SCR_PREFIX");
    process.working_folder = "/";
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_advised(advised, *files_, *clock_, process, out, log);
    });
  }
  /// The line in what was printed that has these words.
  std::string line_with(const std::string& words) const {
    std::istringstream in(printed());
    for (std::string line; std::getline(in, line);)
      if (line.find(words) != std::string::npos) return line;
    ADD_FAILURE() << words << " is not in\n" << printed();
    return {};
  }

  /// Types the first `cairn index id ID -p DIR` that is in a text, of the directory of the job.
  int follow_index_id(const std::string& text) {
    const std::string words = "cairn index id ";
    const auto at = text.find(words);
    EXPECT_NE(at, std::string::npos) << text;
    EXPECT_EQ(text.find(words + text.substr(at + words.size(), 16) + " -p " + prefix()), at);
    IdCommand command;
    command.id = text.substr(at + words.size(), 16);
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_id_command(command, *files_, *clock_, process_, out, log);
    });
  }

  int verify(VerifyCommand command) {
    const auto verify = [&](bool json, std::ostream& out, const Log& log) {
      command.json = json;
      return run_verify_command(command, *files_, *clock_, process_, out, log);
    };
    if (!command.repair) return run_in_both_ways(verify);
    return keep_output_of(
        [&](std::ostream& out, const Log& log) { return verify(false, out, log); });
  }
  int verify_prefix(bool repair = false, std::vector<std::string> datasets = {}) {
    VerifyCommand command;
    command.repair = repair;
    command.datasets = std::move(datasets);
    return verify(command);
  }
  int verify_caches(bool repair = false) {
    VerifyCommand command;
    command.caches = {folder_of(bed_.node("n0"))};
    command.repair = repair;
    return verify(command);
  }

  /// What is said of a dataset in a place.
  nlohmann::json said_of(const std::string& name, const std::string& place) const {
    for (const auto& finding : json_.at("datasets"))
      if (finding.at("name") == name && finding.at("place") == place) return finding;
    ADD_FAILURE() << "nothing of " << name << ", " << place << " in\n" << json_.dump(1);
    return {{"text", ""}, {"taken", false}, {"usable", false}, {"to_do", {}}};
  }
  static bool has(const nlohmann::json& finding, const std::string& text) {
    return finding.dump().find(text) != std::string::npos;
  }

  PrefixJobBed bed_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = std::make_unique<HastyClock>();
  ProcessFacts process_;
  nlohmann::json json_;
};

}  // namespace cairn
