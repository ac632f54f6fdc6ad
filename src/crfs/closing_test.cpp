// Data of a file without a name, when its last handle is closed.
#include "crfs/closing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

class ClosingTest : public ::testing::Test {
 protected:
  explicit ClosingTest(nlink_t names = 1) {
    auto backing = std::make_unique<BackingDescriptor>();
    backing->add(Descriptor(::open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)));
    struct stat status = {};
    EXPECT_EQ(::stat(name_.c_str(), &status), 0);
    status.st_nlink = names;
    Descriptor path(::open(name_.c_str(), O_PATH | O_CLOEXEC));
    inode_ = &inodes_.look_up(std::move(path), status);
    inode_->file = std::make_shared<SharedFile>(aggregator_, std::move(backing), status);
    EXPECT_EQ(inode_->file->append(Blob(100)), 100);
    EXPECT_EQ(::unlink(name_.c_str()), 0);
  }

  TemporaryFolder directory_;
  const std::string name_ = directory_ / "file";
  Aggregator aggregator_{AggregateOptions{}};
  Inodes inodes_{Descriptor(::open(directory_.path().c_str(), O_PATH | O_CLOEXEC))};
  UnreportedErrors unreported_;
  Closing closing_{inodes_, unreported_, 0};
  Inode* inode_ = nullptr;
};

TEST_F(ClosingTest, IsNotWritten) {
  closing_.finish(*inode_);
  EXPECT_EQ(inode_->file, nullptr);
  EXPECT_EQ(aggregator_.statistics().bytes_out, 0u);
}

/// A backing file system that does not count names: the count is always 0.
class UncountedTest : public ClosingTest {
 protected:
  UncountedTest() : ClosingTest(0) {}
};

TEST_F(UncountedTest, IsWrittenWhereNamesAreNotCounted) {
  closing_.finish(*inode_);
  EXPECT_EQ(inode_->file, nullptr);
  EXPECT_EQ(aggregator_.statistics().bytes_out, 100u);
}

TEST_F(ClosingTest, IsKeptIfAHandleWasOpenedAgain) {
  inode_->handles.push_back(std::make_unique<Handle>(*inode_->file, true));
  closing_.finish(*inode_);
  EXPECT_EQ(inode_->handles[0]->file().data().size(), 100u);
}

}  // namespace
}  // namespace cairn
