#include "files/writer_of.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "files/idle_child.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

void put(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// On a disk and in memory.
class WriterOf : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Files> files_ = make_posix_files();
  TemporaryFolder folder_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Store, WriterOf, ::testing::Values("", "/dev/shm"),
                         [](const auto& store) { return *store.param ? "Memory" : "Disk"; });

TEST_P(WriterOf, AFileIsOpenForWritingUntilItsLastWriterHasClosedIt) {
  const std::string path = folder_ / "f";
  std::FILE* stream = std::fopen(path.c_str(), "w");
  std::fputs("only in the buffer", stream);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::this_process);
  const int inherited = ::dup(::fileno(stream));
  std::fclose(stream);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::this_process);
  ::close(inherited);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::none);
  const auto reader = files_->open(path);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::none);
  EXPECT_EQ(files_->find_writer(folder_ / "none").error().code, Code::not_found);
}

TEST_P(WriterOf, AFileIsOpenForWritingWhileItIsMappedForWriting) {
  const std::string path = folder_ / "f";
  put(path, "0123456789");
  const int writer = ::open(path.c_str(), O_RDWR);
  void* mapping = ::mmap(nullptr, 10, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  ::close(writer);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::this_process);
  ::munmap(mapping, 10);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::none);
}

TEST_P(WriterOf, AChildThatInheritedTheOpenFileIsAnotherProcess) {
  const std::string path = folder_ / "f";
  const int writer = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  IdleChild child;
  EXPECT_EQ(files_->find_writer(path).value(), Writer::this_process) << "both have it open";
  ::close(writer);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::another_process);
  const int reader = ::open(path.c_str(), O_RDONLY);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::another_process) << "this one only reads";
  ::close(reader);
  put(folder_ / "g", "x");
  const int other_file = ::open((folder_ / "g").c_str(), O_WRONLY);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::another_process);
  ::close(other_file);
  child.end();
  EXPECT_EQ(files_->find_writer(path).value(), Writer::none);
}

/// A mapping for reading, and a private one, whose pages are copied before a write.
TEST_P(WriterOf, AReadOnlyOrPrivateMappingIsNoWriter) {
  const std::string path = folder_ / "f";
  put(path, "0123456789");
  const int writer = ::open(path.c_str(), O_RDWR);
  IdleChild child;
  ::close(writer);
  const int reader = ::open(path.c_str(), O_RDONLY);
  const std::vector<std::pair<int, int>> kinds = {{PROT_READ, MAP_SHARED},
                                                  {PROT_READ | PROT_WRITE, MAP_PRIVATE}};
  for (const auto& [rights, kind] : kinds) {
    void* mapping = ::mmap(nullptr, 10, rights, kind, reader, 0);
    ASSERT_NE(mapping, MAP_FAILED);
    EXPECT_EQ(files_->find_writer(path).value(), Writer::another_process);
    ::munmap(mapping, 10);
  }
  ::close(reader);
}

TEST_P(WriterOf, AMappingForWritingIsThisProcessThoughAnotherHasTheFileToo) {
  const std::string path = folder_ / "a name\nof two lines";
  put(path, "0123456789");
  const int writer = ::open(path.c_str(), O_RDWR);
  IdleChild child;
  void* mapping = ::mmap(nullptr, 10, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  ::close(writer);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::this_process);
  ::munmap(mapping, 10);
  EXPECT_EQ(files_->find_writer(path).value(), Writer::another_process);
}

/// A child that another thread starts meanwhile would keep the open file, and with it the lease.
TEST_P(WriterOf, NoLeaseIsLeftOnTheOpenFile) {
  const std::string path = folder_ / "f";
  put(path, "x");
  const auto reader = open_regular(path, O_RDONLY, "open");
  ASSERT_TRUE(reader) << reader.error().text;
  EXPECT_EQ(writer_of(*reader, path).value(), Writer::none);
  EXPECT_EQ(::fcntl(reader->descriptor.number(), F_GETLEASE), F_UNLCK);
}

/// The lease is released: otherwise the next process that opens the file would wait.
TEST_P(WriterOf, FindingWritersDoesNotBlockLaterWriters) {
  const std::string path = folder_ / "f";
  put(path, "x");
  EXPECT_EQ(files_->find_writer(path).value(), Writer::none);
  const int writer = ::open(path.c_str(), O_WRONLY | O_NONBLOCK);
  EXPECT_GE(writer, 0) << std::strerror(errno);
  ::close(writer);
}

volatile std::sig_atomic_t signals_got = 0;

/// When another process opens the file, the kernel signals the process that holds a lease: by
/// SIGIO, which ends it, unless another signal is chosen.
TEST_P(WriterOf, FindingWritersSurvivesAnotherProcessOpeningTheFile) {
  const std::string path = folder_ / "f";
  put(path, "x");
  const pid_t writer = ::fork();
  if (writer == 0)
    while (true) ::close(::open(path.c_str(), O_WRONLY));
  const pid_t asker = ::fork();
  if (asker == 0) {
    ::signal(SIGURG, [](int) { signals_got = signals_got + 1; });
    for (int i = 0; i < 3'000'000 && signals_got < 20; ++i)
      if (!files_->find_writer(path)) ::_exit(1);
    ::_exit(signals_got < 20 ? 2 : 0);
  }
  int status = 0;
  ::waitpid(asker, &status, 0);
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  EXPECT_FALSE(WIFSIGNALED(status)) << ::strsignal(WTERMSIG(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "2: no process has opened the file while the lease was held";
}

}  // namespace
}  // namespace cairn
