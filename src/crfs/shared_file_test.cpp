// An open file: its size and times while data are not written yet, and its descriptors.
#include "crfs/shared_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

Bytes bytes_of_text(const std::string& text) { return std::as_bytes(std::span(text)); }

class SharedFileTest : public ::testing::Test {
 protected:
  SharedFileTest() {
    auto backing = std::make_unique<BackingDescriptor>();
    backing->add(Descriptor(::open(name_.c_str(), O_RDWR | O_CREAT, 0644)));
    file_ = std::make_unique<SharedFile>(aggregator_, std::move(backing), this->backing());
  }
  void write(const std::string& text) {
    ASSERT_EQ(file_->write(0, bytes_of_text(text)), static_cast<ssize_t>(text.size()));
  }
  struct stat backing() const {
    struct stat status = {};
    EXPECT_EQ(::stat(name_.c_str(), &status), 0);
    return status;
  }
  struct stat shown() {
    struct stat status = backing();
    file_->show(status);
    return status;
  }

  TemporaryFolder directory_;
  const std::string name_ = directory_ / "file";
  Aggregator aggregator_{AggregateOptions{}};
  std::unique_ptr<SharedFile> file_;
};

TEST_F(SharedFileTest, ShowsWhatIsNotWrittenYet) {
  write("some bytes");
  EXPECT_FALSE(file_->settled());
  EXPECT_EQ(backing().st_size, 0);
  EXPECT_EQ(shown().st_size, 10);
  EXPECT_GT(shown().st_blocks, 0);
  file_->settle();
  EXPECT_TRUE(file_->settled());
  EXPECT_EQ(backing().st_size, 10);
}

TEST_F(SharedFileTest, ATimeThatWasShownIsKept) {
  write("some bytes");
  const timespec shown_time = shown().st_mtim;
  ::usleep(20'000);
  file_->settle();
  EXPECT_EQ(backing().st_mtim.tv_sec, shown_time.tv_sec);
  EXPECT_EQ(backing().st_mtim.tv_nsec, shown_time.tv_nsec);
}

TEST_F(SharedFileTest, ATimeThatIsSetIsNotOverwritten) {
  write("some bytes");
  (void)shown();
  file_->forget_times();
  const timespec times[2] = {{5, 0}, {5, 0}};
  file_->settle();
  ASSERT_EQ(::utimensat(AT_FDCWD, name_.c_str(), times, 0), 0);
  Handle handle(*file_, true);
  EXPECT_EQ(handle.flush(), 0);
  EXPECT_EQ(shown().st_mtim.tv_sec, 5);
}

TEST_F(SharedFileTest, TheCloseOfAFileWithoutANameDoesNotWriteIt) {
  Handle handle(*file_, true);
  write("some bytes");
  ASSERT_EQ(::unlink(name_.c_str()), 0);
  EXPECT_TRUE(file_->is_nameless());
  EXPECT_EQ(handle.flush(), 0);
  EXPECT_FALSE(file_->settled());
  EXPECT_EQ(handle.sync(false), 0);  // a sync writes the data all the same
  EXPECT_TRUE(file_->settled());
}

TEST_F(SharedFileTest, ACloseNeedsNoDescriptorMore) {
  Handle handle(*file_, true);
  write("some bytes");
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const int error = handle.flush();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(backing().st_size, 10);
}

TEST(BackingDescriptor, WritesWhenAWriterComesToAReader) {
  const TemporaryFolder directory;
  const std::string name = directory / "file";
  const Descriptor made(::open(name.c_str(), O_WRONLY | O_CREAT, 0644));
  BackingDescriptor backing;
  backing.add(Descriptor(::open(name.c_str(), O_RDONLY)));
  EXPECT_FALSE(backing.writes());
  EXPECT_EQ(backing.write_at(0, bytes_of_text("x")), -EBADF);
  const Descriptor path(::open(name.c_str(), O_PATH));
  backing.add(open_backing(path, true));
  const std::string pieces[] = {"one", "two"};
  const Bytes both[] = {bytes_of_text(pieces[0]), bytes_of_text(pieces[1])};
  EXPECT_EQ(backing.write_pieces_at(2, both, 2), 6);
  EXPECT_EQ(backing.size(), 8);
  EXPECT_EQ(backing.resize(5), 0);
  std::string read(10, '-');
  EXPECT_EQ(backing.read_at(0, std::as_writable_bytes(std::span(read))), 5);
  EXPECT_EQ(read, std::string("\0\0one-----", 10));
  EXPECT_EQ(backing.flush(), 0);
}

TEST(BackingDescriptor, NeverAppendsWhereItIsToWrite) {
  const TemporaryFolder directory;
  const std::string name = directory / "file";
  const Descriptor made(::open(name.c_str(), O_WRONLY | O_CREAT, 0644));
  const Descriptor path(::open(name.c_str(), O_PATH));
  EXPECT_EQ(::fcntl(open_backing(path, true).number(), F_GETFL) & (O_APPEND | O_ACCMODE), O_RDWR);
}

}  // namespace
}  // namespace cairn
