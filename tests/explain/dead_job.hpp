// A job that is over, with its caches and its prefix directory, as the commands see it.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>

#include "advised.hpp"
#include "files/hasty_clock.hpp"
#include "session/prefix_cluster.hpp"
#include "tools/explain_command.hpp"
#include "tools/id_command.hpp"
#include "tools/report_harness.hpp"
#include "tools/verify_command.hpp"

namespace cairn {

class DeadJob : public testing::Test {
 protected:
  DeadJob() {
    ::setenv("TZ", "UTC0", 1);
    process_ = {{{"USER", "tester"},
                 {"SCR_JOB_ID", "job"},
                 {"SCR_PREFIX", cluster_.settings.prefix},
                 {"SCR_CACHE_BASE", cluster_.node("%n")},
                 {"SCR_CNTL_BASE", cluster_.node("%n")}},
                "login",
                cluster_.settings.prefix,
                1};
  }

  std::string prefix() const { return cluster_.settings.prefix; }

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

  /// A command that changes nothing, for people and for programs: json_ has what it says to these.
  int run_in_both_ways(const std::function<int(bool, std::ostream&, const Log&)>& command) {
    std::ostringstream json;
    const int code = command(true, json, Log());
    json_ = nlohmann::json::parse(json.str());
    EXPECT_EQ(run([&](std::ostream& out, const Log& log) { return command(false, out, log); }),
              code);
    take_errors(json_, told_);
    if (json_.empty())
      EXPECT_EQ(out_, "");
    else if (!shows("last sign of life"))  // which is older the second time
      expect_same(out_, json_);
    return code;
  }

  /// What explain() foretells is what the job then does: 0 is none.
  void expect_forecast(int dataset, const Nodes& nodes = four_nodes()) {
    ASSERT_EQ(explain(static_cast<std::uint32_t>(nodes.size())), 0) << told_;
    const std::string first = out_.substr(0, out_.find('\n'));
    const std::string words = dataset == 0 ? "FROM SCRATCH" : fmt::format("(ckpt.{})", dataset);
    EXPECT_NE(first.find(words), std::string::npos) << out_;
    EXPECT_EQ(cluster_.restart(nodes), dataset) << out_;
  }

  /// Types the command in a line of what explain() has printed, where there are no settings of the
  /// job but its own.
  int follow(const std::string& line) {
    const AdvisedCommand advised = parse_advised(line);
    ProcessFacts process = process_;
    process.environment.erase("SCR_PREFIX");
    process.working_folder = "/";
    return run([&](std::ostream& out, const Log& log) {
      return run_advised(advised, *files_, *clock_, process, out, log);
    });
  }
  /// The line in what was printed that has these words.
  std::string line_with(const std::string& words) const {
    std::istringstream in(out_);
    for (std::string line; std::getline(in, line);)
      if (line.find(words) != std::string::npos) return line;
    ADD_FAILURE() << words << " is not in\n" << out_;
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
    return run([&](std::ostream& out, const Log& log) {
      return run_id_command(command, *files_, *clock_, process_, out, log);
    });
  }

  int verify(VerifyCommand command) {
    const auto verify = [&](bool json, std::ostream& out, const Log& log) {
      command.json = json;
      return run_verify_command(command, *files_, *clock_, process_, out, log);
    };
    if (!command.repair) return run_in_both_ways(verify);
    return run([&](std::ostream& out, const Log& log) { return verify(false, out, log); });
  }
  int verify_prefix(bool repair = false, std::vector<std::string> datasets = {}) {
    VerifyCommand command;
    command.repair = repair;
    command.datasets = std::move(datasets);
    return verify(command);
  }
  int verify_caches(bool repair = false) {
    VerifyCommand command;
    command.caches = {folder_of(cluster_.node("n0"))};
    command.repair = repair;
    return verify(command);
  }

  bool shows(const std::string& text) const { return out_.find(text) != std::string::npos; }
  bool told(const std::string& text) const { return told_.find(text) != std::string::npos; }

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

  /// One bit of the byte in the middle, as a disk does it: the file's time stays.
  static void flip(const std::string& path) {
    const auto time = std::filesystem::last_write_time(path);
    const auto at = static_cast<std::streamoff>(std::filesystem::file_size(path) / 2);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at).put(byte);
    ASSERT_TRUE(file.good()) << path;
    file.close();
    std::filesystem::last_write_time(path, time);
  }

  /// The content of every file below a folder.
  static std::map<std::string, std::string> snapshot(const std::string& folder) {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) found[entry.path()] = read_all(entry.path());
    return found;
  }

  /// What it prints and tells is in out_ and told_ then.
  int run(const std::function<int(std::ostream&, const Log&)>& command) {
    told_.clear();
    std::ostringstream out;
    std::mutex mutex;
    const Log log([&](Severity, const std::string& text) {
      const std::scoped_lock lock(mutex);
      told_ += text + "\n";
    });
    const int code = command(out, log);
    out_ = out.str();
    return code;
  }

  PrefixCluster cluster_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = std::make_unique<HastyClock>();
  ProcessFacts process_;
  std::string out_;
  std::string told_;
  nlohmann::json json_;
};

}  // namespace cairn
