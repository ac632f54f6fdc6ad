// Which processes may write steps whose names repeat.
#include "wrapped/sole_writer.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cairn {
namespace {

/// The number of a process that has ended.
pid_t ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return child;
}

struct Written {
  const char* name;
  pid_t process;
  std::int64_t step;
};

bool is_mixed(std::initializer_list<Written> files) {
  SoleWriter writer;
  for (const Written& file : files) writer.note(file.name, file.process, file.step);
  return writer.is_mixed();
}

const pid_t me = ::getpid();
const pid_t other = ::getppid();

TEST(SoleWriter, OneProcessWritesAllStepsAsItLikes) {
  EXPECT_FALSE(is_mixed({{"a", me, 1}, {"b", me, 1}, {"a", me, 2}, {"c", me, 2}, {"c", me, 3}}));
  EXPECT_FALSE(is_mixed({{"a", 0, 1}, {"b", 0, 1}, {"a", 0, 2}}));
  EXPECT_FALSE(is_mixed({{"a", me, 1}, {"a", me, 2}, {"a", 0, 2}}));
}

TEST(SoleWriter, SeveralProcessesMayWriteOneStepButNotTheNext) {
  EXPECT_FALSE(is_mixed({{"a", me, 1}, {"b", other, 1}, {"c", me, 1}}));
  EXPECT_TRUE(is_mixed({{"a", me, 1}, {"b", other, 1}, {"a", me, 2}}));
  EXPECT_TRUE(is_mixed({{"a", me, 1}, {"b", ended_process(), 1}, {"a", me, 2}}));
}

TEST(SoleWriter, AProcessThatComesWhenStepsHaveBegunMixesThem) {
  EXPECT_TRUE(is_mixed({{"a", me, 1}, {"a", me, 2}, {"b", other, 2}}));
  EXPECT_TRUE(is_mixed({{"a", ended_process(), 1}, {"a", me, 2}, {"b", other, 2}}));
}

TEST(SoleWriter, AProcessThatBeginsAStepBesideAnotherMixesThem) {
  EXPECT_TRUE(is_mixed({{"a", me, 1}, {"a", other, 2}}));
  EXPECT_TRUE(is_mixed({{"a.1", me, 1}, {"b.1", me, 2}, {"a.2", other, 3}}));
}

TEST(SoleWriter, AProcessTakesOverTheNamesOfOneThatHasEnded) {
  EXPECT_FALSE(is_mixed({{"a", ended_process(), 1}, {"a", me, 2}, {"b", me, 2}, {"a", me, 3}}));
  EXPECT_TRUE(is_mixed({{"a.1", ended_process(), 1}, {"a.2", me, 2}}));
}

TEST(SoleWriter, AnUnknownProcessIsAnotherOneEachTime) {
  EXPECT_TRUE(is_mixed({{"a", -1, 1}, {"a", -2, 2}}));
}

}  // namespace
}  // namespace cairn
