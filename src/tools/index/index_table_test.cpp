#include "tools/index/index_table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace cairn {
namespace {

Listing long_listing(std::size_t count) {
  Listing listing;
  for (std::size_t i = count; i > 0; --i) {
    DatasetRecord record;
    const auto number = static_cast<std::uint64_t>(i);
    record.info = {
        {1'700'000'000'000'000 + static_cast<std::int64_t>(i), 7}, number, number, 3, 4096,
        fmt::format("run 7/timestep.{:08}/checkpoint", i)};
    record.bytes = number << 33U;
    record.files = 4096 * 2;
    record.flushed_us = record.info.uuid.time_us;
    record.settled = true;
    record.quarantined = i % 3 == 0;
    record.failed_us = i % 3 == 1 ? 5 : 0;
    if (record.failed_us != 0)
      record.failure = "/scratch/heat/" + record.info.name + "/rank 77.dat does not match";
    listing.push_back(std::move(record));
  }
  return listing;
}

TEST(IndexTable, IsNeverWiderThanATerminalAndShowsTheEndOfLongNames) {
  std::istringstream lines(dataset_table(long_listing(9999), nullptr));
  std::string line;
  while (std::getline(lines, line)) ASSERT_LE(line.size(), 80U) << line;
  const std::string table = dataset_table(long_listing(3), nullptr);
  EXPECT_NE(table.find("...000003/checkpoint\n"), std::string::npos) << table;
  EXPECT_NE(table.find("    failed: /scratch/heat/run 7/timestep.00000001"), std::string::npos);
  EXPECT_EQ(dataset_table(long_listing(3), nullptr, 999).find("..."), std::string::npos);
}

TEST(IndexTable, WhatATerminalWouldObeyIsNotPrinted) {
  Listing listing = long_listing(1);
  listing[0].info.name = "a\x1b[2Jb\nc";
  listing[0].failure = "x\ry";
  const std::string table = dataset_table(listing, nullptr);
  EXPECT_NE(table.find("a?[2Jb?c"), std::string::npos) << table;
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_EQ(dataset_text(listing[0], false, false).find('\x1b'), std::string::npos);
}

TEST(IndexTable, ColoursStatesWithoutMovingColumns) {
  Listing listing = long_listing(3);
  listing[0].failed_us = 1;
  listing[1].quarantined = true;
  const std::string plain = dataset_table(listing, nullptr);
  std::string table = dataset_table(listing, nullptr, 80, true);
  EXPECT_NE(table.find("\033[31mfailed\033[0m"), std::string::npos) << table;
  EXPECT_NE(table.find("\033[33mquarantined\033[0m"), std::string::npos) << table;
  for (const std::string code : {"\033[31m", "\033[33m", "\033[0m"})
    for (auto at = table.find(code); at != std::string::npos; at = table.find(code))
      table.erase(at, code.size());
  EXPECT_EQ(table, plain);
}

}  // namespace
}  // namespace cairn
