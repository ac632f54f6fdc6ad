#include "files/process_identity.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace cairn {
namespace {

TEST(ProcessIdentity, AProcessLivesUntilItIsKilled) {
  EXPECT_EQ(life_of(this_process()), Life::lives);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ProcessIdentity identity = this_process();
  identity.process = static_cast<std::uint64_t>(child);
  identity.start_ticks = 0;
  EXPECT_EQ(life_of(identity), Life::lives);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(life_of(identity), Life::gone) << "its parent has not asked for its exit code yet";
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(life_of(identity), Life::gone);
}

TEST(ProcessIdentity, AReusedProcessIdIsAnotherProcess) {
  ProcessIdentity older = this_process();
  ASSERT_NE(older.start_ticks, 0U);
  older.start_ticks -= 1;
  EXPECT_EQ(life_of(older), Life::gone);
}

TEST(ProcessIdentity, ProcessesOfAnotherMachineAreUnknown) {
  ProcessIdentity elsewhere = this_process();
  elsewhere.kernel += "x";
  EXPECT_EQ(life_of(elsewhere), Life::unknown);
  elsewhere.kernel.clear();
  EXPECT_EQ(life_of(elsewhere), Life::unknown);
  EXPECT_EQ(life_of(ProcessIdentity{}), Life::unknown);
}

}  // namespace
}  // namespace cairn
