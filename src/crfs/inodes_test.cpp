// Which files the kernel is thought to know, and what holds them.
#include "crfs/inodes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

class InodesTest : public ::testing::Test {
 protected:
  Descriptor path_of(const std::string& name) {
    return Descriptor(::open((directory_ / name).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  }
  Inode& look_up(const std::string& name) {
    Descriptor path = path_of(name);
    struct stat status = {};
    EXPECT_EQ(::fstatat(path.number(), "", &status, AT_EMPTY_PATH), 0);
    return inodes_.look_up(std::move(path), status);
  }
  void make(const std::string& name) { std::ofstream(directory_ / name) << name; }

  TemporaryFolder directory_;
  Inodes inodes_{path_of("")};
};

TEST_F(InodesTest, NamesOfOneFileAreOneInode) {
  make("file");
  make("other");
  ASSERT_EQ(::link((directory_ / "file").c_str(), (directory_ / "name").c_str()), 0);
  EXPECT_EQ(&look_up("file"), &look_up("name"));
  EXPECT_NE(&look_up("file"), &look_up("other"));
}

TEST_F(InodesTest, IsThereUntilEachLookupIsForgotten) {
  make("file");
  Inode& inode = look_up("file");
  look_up("file");
  const dev_t device = inode.device;
  const ino_t number = inode.number;
  inodes_.forget(inode, 1);
  ASSERT_EQ(inodes_.find(device, number), &inode);  // a lookup more
  inodes_.hold(inode);
  inodes_.forget(inode, 2);
  ASSERT_EQ(inodes_.find(device, number), &inode);
  inodes_.forget(inode, 2);
  EXPECT_EQ(inodes_.find(device, number), nullptr);
}

TEST_F(InodesTest, TheRootIsNeverForgotten) {
  inodes_.forget(inodes_.root(), 100);
  const auto all = inodes_.hold_all();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], &inodes_.root());
}

TEST_F(InodesTest, AFileThatIsKnownKeepsItsNumber) {
  make("file");
  Inode& inode = look_up("file");
  ::unlink((directory_ / "file").c_str());
  for (int i = 0; i < 100; ++i) make("new" + std::to_string(i));
  for (int i = 0; i < 100; ++i) EXPECT_NE(&look_up("new" + std::to_string(i)), &inode);
}

TEST_F(InodesTest, NumbersOfDevicesAreFarApart) {
  const dev_t root = inodes_.root().device;
  EXPECT_EQ(inodes_.shown_number(inodes_.root()), inodes_.root().number);
  for (dev_t one = root; one < root + 100; ++one)
    for (dev_t other = root; other < one; ++other)
      EXPECT_GT(inodes_.shown_number(one, 2) ^ inodes_.shown_number(other, 2), ino_t{1} << 48)
          << one << " and " << other;
}

TEST_F(InodesTest, AVersionEndsWithAChange) {
  make("file");
  const Descriptor file(::open((directory_ / "file").c_str(), O_RDWR));
  const auto version = [&] {
    struct stat status = {};
    EXPECT_EQ(::fstat(file.number(), &status), 0);
    return version_of(status);
  };
  const Version before = version();
  EXPECT_EQ(before, version());
  ASSERT_EQ(::ftruncate(file.number(), 100), 0);
  EXPECT_FALSE(before == version());
  EXPECT_FALSE(Version{} == version());
}

}  // namespace
}  // namespace cairn
