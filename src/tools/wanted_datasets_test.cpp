#include "tools/wanted_datasets.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

DatasetRecord record_of(std::int64_t time, std::uint64_t number, const std::string& name) {
  DatasetRecord record;
  record.info = {{1'700'000'000'000'000 + time, 7}, number, number, 3, 4096, name};
  return record;
}

TEST(WantedDatasetsTest, ANumberOfTwoDatasetsNamesNeither) {
  const Listing listing = {record_of(3, 2, "of another run"), record_of(2, 2, "second"),
                           record_of(1, 1, "first")};
  const auto refused = find_dataset(listing, "2");
  ASSERT_FALSE(refused) << (*refused)->info.name;
  EXPECT_EQ(refused.error().code, Code::bad_argument);
  EXPECT_EQ(refused.error().text, "2 datasets are called 2: name one by its UUID (" +
                                      text_of(listing[0].info.uuid) + ", " +
                                      text_of(listing[1].info.uuid) + ")");
  EXPECT_EQ(*find_dataset(listing, text_of(listing[1].info.uuid)), &listing[1]);
  EXPECT_EQ(*find_dataset(listing, "second"), &listing[1]);
  EXPECT_EQ(*find_dataset(listing, "1"), &listing[2]);
  EXPECT_EQ(*find_dataset(listing, "3"), nullptr);
}

TEST(WantedDatasetsTest, ANameGoesBeforeANumberOfTwo) {
  const Listing listing = {record_of(3, 2, "third"), record_of(2, 2, "second"),
                           record_of(1, 1, "2")};
  EXPECT_EQ(*find_dataset(listing, "2"), &listing[2]);
}

}  // namespace
}  // namespace cairn
