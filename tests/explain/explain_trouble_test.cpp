// What `cairn explain` foretells where the prefix directory itself cannot be used, or what it keeps
// there is damaged, beside what a run then does.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "dead_job.hpp"
#include "tools/exit_codes.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Action = IndexCommand::Action;

class ExplainTrouble : public DeadJob {
 protected:
  /// Two checkpoints there, and nothing in the caches.
  void SetUp() override {
    bed_.write_and_finalize({1, 2, 3, 4});
    bed_.lose_all_nodes();
  }

  std::string book(const std::string& name) const { return prefix() + "/.cairn/" + name; }
  std::string current() const { return *read_current(*files_, {prefix()}); }

  int index(Action action, const std::string& name = {}) {
    IndexCommand command;
    command.action = action;
    command.name = name;
    command.force = true;  // its owner is dead
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_index_command(command, *files_, *clock_, process_, out, log);
    });
  }

  void explain_under(const FileHook& fault) {
    const auto posix = make_posix_files();
    files_ = make_hooked_files(*posix, fault);
    EXPECT_EQ(explain(8), 0) << logged();
    files_ = make_posix_files();
  }

  /// What a run under the same fault logs of its restart, and begins from.
  void run_under(const FileHook& fault, const std::function<void(JobRank&)>& rank_main) {
    EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
      rank.hook = fault;
      const Status ready = rank.init();
      ASSERT_TRUE(ready) << ready.error().text;
      rank_main(rank);
    }));
  }

  /// Neither begins without what may be there; unless it is set so, or the caches have one.
  void expect_trouble(const std::string& why, const FileHook& fault) {
    const std::string refusal = "there may be a checkpoint to restart from, but ";
    explain_under(fault);
    EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: " + refusal))
        << printed();
    EXPECT_TRUE(prints("note: nothing can be fetched from " + prefix() + ": " + why)) << printed();
    run_under(fault, [&](JobRank& rank) {
      const auto found = rank.session->have_restart();
      ASSERT_FALSE(found);
      EXPECT_TRUE(found.error().text.starts_with(refusal)) << found.error().text;
    });
    process_.environment["CAIRN_ON_FETCH_FAIL"] = "fresh";
    bed_.settings.on_fetch_fail = OnFetchFail::fresh;
    explain_under(fault);
    EXPECT_TRUE(printed().substr(0, printed().find('\n')).find("FROM SCRATCH") != std::string::npos)
        << printed();
    run_under(fault, [](JobRank& rank) { EXPECT_EQ(rank.restart(), 0); });
    process_.environment.erase("CAIRN_ON_FETCH_FAIL");
    bed_.settings.on_fetch_fail = OnFetchFail::older;
    bed_.lose_all_nodes();
    EXPECT_EQ(bed_.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); }), 4);
    explain_under(fault);
    EXPECT_TRUE(
        printed().starts_with("a restart with 8 ranks would take dataset 5 (ckpt.5) from the "
                              "cache\n"))
        << printed();
    run_under(fault, [](JobRank& rank) { EXPECT_EQ(rank.restart(), 5); });
  }

  static bool is_below(const std::string& folder, const FileOperation& operation) {
    return operation.path == folder || operation.path.starts_with(folder + "/");
  }
};

// --- it cannot be used ---

TEST_F(ExplainTrouble, BooksThatCannotBeListed) {
  expect_trouble("injected", [&](const FileOperation& operation) -> Status {
    if (operation.name != "list" || operation.path != prefix() + "/.cairn") return {};
    return fail(Code::io, "injected: cannot list {}", operation.path);
  });
}

TEST_F(ExplainTrouble, DatasetsThatCannotBeListed) {
  expect_trouble("injected", [&](const FileOperation& operation) -> Status {
    const bool copy = operation.path == book("listing");
    if (!copy && (operation.name != "list" || operation.path != book("datasets"))) return {};
    return fail(Code::io, "injected: cannot read {}", operation.path);
  });
}

/// Once the settings were read, of which some may be in it.
TEST_F(ExplainTrouble, ADirectoryThatIsAway) {
  expect_trouble("injected", [&](const FileOperation& operation) -> Status {
    if (!is_below(prefix(), operation) || operation.path.ends_with(".scrconf")) return {};
    return fail(Code::io, "injected: {} does not answer", operation.path);
  });
}

TEST_F(ExplainTrouble, ADirectoryThatMayNotBeWritten) {
  expect_trouble("injected", [&](const FileOperation& operation) -> Status {
    constexpr std::array changes = {"create", "make_new_folder", "rename",
                                    "append", "remove_file",     "may_change"};
    const bool is_change =
        std::find(changes.begin(), changes.end(), operation.name) != changes.end();
    if (!is_change || !is_below(prefix(), operation)) return {};
    return fail(Code::io, "injected: {} is read-only", operation.path);
  });
}

/// What could not be copied is still in the caches.
TEST_F(ExplainTrouble, ADirectoryThatIsFull) {
  EXPECT_EQ(bed_.restart(four_nodes(),
                         [&](JobRank& rank) {
                           rank.hook = [&](const FileOperation& operation) -> Status {
                             if (operation.name != "write" || !is_below(prefix(), operation))
                               return {};
                             return fail(Code::no_space, "injected: no space is left");
                           };
                           rank.expect_written(5);
                           rank.expect_not_copied(6);
                         }),
            4);
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(said_of("ckpt.6", "cache").at("taken")) << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "not needed: a restart takes dataset")) << printed();
  expect_forecast(6);
  EXPECT_EQ(current(), "ckpt.6") << "the next run copies it";
}

class ExplainFull : public ExplainTrouble {
 protected:
  void SetUp() override {
    fs::create_directories(prefix());
    // Seen by this process alone, and gone with it however it ends.
    if (::unshare(CLONE_NEWNS) != 0) return;
    (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE,
                  nullptr);  // not where that is no mount
    is_mounted_ = ::mount("tmpfs", prefix().c_str(), "tmpfs", 0, "size=1m") == 0;
    if (is_mounted_) ExplainTrouble::SetUp();
  }
  void TearDown() override {
    EXPECT_TRUE(!is_mounted_ || ::umount2(prefix().c_str(), MNT_DETACH) == 0);
  }

  bool is_mounted_ = false;
};

TEST_F(ExplainFull, ADiskWithoutAByteLeft) {
  if (!is_mounted_) GTEST_SKIP() << "a small disk cannot be mounted: " << std::strerror(errno);
  std::ofstream filler(prefix() + "/filler", std::ios::binary);
  const std::string block(4096, 'x');
  while (filler.write(block.data(), 4096).flush()) {
  }
  filler.close();
  ASSERT_EQ(explain(8), 0) << logged();
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: ")) << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "no run can use the prefix directory now"))
      << printed();
  EXPECT_TRUE(prints("no space is left in " + prefix())) << printed();
  bed_.run_well(four_nodes(), [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
  fs::remove(prefix() + "/filler");
  expect_forecast(4);
}

/// The files of the newest checkpoint are there, and may be whole: it is not damaged for that.
TEST_F(ExplainTrouble, FilesThatCannotBeReadNowAreNotCalledDamaged) {
  const FileHook fault = [path = bed_.file(4, 5)](const FileOperation& operation) -> Status {
    if (operation.path != path) return {};
    return fail(Code::io, "injected: {} does not answer", operation.path);
  };
  explain_under(fault);
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would take dataset 2 (ckpt.2)"))
      << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "cannot be read now: injected")) << printed();
  EXPECT_FALSE(has(said_of("ckpt.4", "prefix"), "failed")) << printed();
  run_under(fault, [](JobRank& rank) { EXPECT_EQ(rank.restart(), 2); });
  bed_.lose_all_nodes();

  process_.environment["CAIRN_ON_FETCH_FAIL"] = "stop";
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  const std::string refusal = "there may be a checkpoint to restart from, but ";
  explain_under(fault);
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: " + refusal)) << printed();
  run_under(fault, [&](JobRank& rank) {
    const auto found = rank.session->have_restart();
    ASSERT_FALSE(found);
    EXPECT_TRUE(found.error().text.starts_with(refusal)) << found.error().text;
  });
}

// --- it is to be deleted, or another user's ---

TEST_F(ExplainTrouble, WhatWasDeletedIsNotTakenFromTheCaches) {
  bed_.restart(four_nodes(), [](JobRank& rank) {
    rank.expect_written(5);
    EXPECT_TRUE(rank.session->finalize());
  });
  ASSERT_EQ(index(Action::remove, "ckpt.5"), 0) << logged();
  expect_forecast(4);
  EXPECT_TRUE(prints("it was deleted from the prefix directory; a restart removes it here too"))
      << printed();
}

/// Of what is said of each dataset nothing is against what is said of the restart.
TEST_F(ExplainTrouble, ADirectoryThatTheNextRunDeletes) {
  bed_.write(four_nodes(), {5, 6});
  bed_.settings.prefix_purge = true;
  process_.environment["SCR_PREFIX_PURGE"] = "1";
  ASSERT_EQ(explain(8), 0) << logged();
  EXPECT_TRUE(said_of("ckpt.6", "cache").at("taken")) << printed();
  for (const char* name : {"ckpt.2", "ckpt.4", "ckpt.6"}) {
    const auto deleted = said_of(name, "prefix");
    EXPECT_TRUE(has(deleted, "SCR_PREFIX_PURGE=1: the next run deletes it")) << printed();
    EXPECT_TRUE(has(deleted, "start without SCR_PREFIX_PURGE=1")) << printed();
  }
  expect_forecast(6);
  EXPECT_EQ(bed_.listed(), Names{}) << "what was purged is not copied again";
  bed_.lose_all_nodes();
  expect_forecast(0);
}

/// What is to be deleted is unknown then, so the run fails, whatever the caches have.
TEST_F(ExplainTrouble, APurgeBesideARecordThatCannotBeReadNow) {
  bed_.write(four_nodes(), {5, 6});
  const Blob newer = seal(RecordType::dataset, dataset_record_version + 1, {});
  for (const auto& dataset : fs::directory_iterator(prefix() + "/.cairn/datasets"))
    std::ofstream(dataset.path() / "dataset", std::ios::binary)
        << std::string(reinterpret_cast<const char*>(newer.data()), newer.size());
  fs::remove(prefix() + "/.cairn/listing");
  ASSERT_EQ(explain(8), 0) << logged();
  EXPECT_TRUE(said_of("ckpt.6", "cache").at("taken")) << printed();
  bed_.settings.prefix_purge = true;
  process_.environment["SCR_PREFIX_PURGE"] = "1";
  ASSERT_EQ(explain(8), 0) << logged();
  EXPECT_TRUE(
      printed().starts_with("a restart with 8 ranks would fail: it is unknown what "
                            "SCR_PREFIX_PURGE=1 is to delete"))
      << printed();
  EXPECT_FALSE(said_of("ckpt.6", "cache").at("taken")) << printed();
  bed_.run(four_nodes(), [](JobRank& rank) { EXPECT_FALSE(rank.init()); });
}

TEST_F(ExplainTrouble, AnUnfinishedFlushThatTheNextRunDeletes) {
  bed_.lose_node_that_has_flushed();
  bed_.settings.prefix_purge = true;
  process_.environment["SCR_PREFIX_PURGE"] = "1";
  ASSERT_EQ(explain(8), 0) << logged();
  const auto flush = said_of("ckpt.4", "unfinished flush");
  EXPECT_TRUE(has(flush, "SCR_PREFIX_PURGE=1: the next run deletes it")) << printed();
  EXPECT_FALSE(flush.at("taken") || flush.at("usable")) << printed();
  expect_forecast(0);
  EXPECT_EQ(bed_.listed(), Names{});
}

/// A colleague who is asked for help, or the owner of the system's who may only read.
TEST_F(ExplainTrouble, AUserWhoMayOnlyReadSeesWhatARunOfTheOwnerWouldDo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const auto posix = make_posix_files();
  if (::chown(book("").c_str(), 65534, 65534) != 0)
    GTEST_SKIP() << "nothing can be given to another user here: " << std::strerror(errno);
  const FileHook may_only_read = [](const FileOperation& operation) -> Status {
    if (operation.name != "may_change") return {};
    return fail(Code::io, "injected: {} is not yours", operation.path);
  };
  explain_under(may_only_read);
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would take dataset 4 (ckpt.4)"))
      << printed();
  EXPECT_TRUE(prints(" a run of the owner of " + prefix()) &&
              prints("could not use it: injected: "))
      << printed();
  ASSERT_EQ(::chown(book("").c_str(), 0, 0), 0);
  explain_under(may_only_read);
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: ")) << printed();
}

// --- what is in it is not what was put there ---

TEST_F(ExplainTrouble, LinksAndDevicesInThePlaceOfFiles) {
  const std::string path = bed_.file(4, 5);
  const std::string elsewhere = path + ".elsewhere";
  fs::rename(path, elsewhere);
  const std::vector<std::function<void()>> put = {
      [&] { fs::create_symlink(elsewhere, path); },
      [&] { EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0); },
      [&] {
        if (::geteuid() != 0) return;  // then it is missing
        EXPECT_EQ(::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)), 0);
      }};
  for (const auto& put_it : put) {
    fs::remove(path);
    put_it();
    ASSERT_EQ(explain(), 0);
    const auto bad = said_of("ckpt.4", "prefix");
    EXPECT_TRUE(has(bad, path)) << printed();
    EXPECT_TRUE(has(bad, "a restart would mark it as failed and take the next older")) << printed();
    expect_forecast(2);
    bed_.lose_all_nodes();
    ASSERT_EQ(index(Action::lift, "ckpt.4"), 0) << logged();
    ASSERT_EQ(index(Action::current, "ckpt.4"), 0) << logged();
  }
}

/// A user has moved it to an archive.
TEST_F(ExplainTrouble, ALinkInThePlaceOfAFolder) {
  const std::string folder = prefix() + "/ckpt.4";
  const std::string archive = bed_.node("archive");
  fs::rename(folder, archive);
  fs::create_directory_symlink(archive, folder);
  ASSERT_EQ(explain(), 0);
  const auto bad = said_of("ckpt.4", "prefix");
  EXPECT_TRUE(has(bad, folder + " is a link")) << printed();
  EXPECT_TRUE(has(bad, "a restart would mark it as failed and take the next older")) << printed();
  expect_forecast(2);
}

/// And SCR_CURRENT names it.
TEST_F(ExplainTrouble, ACheckpointThatAUserHasPutInQuarantine) {
  ASSERT_EQ(index(Action::quarantine, "ckpt.4"), 0) << logged();
  process_.environment["SCR_CURRENT"] = bed_.settings.current = "ckpt.4";
  ASSERT_EQ(explain(), 0);
  const std::string reported =
      "SCR_CURRENT=ckpt.4 is ignored: dataset 4 (ckpt.4) is in quarantine, because a user put it "
      "there; "
      "\"cairn index quarantine --lift ckpt.4\" ends that";
  EXPECT_TRUE(prints("note: " + reported)) << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "it is in quarantine, because a user put it there"))
      << printed();
  expect_forecast(2);
  EXPECT_TRUE(bed_.logs(reported)) << bed_.log_text();
}

/// Where it is as long, that it came there later is all that is seen without reading it.
TEST_F(ExplainTrouble, AFileOfAnotherDatasetInThePlaceOfOne) {
  const std::string path = bed_.file(4, 5);
  const auto size = fs::file_size(path);
  fs::copy_file(bed_.file(2, 5), path, fs::copy_options::overwrite_existing);
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would take dataset 2 (ckpt.2)"))
      << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), path + " has 1794 bytes, expected ")) << printed();
  fs::resize_file(path, size);
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "1 of them have changed since")) << printed();
  EXPECT_EQ(follow(line_with("-> cairn verify ckpt.4")), exit_beyond_repair)
      << printed() << logged();
  EXPECT_TRUE(prints(path)) << printed();
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
  bed_.lose_all_nodes();
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "an earlier restart from it failed (20"))
      << printed();
  expect_forecast(2);
}

// --- the books ---

/// It is as if it named none, until it is written again.
TEST_F(ExplainTrouble, ADamagedNameOfTheCurrentOne) {
  const std::string damage = book("current") +
                             " is damaged: a restart uses the newest checkpoint; cairn index "
                             "current NAME chooses another";
  for (const bool cut : {false, true}) {
    const auto spoil = [&] {
      ASSERT_EQ(index(Action::current, "ckpt.2"), 0) << logged();
      ASSERT_EQ(current(), "ckpt.2");
      cut ? fs::resize_file(book("current"), 9) : flip_bit(book("current"));
    };
    spoil();
    const std::string newest = cut ? "ckpt.6" : "ckpt.4";
    ASSERT_EQ(explain(), 0) << logged();
    EXPECT_TRUE(prints("note: " + damage)) << printed();
    EXPECT_FALSE(prints("nothing can be fetched")) << printed();
    EXPECT_EQ(index(Action::list), 0) << logged();
    EXPECT_TRUE(logs(damage)) << logged();
    EXPECT_EQ(verify_prefix(), exit_damaged) << logged();
    EXPECT_TRUE(prints(damage)) << printed();

    expect_forecast(cut ? 6 : 4);
    EXPECT_TRUE(bed_.logs(damage)) << bed_.log_text();
    bed_.restart(four_nodes(), [&](JobRank& rank) {
      for (const int dataset : {5, 6}) rank.expect_written(dataset + (cut ? 2 : 0));
      EXPECT_TRUE(rank.session->finalize());
    });
    EXPECT_EQ(current(), cut ? "ckpt.8" : "ckpt.6") << "a flush writes it";
    bed_.lose_all_nodes();

    spoil();
    EXPECT_EQ(index(Action::build), 0) << logged();
    EXPECT_TRUE(logs(damage)) << logged();
    EXPECT_EQ(verify_prefix(), 0) << printed();
    spoil();
    EXPECT_EQ(index(Action::current, newest), 0) << logged();
    EXPECT_EQ(current(), newest);
    ASSERT_EQ(index(Action::current, cut ? "ckpt.8" : "ckpt.6"), 0) << logged();
  }
}

/// Of all small files, each in its turn: a run restarts and copies its next one all the same.
TEST_F(ExplainTrouble, NoFlippedBitOfTheBooksLocksTheDirectory) {
  {
    auto keeper = Keeper::take_over(*files_, *clock_, {prefix()}, {}, Claim::forced);
    ASSERT_TRUE(keeper);
    DatasetRecord other = keeper->known().listing.front();
    other.info.uuid = {1, 1};
    ASSERT_TRUE(keeper->set_attempts({other}));
    ASSERT_TRUE(keeper->set_deleted({other}));
    ASSERT_TRUE(keeper->save_listing());
    ASSERT_TRUE(keeper->resign());
  }
  const std::string kept = bed_.node("kept");
  fs::copy(prefix(), kept, fs::copy_options::recursive);
  std::vector<std::string> books;
  for (const auto& entry : fs::recursive_directory_iterator(prefix() + "/.cairn"))
    if (entry.is_regular_file() && entry.file_size() > 0) books.push_back(entry.path());
  for (const char* name : {"attempts", "current", "deleted", "listing", "owner"})
    EXPECT_EQ(std::count(books.begin(), books.end(), book(name)), 1) << name;
  for (const std::string& path : books) {
    SCOPED_TRACE(path);
    flip_bit(path);
    EXPECT_EQ(index(Action::list), 0) << logged();
    EXPECT_TRUE(prints("ckpt.4") && prints("ckpt.2")) << printed();
    ASSERT_EQ(explain(), 0) << logged();
    EXPECT_FALSE(prints("nothing can be fetched")) << printed();
    const int from = bed_.restart(four_nodes(), [](JobRank& rank) {
      for (const int dataset : {5, 6}) rank.expect_written(dataset);
      EXPECT_TRUE(rank.session->finalize());
    });
    EXPECT_GE(from, 2);
    EXPECT_EQ(current(), "ckpt.6");
    bed_.expect_own_files(6);
    bed_.lose_all_nodes();
    fs::remove_all(prefix());
    fs::copy(kept, prefix(), fs::copy_options::recursive);
  }
}

}  // namespace
}  // namespace cairn
