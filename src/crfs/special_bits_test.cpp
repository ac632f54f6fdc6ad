// Writes that clear bits, while other threads change the mode.
#include "crfs/special_bits.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

TEST(SpecialBits, AreClearedDuringOtherChangesOfTheMode) {
  const TemporaryFolder directory;
  const std::string name = directory / "file";
  const Descriptor made(::open(name.c_str(), O_WRONLY | O_CREAT, 0644));
  struct stat status = {};
  ASSERT_EQ(::fstat(made.number(), &status), 0);
  Inode inode(Descriptor(::open(name.c_str(), O_PATH | O_CLOEXEC)), status);
  std::atomic<bool> over = false;
  std::thread writer([&] {
    while (!over) drop_special_bits(inode);
  });
  int lost = 0;
  for (int i = 0; i < 500; ++i) {
    const mode_t mode = i % 2 == 0 ? 0600 : 0777;
    lost += set_mode(inode, mode | S_ISUID) != 0;
    while (inode.may_have_special_bits) std::this_thread::yield();  // the other one has begun
    lost += ::fstat(made.number(), &status) != 0 || (status.st_mode & 0777) != mode;
  }
  over = true;
  writer.join();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(set_mode(inode, 0755 | S_ISUID), 0);
  EXPECT_TRUE(drop_special_bits(inode));
  EXPECT_EQ(::fstat(made.number(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755u);
}

}  // namespace
}  // namespace cairn
