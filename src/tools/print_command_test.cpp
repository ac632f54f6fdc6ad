#include "tools/print_command.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "rbio/done_marker.hpp"
#include "records/dataset_record.hpp"
#include "records/wire.hpp"
#include "support/command_output.hpp"

namespace cairn {
namespace {

class PrintCommandTest : public ::testing::Test, protected CommandOutput {
 protected:
  int run(const std::string& file, bool json = false) {
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_print_command({file, json}, *files_, out, log);
    });
  }
  int run(const Blob& content, bool json = false) {
    std::ofstream(folder_ / "file", std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    return run(folder_ / "file", json);
  }
  nlohmann::json shown() const { return printed_json(); }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
};

Blob blob(const std::string& text) {
  const Bytes bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string golden_record(const std::string& name) { return CAIRN_GOLDEN "/records/" + name; }

TEST_F(PrintCommandTest, ADoneMarkerOfRbioIsShown) {
  EXPECT_EQ(run(encode(rbio::DoneMarker{7})), 0);
  EXPECT_TRUE(prints("rbIO done record, version 1"));
  EXPECT_TRUE(prints("writers: 7"));
}

TEST_F(PrintCommandTest, EveryReleasedRecordIsShown) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> all = {
      {"rank-record-v1.bin",
       {"rank record, version 1", "rank: 2", "scheme: XOR", "name: ckpt.6/rank_2.dat",
        "data_crcs: 11111111 22222222 (2)"}},
      {"rank-record-in-place-v1.bin",
       {"rank record, version 1", "name: all", "begin: 512", "length: 512", "in_place: "}},
      {"rank-record-written-v1.bin",
       {"rank record, version 1", "state: written", "boot: 0f2e5d1c-boot"}},
      {"dataset-record-v1.bin",
       {"dataset record, version 1", "name: ckpt.6", "state: quarantined"}},
      {"listing-v1.bin", {"listing record, version 1", "name: ckpt.6", "name: ckpt.5"}},
      {"owner-record-v1.bin", {"owner record, version 1", "job: 4711", "host: n0"}},
      {"current-record-v1.bin", {"current record, version 1", "name: ckpt.6"}},
      {"last-run-record-v1.bin", {"last run record, version 1", "job: 4711", "host: n1.x", "/pfs"}},
      {"halt-record-v1.bin", {"halt record, version 1", "checkpoints_left: 3"}}};
  for (const auto& [name, words] : all) {
    EXPECT_EQ(run(golden_record(name)), 0) << logged();
    for (const std::string& word : words) EXPECT_TRUE(prints(word)) << word << " in\n" << printed();
    EXPECT_EQ(run(golden_record(name), true), 0);
    EXPECT_EQ(shown()["records"].size(), 1U);
    EXPECT_EQ(shown()["lost_bytes"], 0);
    EXPECT_TRUE(shown()["records"][0].contains("content"));
  }
}

TEST_F(PrintCommandTest, OfADamagedFileTheRestIsShown) {
  const Blob good = seal(RecordType::owner, 1, {});
  std::ifstream in(golden_record("halt-record-v1.bin"), std::ios::binary);
  const std::string content = "junk!" + std::string{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(run(blob(content), true), 1);
  EXPECT_EQ(shown()["records"][0]["type"], "halt");
  EXPECT_EQ(shown()["lost_bytes"], 5);
  EXPECT_TRUE(logs("5 of")) << logged();
  EXPECT_EQ(run(good, true), 1);
  EXPECT_NE(shown()["records"][0]["error"], "");
}

TEST_F(PrintCommandTest, WhatIsNewerOrUnknownOrNoRecordIsReportedAsThat) {
  EXPECT_EQ(run(seal(RecordType::dataset, dataset_record_version + 1, {})), 1);
  EXPECT_TRUE(prints("newer Cairn")) << printed();
  EXPECT_EQ(run(seal(static_cast<RecordType>(77), 1, {})), 1);
  EXPECT_TRUE(prints("type 77 record") && prints("does not know")) << printed();
  EXPECT_EQ(run(Blob{}), 1);
  EXPECT_EQ(run(Blob(100, std::byte{7})), 1);
  EXPECT_EQ(run(folder_ / "gone"), 1);
}

constexpr const char* entry =
    R"({"time":"2026-11-20T17:50:28","time_us":1,"host":"n0","event":"NODE_FAIL","note":"n1: off"})";

TEST_F(PrintCommandTest, TheLogForProgramsIsShownALineForEachEntry) {
  // The last line is being written.
  EXPECT_EQ(run(blob(std::string(entry) + "\n" + entry + "\n{\"ti")), 0) << logged();
  EXPECT_TRUE(prints("2026-11-20T17:50:28  n0  NODE_FAIL  note=n1: off\n")) << printed();
  EXPECT_EQ(run(blob(std::string(entry) + "\njunk\n"), true), 1);
  EXPECT_EQ(shown()["entries"].size(), 1U);
  EXPECT_EQ(shown()["entries"][0]["event"], "NODE_FAIL");
  EXPECT_EQ(shown()["lost_bytes"], 5);
}

TEST_F(PrintCommandTest, OfADirectoryTheFilesThatCanBePrintedAreNamed) {
  EXPECT_EQ(run(folder_.path()), 1);
  std::filesystem::create_directory(folder_ / ".cairn");
  std::filesystem::copy(golden_record("halt-record-v1.bin"), folder_ / ".cairn/halt");
  std::ofstream(folder_ / ".cairn/log.json") << entry << "\n";
  std::ofstream(folder_ / ".cairn/run.json") << "{}\n";
  EXPECT_EQ(run(folder_.path()), 1);
  EXPECT_TRUE(logs(folder_ / ".cairn/halt")) << logged();
  EXPECT_TRUE(logs(folder_ / ".cairn/log.json")) << logged();
  EXPECT_FALSE(logs("run.json")) << logged();
}

TEST_F(PrintCommandTest, ANumberIsShownWithoutTheNoiseOfItsBinaryForm) {
  const std::string line =
      R"({"time_us":1,"host":"h","job":"7","event":"X","seconds":0.0013759999999999998})";
  ASSERT_EQ(run(blob(line + "\n")), 0) << logged();
  EXPECT_TRUE(prints("0.001376")) << printed();
  EXPECT_FALSE(prints("0.00137599")) << printed();
}

}  // namespace
}  // namespace cairn
