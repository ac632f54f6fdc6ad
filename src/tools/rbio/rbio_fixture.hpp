// A series of a program, and the command cairn rbio that is run on it.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rbio/step_check.hpp"
#include "rbio/test_series.hpp"
#include "support/command_output.hpp"
#include "support/file_contents.hpp"
#include "tools/rbio/rbio_command.hpp"

namespace cairn {
namespace fs = std::filesystem;

/// Steps 3, 9 and 5 of four ranks in two parts.
class RbioCommandTest : public testing::Test, protected CommandOutput {
 protected:
  using Action = RbioCommand::Action;
  using Json = nlohmann::json;

  RbioCommandTest() {
    shape_.options.group_size = 1;
    shape_.options.files = 2;
    rbio::write_steps(*files_, series(), shape_, {3, 9, 5});
  }

  std::string series() const { return folder_ / "series"; }
  std::string part(int step, int part) const {
    return fmt::format("{}/step.{}/part.{}.rbio", series(), step, part);
  }
  std::string output() const { return folder_ / "output"; }

  int run(const RbioCommand& command, Files& files) {
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_rbio_command(command, files, out, log);
    });
  }
  int run(const RbioCommand& command) { return run(command, *files_); }
  int run(Action action, const std::string& path, bool json = false) {
    RbioCommand command;
    command.action = action;
    command.path = path;
    command.json = json;
    return run(command);
  }
  int list(bool json = false) { return run(Action::list, series(), json); }
  int verify(bool json = false) { return run(Action::verify, series(), json); }
  /// `field` as raw bytes to output().
  int extract(const std::string& field, std::optional<std::uint64_t> step = {}) {
    RbioCommand command = extraction(field);
    command.step = step;
    return run(command);
  }
  RbioCommand extraction(const std::string& field) const {
    RbioCommand command;
    command.action = Action::extract;
    command.path = series();
    command.field = field;
    command.output = output();
    command.raw = true;
    return command;
  }

  Json json() const { return printed_json(); }

  rbio::PartIndex index_of(const std::string& path) {
    const auto index = rbio::read_part_index(*files_, path);
    EXPECT_TRUE(index) << index.error().text;
    return *index;
  }
  static std::string written(std::uint64_t step, std::size_t field) {
    std::string bytes(rbio::total_of(field) * rbio::test_shapes()[field].element_bytes(), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(rbio::value_at(step, field, i));
    return bytes;
  }

  /// verify finds exactly this range of bytes of this file, as text and as JSON.
  void expect_damage(const std::string& path, std::uint64_t first, std::uint64_t last) {
    EXPECT_EQ(verify(true), 1);
    std::vector<Json> damage;
    const Json found = json();
    for (const Json& step : found["steps"])
      for (const Json& one : step["damage"]) damage.push_back(one);
    ASSERT_EQ(damage.size(), 1U) << printed();
    EXPECT_EQ(damage[0]["file"], path);
    EXPECT_EQ(damage[0]["first_byte"], first);
    EXPECT_EQ(damage[0]["last_byte"], last);
    EXPECT_EQ(verify(), 1);
    EXPECT_TRUE(prints(damage[0]["reason"])) << printed();
    EXPECT_TRUE(prints("step 9: DAMAGED") && prints("step 3: whole") && prints("step 5: whole"));
  }
  /// A step whose headers, tables or lengths are damaged: list, verify and show say so.
  void expect_not_whole(const std::string& reason) {
    for (const Action action : {Action::list, Action::verify, Action::show}) {
      const std::string path = action == Action::show ? series() + "/step.9" : series();
      EXPECT_EQ(run(action, path), 1) << printed();
      EXPECT_TRUE(prints(reason)) << printed();
      EXPECT_EQ(run(action, path, true), 1);
      EXPECT_TRUE(prints(reason)) << printed();
    }
    EXPECT_EQ(extract("density", 9), 1);
    EXPECT_TRUE(logs(reason) && logs("whole are: steps 3, 5")) << logged();
    EXPECT_FALSE(fs::exists(output()));
  }

  rbio::Shape shape_;
  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
};

}  // namespace cairn
