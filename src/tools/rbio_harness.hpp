// A series of a program, and the command cairn rbio that is run on it.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rbio/step_check.hpp"
#include "rbio/test_series.hpp"
#include "tools/rbio_command.hpp"

namespace cairn {
namespace fs = std::filesystem;

/// Steps 3, 9 and 5 of four ranks in two parts.
class RbioCommandTest : public testing::Test {
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
    logged_.clear();
    out_.str("");
    const Log log([this](Severity, const std::string& text) { logged_ += text + "\n"; });
    return run_rbio_command(command, files, out_, log);
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

  Json json() const { return Json::parse(out_.str()); }
  bool prints(const std::string& text) const { return out_.str().find(text) != std::string::npos; }
  bool logs(const std::string& text) const { return logged_.find(text) != std::string::npos; }

  rbio::PartIndex index_of(const std::string& path) {
    const auto index = rbio::read_part_index(*files_, path);
    EXPECT_TRUE(index) << index.error().text;
    return *index;
  }
  static void flip(const std::string& path, std::uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 0x40);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
    ASSERT_TRUE(file.good());
  }
  static std::string content_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
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
    ASSERT_EQ(damage.size(), 1U) << out_.str();
    EXPECT_EQ(damage[0]["file"], path);
    EXPECT_EQ(damage[0]["first_byte"], first);
    EXPECT_EQ(damage[0]["last_byte"], last);
    EXPECT_EQ(verify(), 1);
    EXPECT_TRUE(prints(damage[0]["reason"])) << out_.str();
    EXPECT_TRUE(prints("step 9: DAMAGED") && prints("step 3: whole") && prints("step 5: whole"));
  }
  /// A step whose headers, tables or lengths are damaged: list, verify and show say so.
  void expect_not_whole(const std::string& reason) {
    for (const Action action : {Action::list, Action::verify, Action::show}) {
      const std::string path = action == Action::show ? series() + "/step.9" : series();
      EXPECT_EQ(run(action, path), 1) << out_.str();
      EXPECT_TRUE(prints(reason)) << out_.str();
      EXPECT_EQ(run(action, path, true), 1);
      EXPECT_NE(out_.str().find(reason), std::string::npos) << out_.str();
    }
    EXPECT_EQ(extract("density", 9), 1);
    EXPECT_TRUE(logs(reason) && logs("whole are: steps 3, 5")) << logged_;
    EXPECT_FALSE(fs::exists(output()));
  }

  rbio::Shape shape_;
  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::ostringstream out_;
  std::string logged_;
};

}  // namespace cairn
