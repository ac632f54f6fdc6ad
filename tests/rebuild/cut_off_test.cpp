// The commands that come after the job, cut off at every change to a file: by a kill, by a power
// failure that takes what was not synced, or by a file system that is full from there on. Given
// again they finish, and nothing that was committed is harmed; nor by what cairn explain recommends
// to do.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "../explain/advised.hpp"
#include "files/hasty_clock.hpp"
#include "memory_files.hpp"
#include "support/job_bed.hpp"
#include "tools/exit_codes.hpp"
#include "tools/explain/explain_command.hpp"
#include "tools/index/index_command.hpp"
#include "tools/publish_command.hpp"
#include "tools/scavenge_command.hpp"
#include "tools/verify/verify_command.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using sim::Volume;
using Disk = std::shared_ptr<Volume>;

enum class End { kill, power, full };

/// What real ranks of a dead job have left, in files of main memory that know what a power failure
/// takes.
class CutOff : public testing::TestWithParam<End> {
 protected:
  CutOff() {
    bed_.settings.flush_interval = 2;
    bed_.settings.stores[0].count = 2;
  }

  void SetUp() override {
    run_job();
    take_over();
    state_->sync_all();
  }

  virtual void run_job() {
    bed_.write({"n0", "n1", "n2", "n3"}, {1, 2, 3});  // 2 is in the prefix directory
  }

  // --- files ---

  void take_over() {
    const std::string root = bed_.node("");
    mount_ = root.substr(0, root.size() - 1);
    const auto posix = make_posix_files();
    const auto files = files_on(state_);
    for (const auto& entry : fs::recursive_directory_iterator(mount_)) {
      const FileInfo info = *posix->info(entry.path());
      if (info.kind == Kind::folder) {
        EXPECT_TRUE(files->make_folder(entry.path(), info.mode));
        continue;
      }
      const std::string content = read_all(entry.path());
      const auto file = files->create(entry.path(), 0600);
      EXPECT_TRUE((*file)->write_at(0, std::as_bytes(std::span(content))));
      EXPECT_TRUE(files->set_attributes(entry.path(), info.mode, info.times));
    }
  }

  /// What of it one host sees, which is all.
  std::unique_ptr<Files> files_on(const Disk& disk) const {
    return sim::make_memory_files({{mount_, disk}},
                                  [] { return std::int64_t{1'800'000'000'000'000'000}; });
  }

  /// Another one in the same state, all of it durable.
  Disk anew() const {
    auto copy = std::make_shared<Volume>(state_->copy());
    copy->sync_all();
    return copy;
  }

  static std::string bytes_of(const Disk& disk, const std::string& path) {
    const sim::InodePtr inode = disk->find(path);
    if (inode == nullptr) return "nothing";
    return {reinterpret_cast<const char*>(inode->content.data()), inode->content.size()};
  }

  /// One bit, as a disk does it.
  static void flip(const Disk& disk, const std::string& path) {
    Blob& content = disk->find(path)->content;
    content.at(content.size() / 2) ^= std::byte{1};
  }

  void lose(const std::string& node) {
    EXPECT_TRUE(remove_all(*files_on(state_), bed_.node(node)));
  }

  std::string own_file(int dataset, int rank, int file) const {
    return bed_.file(dataset, rank, file).substr(mount_.size());
  }

  void expect_own_files(const Disk& disk, int dataset) const {
    for (int rank = 0; rank < ranks_; ++rank)
      for (int file = 0; file < files_per_rank; ++file)
        EXPECT_TRUE(bytes_of(disk, own_file(dataset, rank, file)) ==
                    content_of(rank, file, dataset))
            << own_file(dataset, rank, file);
  }

  static Names left_over(const Disk& disk) {
    Names found;
    for (const std::string& path : disk->files_below("/pfs"))
      if (path.find("/.cairn.") != std::string::npos || path.starts_with("/pfs/.cairn/closed.") ||
          path.find("/rank.") != std::string::npos)
        found.push_back(path);
    return found;
  }

  // --- commands ---

  using Command = std::function<int(Files&, std::ostream&, const Log&)>;

  int run(Files& files, const Command& command) {
    std::ostringstream out;
    LogCapture logged;
    const int code = command(files, out, logged.log());
    output_ = logged.text() + out.str();
    return code;
  }

  Command scavenge(const std::string& node, const WantedDatasets& datasets = {}) {
    return [this, node, datasets](Files& files, std::ostream& out, const Log& log) {
      ScavengeCommand command;
      command.datasets = datasets;
      return run_scavenge_command(command, files, clock_, bed_.process_on(node), out, log);
    };
  }
  Command index_delete(const std::string& name) {
    return [this, name](Files& files, std::ostream& out, const Log& log) {
      IndexCommand command;
      command.action = IndexCommand::Action::remove;
      command.name = name;
      return run_index_command(command, files, clock_, bed_.process_on("login"), out, log);
    };
  }
  Command rebuild() {
    return [this](Files& files, std::ostream& out, const Log& log) {
      return run_publish_command({}, files, clock_, bed_.process_on("login"), out, log);
    };
  }
  Command verify(bool repair, const std::string& caches = {}) {
    return [this, repair, caches](Files& files, std::ostream& out, const Log& log) {
      VerifyCommand command;
      command.repair = repair;
      if (!caches.empty()) command.caches = {caches};
      return run_verify_command(command, files, clock_, bed_.process_on("login"), out, log);
    };
  }

  struct Left {
    Disk disk;
    int at = 0;
    bool ended = false;  ///< the command was not cut off: all of it must be durable
  };

  /// Cuts the command off before each change that it makes to files, one after the other, and then
  /// lets it end; what is left is shown to `check`. To be cut off while it reads leaves the same. A
  /// power failure leaves this or that: `tries` of them.
  void cut_off_everywhere(const Command& command, int tries,
                          const std::function<void(const Left&)>& check) {
    const int step = sanitized ? 11 : 1;
    bool ended = false;
    int at = 0;
    for (; !ended && !HasFailure(); at += step)
      for (int seed = 0; seed < (GetParam() == End::power ? tries : 1) && !HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("cut off before change {}, seed {}", at, seed));
        const Disk disk = anew();
        ended = !cut_off(command, disk, at);
        sim::Chance chance(static_cast<std::uint64_t>(at * tries + seed));
        if (GetParam() == End::power) disk->power_failure(chance);
        check({disk, at, ended});
      }
    EXPECT_GT(at, 10);
    RecordProperty("changes", at);
  }

  bool cut_off(const Command& command, const Disk& disk, int at) {
    if (GetParam() == End::full) return fill_up(command, disk, at);
    const auto memory = files_on(disk);
    std::atomic<int> changes = 0;
    const auto files = make_hooked_files(*memory, [&](const FileOperation& operation) -> Status {
      if (changes_files(operation) && changes++ >= at) throw Crash();
      return {};
    });
    try {
      (void)run(*files, command);
    } catch (const Crash&) {
      return true;
    }
    return false;
  }

  /// Whether that was met. A command that does not finish then says why.
  bool fill_up(const Command& command, const Disk& disk, int at) {
    static const std::set<std::string_view> taking_room = {
        "write", "create", "append", "link", "lock", "make_folder", "make_new_folder"};
    const auto memory = files_on(disk);
    std::atomic<int> taken = 0;
    std::atomic<bool> met = false;
    const auto files = make_hooked_files(*memory, [&](const FileOperation& operation) -> Status {
      if (!taking_room.contains(operation.name) || taken++ < at) return {};
      met = true;
      return fail(Code::no_space, "cannot {} {}: no space is left", operation.name, operation.path);
    });
    const int code = run(*files, command);
    EXPECT_TRUE(code == exit_ok || code == exit_damaged ||
                output_.find("no space is left") < at_end)
        << code << ": " << output_;
    return met;
  }

  int run(const Disk& disk, const Command& command) { return run(*files_on(disk), command); }

  /// These are there, as they were written, and nothing else is left of them.
  void expect_published(const Disk& disk, const Names& datasets = {"ckpt.3", "ckpt.2"}) {
    for (const std::string& name : datasets)
      expect_own_files(disk, std::stoi(name.substr(name.find('.') + 1)));
    EXPECT_EQ(left_over(disk), Names{});
    EXPECT_EQ(listed(disk), datasets);
  }

  /// All of them settled.
  Names listed(const Disk& disk) const {
    Names names;
    Names unreadable;
    const auto listing = read_listing(*files_on(disk), {bed_.settings.prefix}, unreadable);
    EXPECT_TRUE(listing && unreadable.empty());
    for (const DatasetRecord& record : listing.value_or(Listing{})) {
      names.push_back(record.info.name);
      EXPECT_TRUE(record.settled) << record.label();
    }
    return names;
  }

  /// Given again after it was cut off: it ends, or says that there is nothing any more.
  void delete_again(const Disk& disk, const std::string& name) {
    const int code = run(disk, index_delete(name));
    EXPECT_TRUE(code == exit_ok || output_.find("there is no dataset " + name) != std::string::npos)
        << output_;
    EXPECT_EQ(left_over(disk), Names{});
  }

  Command explain() {
    return [this](Files& files, std::ostream& out, const Log& log) {
      return run_explain_command({}, files, clock_, bed_.process_on("login"), out, log);
    };
  }

  /// The first command that cairn explain recommends ends well, and is not recommended again.
  void expect_good_advice(const Left& left) {
    if (left.at % 3 != 0) return;
    const auto disk = std::make_shared<Volume>(left.disk->copy());
    ASSERT_EQ(run(disk, explain()), exit_ok) << output_;
    const auto arrow = output_.find("  -> cairn ");
    if (arrow == at_end) return;
    ++followed_;
    const std::string line = output_.substr(arrow, output_.find('\n', arrow) + 1 - arrow);
    const int code = run(disk, [&](Files& files, std::ostream& out, const Log& log) {
      return run_advised(parse_advised(line), files, clock_, bed_.process_on("login"), out, log);
    });
    EXPECT_TRUE(code == exit_ok || code == exit_damaged) << code << line << output_;
    ASSERT_EQ(run(disk, explain()), exit_ok) << output_;
    EXPECT_EQ(output_.find(line), at_end) << output_;
  }

  static constexpr auto at_end = std::string::npos;
  int followed_ = 0;
  PrefixJobBed bed_;
  HastyClock clock_;
  std::string mount_;
  int ranks_ = 4;
  Disk state_ = std::make_shared<Volume>(Volume::Medium::disk);
  std::string output_;
};

TEST_P(CutOff, AScavengeIsGoneOnWithOrCountsForNothing) {
  for (const std::string node : {"n0", "n3"})
    ASSERT_EQ(run(state_, scavenge(node)), exit_ok) << output_;
  cut_off_everywhere(scavenge("n1"), 4, [&](const Left& left) {
    expect_own_files(left.disk, 2);
    // Then n1 or n2 has died for good: if that is n2, nothing of n1 may be missing.
    if (!left.ended) {
      ASSERT_EQ(run(left.disk, scavenge(left.at % 2 == 0 ? "n1" : "n2")), exit_ok) << output_;
    }
    ASSERT_EQ(run(left.disk, rebuild()), exit_ok) << output_;
    expect_published(left.disk);
  });
}

TEST_P(CutOff, ARebuildAndItsPublishingAreEndedByTheNext) {
  lose("n2");
  for (const std::string node : {"n0", "n1", "n3"})
    ASSERT_EQ(run(state_, scavenge(node)), exit_ok) << output_;
  cut_off_everywhere(rebuild(), 1, [&](const Left& left) {
    expect_own_files(left.disk, 2);
    if (left.ended) expect_own_files(left.disk, 3);
    expect_good_advice(left);
    ASSERT_EQ(run(left.disk, rebuild()), exit_ok) << output_;
    expect_published(left.disk);
  });
  EXPECT_GT(followed_, 0);
}

TEST_P(CutOff, ARepairOfCachesIsEndedByTheNext) {
  for (const std::string& path : state_->files_below()) {  // one dataset will do
    const bool cached = path.find("/cairn.job.") != std::string::npos &&
                        path.find("/dataset.2.") != std::string::npos;
    ASSERT_TRUE(!cached || files_on(state_)->remove_file(mount_ + path));
  }
  std::map<std::string, std::string> whole;
  for (const std::string& path : state_->files_below())
    if (path.find("/tester/cairn.job.") != std::string::npos &&
        path.find("/dataset.") != std::string::npos)
      whole[path] = bytes_of(state_, path);
  for (const auto& [path, content] : whole)
    if (path.starts_with("/n1/") && !content.empty()) flip(state_, path);
  cut_off_everywhere(verify(true, mount_), 1, [&](const Left& left) {
    expect_good_advice(left);
    const int again = run(left.disk, verify(true, mount_));
    ASSERT_TRUE(again == exit_ok || (again == exit_damaged && !left.ended)) << output_;
    for (const auto& [path, content] : whole)
      EXPECT_TRUE(bytes_of(left.disk, path) == content) << path;
  });
}

TEST_P(CutOff, ARepairOfThePrefixDirectoryIsEndedByTheNext) {
  flip(state_, own_file(2, 1, 0));
  ASSERT_TRUE(files_on(state_)->remove_file(bed_.file(2, 2, 1)));
  cut_off_everywhere(verify(true), 2, [&](const Left& left) {
    expect_good_advice(left);
    const int again = run(left.disk, verify(true));
    ASSERT_TRUE(again == exit_ok || (again == exit_damaged && !left.ended)) << output_;
    EXPECT_EQ(run(left.disk, verify(false)), exit_ok) << output_;
    expect_own_files(left.disk, 2);
    EXPECT_EQ(left_over(left.disk), Names{});
  });
  EXPECT_GT(followed_, 0);
}

/// It does not come back after any scavenge and rebuild.
TEST_P(CutOff, ADeletionOfWhatIsOnlyScavengedIsEndedByTheNext) {
  for (const std::string node : {"n0", "n1", "n3"})
    ASSERT_EQ(run(state_, scavenge(node)), exit_ok) << output_;
  cut_off_everywhere(index_delete("ckpt.3"), 2, [&](const Left& left) {
    expect_own_files(left.disk, 2);
    delete_again(left.disk, "ckpt.3");
    ASSERT_EQ(run(left.disk, scavenge("n0")), exit_ok) << output_;
    ASSERT_EQ(run(left.disk, rebuild()), exit_ok) << output_;
    expect_published(left.disk, {"ckpt.2"});
  });
}

/// Until it is taken out it is as it was, however much of its copies is gone.
TEST_P(CutOff, ADeletionOfWhatIsPublishedAndScavengedIsEndedByTheNext) {
  for (const std::string node : {"n0", "n1"})
    ASSERT_EQ(run(state_, scavenge(node, {"ckpt.2"})), exit_ok) << output_;
  cut_off_everywhere(index_delete("ckpt.2"), 2, [&](const Left& left) {
    if (!listed(left.disk).empty()) expect_own_files(left.disk, 2);
    delete_again(left.disk, "ckpt.2");
    EXPECT_EQ(listed(left.disk), Names{});
    for (int rank = 0; rank < ranks_; ++rank)
      EXPECT_EQ(bytes_of(left.disk, own_file(2, rank, 0)), "nothing");
  });
}

/// Of four nodes one is lost that had done its part of the flush of checkpoint 4, which died.
class CutOffInAFlush : public CutOff {
 protected:
  void run_job() override {
    bed_.lose_node_that_has_flushed();
    ranks_ = 8;
  }
  void scavenge_all() {
    for (const std::string node : {"n0", "n1", "n2"})
      ASSERT_EQ(run(state_, scavenge(node, {"ckpt.4"})), exit_ok) << output_;
  }
};

TEST_P(CutOffInAFlush, ARebuildThatCarriesItOnIsEndedByTheNext) {
  scavenge_all();
  cut_off_everywhere(rebuild(), 1, [&](const Left& left) {
    expect_own_files(left.disk, 2);
    if (left.ended) expect_own_files(left.disk, 4);
    expect_good_advice(left);
    ASSERT_EQ(run(left.disk, rebuild()), exit_ok) << output_;
    expect_published(left.disk, {"ckpt.4", "ckpt.2"});
  });
}

/// Neither the copies nor the plan bring it back.
TEST_P(CutOffInAFlush, ADeletionOfWhatWasScavengedIsEndedByTheNext) {
  scavenge_all();
  cut_off_everywhere(index_delete("ckpt.4"), 2, [&](const Left& left) {
    expect_own_files(left.disk, 2);
    (void)run(left.disk, index_delete("ckpt.4"));
    ASSERT_EQ(run(left.disk, scavenge("n0", {"ckpt.3"})), exit_ok) << output_;
    (void)run(left.disk, rebuild());  // of SINGLE, so checkpoint 3 is lost
    ASSERT_EQ(run(left.disk, index_delete("ckpt.3")), exit_ok) << output_;
    expect_published(left.disk, {"ckpt.2"});
  });
}

std::string name_of_end(const testing::TestParamInfo<End>& end) {
  const std::map<End, std::string> names = {
      {End::kill, "Killed"}, {End::power, "PowerFails"}, {End::full, "NoRoomIsLeft"}};
  return names.at(end.param);
}

INSTANTIATE_TEST_SUITE_P(AfterTheJob, CutOff, testing::Values(End::kill, End::power, End::full),
                         name_of_end);
INSTANTIATE_TEST_SUITE_P(AfterTheJob, CutOffInAFlush,
                         testing::Values(End::kill, End::power, End::full), name_of_end);

}  // namespace
}  // namespace cairn
