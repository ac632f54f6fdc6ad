// `cairn index` in a process of its own that is killed at a change to a file: what is there is
// whole all the same, and the command, given again, finishes.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tools/exit_codes.hpp"
#include "tools/index/index_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Action = IndexCommand::Action;
using Names = std::vector<std::string>;

struct Case {
  std::string word;  ///< of the command
  Action action{};
  std::string name;
  Names listed;  ///< once it is done
  Names dropped;
  std::string current;
};

/// So that gtest prints it by its name.
void PrintTo(const Case& each, std::ostream* out) { *out << each.word; }

class IndexKilled : public IndexCommandTest, public testing::WithParamInterface<Case> {
 protected:
  /// What the commands find: 3 is current, 1 is dropped, and files of 2 and 3 have the same names.
  void SetUp() override {
    flush_three();
    ASSERT_EQ(run_index(Action::drop, "ckpt.1"), exit_ok) << logged();
    fs::remove(folder().listing());
    ASSERT_EQ(std::system(("cp -a " + prefix() + " " + before()).c_str()), 0);
  }

  std::string before() const { return base_.path() + "/before"; }

  void bring_back() {
    fs::remove_all(prefix());
    ASSERT_EQ(std::system(("cp -a " + before() + " " + prefix()).c_str()), 0);
  }

  /// False if the process came to its end before its change of this number.
  bool is_killed_at(int change) {
    const int child = ::fork();
    if (child == 0) {
      int made = 0;
      const auto posix = make_posix_files();
      files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
        if (changes_files(operation) && made++ == change) ::kill(::getpid(), SIGKILL);
        return {};
      });
      ::_exit(run_index(GetParam().action, GetParam().name));
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == exit_ok));
    return killed;
  }

  /// As anybody sees it who reads now.
  void expect_whole() {
    Names damaged;
    const auto there = read_listing(*files_, folder(), damaged);
    ASSERT_TRUE(there) << there.error().text;
    const auto dropped = read_dropped(*files_, folder());
    ASSERT_TRUE(dropped) << dropped.error().text;
    EXPECT_EQ(damaged, Names());
    EXPECT_NE(find_in(*there, info_of(2).uuid), nullptr);
    const DatasetRecord* newest = find_in(*there, info_of(3).uuid);
    if (newest != nullptr) expect_files_of_newest();
    const bool anywhere = newest != nullptr || dropped->has(info_of(3).uuid);
    EXPECT_TRUE(anywhere || GetParam().action == Action::remove || is_on_its_way()) << "3 is lost";
  }

  /// Between two folders, from which the next owner brings it to the second.
  bool is_on_its_way() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder().root()))
      if (entry.path().filename() ==
          std::string(DatasetFolder::transit_start) + DatasetFolder::folder_name(info_of(3)))
        return true;
    return false;
  }

  void expect_files_of_newest() const {
    for (int rank = 0; rank < ranks; ++rank)
      for (int file = 0; file < 2; ++file)
        EXPECT_EQ(read_all(own_name(rank, file)), content_of(3, rank, file));
  }

  void expect_done_when_given_again() {
    const int code = run_index(GetParam().action, GetParam().name);
    // It may have been done, or the command before this one have ended it.
    EXPECT_TRUE(code == exit_ok || logs("there is no dataset " + GetParam().name) ||
                logs("already"))
        << logged();
    EXPECT_EQ(listed(), GetParam().listed);
    EXPECT_EQ(listed(true), GetParam().dropped);
    EXPECT_EQ(current(), GetParam().current);
    EXPECT_EQ(names_of_cairn(), Names());
    if (GetParam().action != Action::remove) expect_files_of_newest();
    EXPECT_EQ(fs::exists(own_name(1, 0)), GetParam().action != Action::remove);
  }
};

TEST_P(IndexKilled, TheIndexIsWholeAndTheCommandGivenAgainFinishes) {
  int change = 0;
  for (bool killed = true; killed && !HasFailure(); ++change) {
    SCOPED_TRACE(fmt::format("killed at change {}", change));
    bring_back();
    killed = is_killed_at(change);
    expect_whole();
    expect_done_when_given_again();
  }
  EXPECT_GT(change, 10);
}

INSTANTIATE_TEST_SUITE_P(
    Commands, IndexKilled,
    testing::Values(
        Case{"current", Action::current, "ckpt.2", {"ckpt.3", "ckpt.2"}, {"ckpt.1"}, "ckpt.2"},
        Case{"drop", Action::drop, "ckpt.3", {"ckpt.2"}, {"ckpt.3", "ckpt.1"}, ""},
        Case{"delete", Action::remove, "ckpt.3", {"ckpt.2"}, {"ckpt.1"}, ""},
        Case{"add", Action::add, "ckpt.1", {"ckpt.3", "ckpt.2", "ckpt.1"}, {}, "ckpt.3"},
        Case{"build", Action::build, "", {"ckpt.3", "ckpt.2"}, {"ckpt.1"}, "ckpt.3"}),
    [](const auto& one) { return one.param.word; });

}  // namespace
}  // namespace cairn
