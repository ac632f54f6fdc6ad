// What the words of the command line mean.
#include "crfs/arguments.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace cairn {
namespace {

constexpr std::uint64_t KiB = 1 << 10;
constexpr std::uint64_t MiB = 1 << 20;

/// Parses options that stand before the two directories; they must be valid.
MountOptions mount_of(std::vector<std::string> words, const std::string& called = "crfs") {
  words.insert(words.end(), {"/below", "/above"});
  int exit_code = -1;
  const auto options = parse_arguments(called, words, exit_code);
  EXPECT_TRUE(options.has_value());
  EXPECT_EQ(exit_code, 0);
  return options.value_or(MountOptions{});
}

std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, int> sizes(const MountOptions& options) {
  const AggregateOptions& of = options.aggregate;
  return {of.pool_bytes, of.chunk_bytes, of.write_bytes, of.io_threads};
}

TEST(Arguments, DefaultsAreThoseOfTheManual) {
  const MountOptions options = mount_of({});
  EXPECT_EQ(sizes(options), std::tuple(64 * MiB, MiB, 16 * MiB, 4));
  EXPECT_EQ(options.mode, Mode::automatic);
  EXPECT_FALSE(options.close_async);
  EXPECT_EQ(options.backing, "/below");
  EXPECT_EQ(options.mountpoint, "/above");
}

TEST(Arguments, OtherOptionsOverrideTheValuesOf2011) {
  const MountOptions options = mount_of({"--icpp2011"});
  EXPECT_EQ(sizes(options), std::tuple(16 * MiB, 128 * KiB, 128 * KiB, 4));
  EXPECT_EQ(options.mode, Mode::direct);
  EXPECT_EQ(sizes(mount_of({"--icpp2011", "--pool", "32M", "--threads", "2"})),
            std::tuple(32 * MiB, 128 * KiB, 128 * KiB, 2));
  EXPECT_EQ(sizes(mount_of({"--chunk", "256K", "--icpp2011"})),
            std::tuple(16 * MiB, 256 * KiB, 256 * KiB, 4));
  EXPECT_EQ(mount_of({"--icpp2011", "--mode", "writeback"}).mode, Mode::writeback);
}

TEST(Arguments, AWriteIsAtLeastAChunk) {
  EXPECT_EQ(sizes(mount_of({"--chunk", "32M"})), std::tuple(64 * MiB, 32 * MiB, 32 * MiB, 4));
}

TEST(Arguments, OptionsOfMountsAreThoseOfTheCommandToo) {
  const MountOptions options =
      mount_of({"-o", "pool=128M,ro,nofail,close=async,x-any=1"}, "mount.crfs");
  EXPECT_EQ(sizes(options), std::tuple(128 * MiB, MiB, 16 * MiB, 4));
  EXPECT_TRUE(options.close_async);
  EXPECT_EQ(options.mount_options, std::vector<std::string>{"ro"});
}

}  // namespace
}  // namespace cairn
