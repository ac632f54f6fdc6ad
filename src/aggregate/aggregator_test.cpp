#include "aggregate/aggregator.hpp"

#include <gtest/gtest.h>

#include "aggregate/lu_c_64.hpp"
#include "aggregate/scripted_file.hpp"

namespace cairn {
namespace {

TEST(Aggregate, LuC64) {
  Aggregator aggregator({});
  std::vector<std::unique_ptr<AggregatedFile>> files;
  for (int p = 0; p < 8; ++p) {
    files.push_back(std::make_unique<AggregatedFile>(
        aggregator, std::make_unique<ScriptedFile>(std::make_shared<Storage>())));
    for (const auto bytes : lu_c_64::writes(p)) ASSERT_EQ(0, files.back()->append(Blob(bytes)));
    auto told = files.back()->opened();
    ASSERT_EQ(0, files.back()->drain(told));
    ASSERT_EQ(files.back()->size(), lu_c_64::bytes_per_process);
  }
  const auto s = aggregator.statistics();
  EXPECT_EQ(s.writes_in, 7800u);
  EXPECT_GE(static_cast<double>(s.writes_in) / static_cast<double>(s.writes_out), 43);
  EXPECT_EQ(s.bytes_out, s.bytes_in);
  EXPECT_EQ(s.pool_used_bytes, 0u);
}

}  // namespace
}  // namespace cairn
