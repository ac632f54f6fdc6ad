// The table of the sizes of writes.
#include "crfs/write_profile.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cairn {
namespace {

std::vector<int> writes_by_class(const WriteProfile& profile) {
  std::vector<int> writes;
  const auto json = nlohmann::json::parse(profile.json());
  for (const auto& one : json["classes"]) writes.push_back(one["writes"]);
  return writes;
}

TEST(WriteProfile, ASizeIsInTheClassThatBeginsWithIt) {
  WriteProfile profile;
  for (const std::uint64_t bytes : {0, 63, 64, 255, 256, 1023, 1024, 4095, 4096, 16383, 16384})
    profile.add(bytes, 1);
  for (const std::uint64_t bytes : {65535, 65536, 262143, 262144, 1048576, 1048577})
    profile.add(bytes, 1);
  EXPECT_EQ(writes_by_class(profile), std::vector<int>({2, 2, 2, 2, 2, 2, 2, 2, 1}));
}

TEST(WriteProfile, AContinuedWriteCountsOnce) {
  WriteProfile profile;
  const std::uint64_t piece = 1 << 20;
  profile.add(piece, 1'000'000'000);
  profile.extend({piece, 1'000'000'000}, piece, 500'000'000);
  profile.extend({2 * piece, 1'500'000'000}, 100, 500'000'000);
  EXPECT_EQ(writes_by_class(profile), std::vector<int>({0, 0, 0, 0, 0, 0, 0, 0, 1}));
  const auto json = nlohmann::json::parse(profile.json());
  EXPECT_EQ(json["bytes"], 2 * piece + 100);
  EXPECT_DOUBLE_EQ(json["seconds"], 2.0);
  EXPECT_TRUE(json["classes"][8]["to_bytes"].is_null());
}

TEST(WriteProfile, SharesAddUpAndAnEmptyProfileHasNone) {
  WriteProfile profile;
  EXPECT_NE(profile.text().find("0 writes of 0"), std::string::npos);
  profile.add(10, 3'000'000);
  profile.add(30, 1'000'000);
  profile.add(5000, 4'000'000);
  const std::string text = profile.text();
  EXPECT_NE(text.find("below 64 B                 2       66.67        0.79       50.00"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("4 - 16 KiB                 1       33.33       99.21       50.00"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace cairn
