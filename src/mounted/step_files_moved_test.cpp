// What a program does to a file that the job moves, or does not take any more.
#include <atomic>
#include <chrono>
#include <thread>

#include "mounted/step_files_fixture.hpp"

namespace cairn {
namespace {

/// The kernel has looked it up before another file got its name.
TEST(StepFiles, AfterTheJobIsLostAFileThatHasLostItsNameStaysInTheBackingDirectory) {
  on_a_node([](MountedFiles& mounted) {
    mounted.files().take_no_new_steps();
    put(mounted.plain(part), "first");
    const Descriptor file(::open(mounted.plain(part).c_str(), O_PATH));
    put(mounted.plain("other"), "second");
    fs::rename(mounted.plain("other"), mounted.plain(part));
    std::unique_ptr<Redirection::Change> change;
    EXPECT_EQ(mounted.files().admit(file, writes_over, mounted.caller, change), ESTALE);
    EXPECT_FALSE(fs::exists(mounted.in_cache(part)));
  });
}

constexpr int moves = 600;

/// Calls `change` while the job moves the file to its plain place.
void amid_a_move(MountedFiles& mounted, int delay_us, const std::function<void()>& change) {
  std::atomic<bool> begins = false;
  std::thread mover([&] {
    while (!begins) continue;
    (void)mounted.files().move_to_plain_place(part);
  });
  begins = true;
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(delay_us);
  while (std::chrono::steady_clock::now() < until) continue;
  change();
  mover.join();
}

TEST(StepFiles, AFileThatTheJobMovesCanBeRenamedMeanwhile) {
  on_a_node([](MountedFiles& mounted) {
    const std::string to = "step.1/part.1";
    int failed = 0;
    for (int i = 0; i < moves; ++i) {
      mounted.write(part, "content");
      amid_a_move(mounted, i / 3, [&] {
        const auto renamed = mounted.rename(part, to);
        if (!renamed) fs::rename(mounted.plain(part), mounted.plain(to));
        failed += renamed && *renamed != 0 ? 1 : 0;
      });
      failed += fs::exists(mounted.in_cache(to)) || fs::exists(mounted.plain(to)) ? 0 : 1;
      failed += fs::exists(mounted.in_cache(part)) || fs::exists(mounted.plain(part)) ? 1 : 0;
      for (const std::string& name : {std::string(part), to}) {
        fs::remove(mounted.in_cache(name));
        fs::remove(mounted.plain(name));
      }
    }
    EXPECT_EQ(failed, 0);
  });
}

TEST(StepFiles, AFileThatTheJobMovesCanBeRemovedMeanwhile) {
  on_a_node([](MountedFiles& mounted) {
    int failed = 0;
    for (int i = 0; i < moves; ++i) {
      mounted.write(part, "content");
      amid_a_move(mounted, i / 3, [&] {
        const bool is_redirected = mounted.files().find(part).number() >= 0;
        const bool is_removed =
            is_redirected ? mounted.remove(part) == 0 : fs::remove(mounted.plain(part));
        failed += is_removed ? 0 : 1;
      });
      failed += fs::exists(mounted.plain(part)) ? 1 : 0;
      fs::remove(mounted.in_cache(part));
      fs::remove(mounted.plain(part));
    }
    EXPECT_EQ(failed, 0);
  });
}

}  // namespace
}  // namespace cairn
