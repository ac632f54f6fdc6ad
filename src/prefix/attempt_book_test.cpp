#include "prefix/attempt_book.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

/// With SCR_PREFIX_SIZE=1.
std::string text_for(std::uint32_t flags) {
  Settings settings;
  settings.prefix_size = 1;
  DatasetRecord record;
  record.info.flags = flags;
  return text_of_lifting(record, true, settings);
}

TEST(AttemptBook, ADatasetInQuarantineStaysThereUnlessTheWindowDeletesIt) {
  constexpr std::uint32_t checkpoint = 1;
  constexpr std::uint32_t output = 2;
  EXPECT_NE(text_for(checkpoint).find("until SCR_PREFIX_SIZE"), std::string::npos);
  for (const std::uint32_t stays : {checkpoint | output, checkpoint | flag_in_place | flag_found})
    EXPECT_EQ(text_for(stays).find("SCR_PREFIX_SIZE"), std::string::npos) << stays;
}

}  // namespace
}  // namespace cairn
