// What a job writes into its log.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

using Json = nlohmann::json;

/// As many seconds later as the test says.
class LaterClock final : public Clock {
 public:
  std::int64_t now_us() override { return real_->now_us(); }
  std::int64_t steady_us() override { return real_->steady_us() + later_s * 1'000'000; }
  void sleep_us(std::int64_t us) override {
    later_s += for_each_sleep_s;
    if (opens_at_a_sleep.exchange(false)) gate.set_value();
    real_->sleep_us(us);
  }
  std::uint64_t random() override { return real_->random(); }
  std::atomic<std::int64_t> later_s = 0;
  std::atomic<std::int64_t> for_each_sleep_s = 0;
  std::promise<void> gate;
  std::atomic<bool> opens_at_a_sleep = false;

 private:
  std::unique_ptr<Clock> real_ = make_system_clock();
};

class SessionLog : public ::testing::Test {
 protected:
  SessionLog() {
    bed_.settings.prefix = bed_.node("pfs");
    std::filesystem::create_directories(bed_.settings.prefix);
    bed_.settings.flush = true;
    bed_.settings.flush_interval = 2;
    bed_.settings.fetch = true;
    bed_.settings.log_json = true;
  }

  /// What was logged since the last call.
  std::vector<Json> news() {
    std::ifstream in(bed_.settings.prefix + "/.cairn/log.json");
    std::vector<Json> all;
    for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
    std::vector<Json> fresh(all.begin() + static_cast<std::ptrdiff_t>(seen_), all.end());
    seen_ = all.size();
    return fresh;
  }

  /// "CHECKPOINT_END 1", a transfer as "ENCODE> 1"; those of computing are left out.
  static std::vector<std::string> brief(const std::vector<Json>& lines) {
    std::vector<std::string> reported;
    for (const Json& line : lines) {
      std::string text = line.contains("event") ? line["event"].get<std::string>()
                                                : line["transfer"].get<std::string>() + ">";
      if (text.starts_with("COMPUTE") || text == "CALL") continue;
      if (line.contains("dataset")) text += fmt::format(" {}", line["dataset"].get<int>());
      reported.push_back(text);
    }
    return reported;
  }

  /// The one of this name; and it must be the only one.
  static Json the(const std::string& name, const std::vector<Json>& lines) {
    std::vector<Json> found;
    for (const Json& line : lines)
      if (line.value("event", line.value("transfer", "")) == name) found.push_back(line);
    EXPECT_EQ(found.size(), 1U) << name;
    return found.empty() ? Json() : found[0];
  }

  /// Of all events of this name: a wait may be logged in parts.
  static double seconds_of(const std::string& event, const std::vector<Json>& lines) {
    double seconds = 0;
    for (const Json& line : lines)
      if (line.value("event", "") == event) seconds += line.at("seconds").get<double>();
    return seconds;
  }

  static std::size_t bytes_of_dataset(int dataset) {
    std::size_t bytes = 0;
    for (int rank = 0; rank < 8; ++rank)
      for (int file = 0; file < files_per_rank; ++file) bytes += size_of(rank, file, dataset);
    return bytes;
  }

  using Lines = std::vector<std::string>;

  JobBed bed_;
  std::size_t seen_ = 0;
};

TEST_F(SessionLog, TheCourseOfAJobThatLosesANode) {
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
  });
  const std::vector<Json> first = news();
  EXPECT_EQ(brief(first), Lines({"START", "CHECKPOINT_START 1", "WRITE> 1", "ENCODE> 1",
                                 "CHECKPOINT> 1", "CHECKPOINT_END 1", "CHECKPOINT_START 2",
                                 "WRITE> 2", "ENCODE> 2", "CHECKPOINT> 2", "CHECKPOINT_END 2",
                                 "FLUSH_START 2", "FLUSH_SUCCESS 2", "FLUSH_SYNC> 2"}));
  const auto is_end = [](const Json& line) { return line.value("event", "") == "CHECKPOINT_END"; };
  const Json& made = *std::find_if(first.begin(), first.end(), is_end);
  EXPECT_EQ(made["to"], bed_.settings.stores[0].path);
  EXPECT_EQ(made["scheme"], "XOR");
  EXPECT_EQ(made["set_size"], 4);
  const Json flushed = the("FLUSH_SYNC", first);
  EXPECT_EQ(flushed["to"], bed_.settings.prefix);
  EXPECT_EQ(flushed["files"], 8 * files_per_rank);
  EXPECT_EQ(flushed["bytes"], bytes_of_dataset(2));
  EXPECT_EQ(flushed["name"], "ckpt.2");
  EXPECT_EQ(the("START", first)["note"], "8 ranks on 4 nodes");
  EXPECT_EQ(the("START", first)["ranks"], 8);

  bed_.lose("n1");
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
  const std::vector<Json> second = news();
  EXPECT_EQ(brief(second), Lines({"START", "REBUILD_START 2", "REBUILD_SUCCESS 2",
                                  "RESTART_START 2", "RESTART_SUCCESS 2"}));
  EXPECT_EQ(the("REBUILD_START", second)["name"], "ckpt.2");
  EXPECT_FALSE(the("REBUILD_START", second).contains("seconds"));
  EXPECT_NE(the("REBUILD_SUCCESS", second)["note"].get<std::string>().find("rank 2 (n1)"),
            std::string::npos);
}

/// The caches keep it until it is copied, also where a newer checkpoint is there.
TEST_F(SessionLog, ACheckpointThatIsAnOutputTooIsLoggedAsBoth) {
  bed_.run(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    for (const std::uint32_t flags : {flag_checkpoint, flag_checkpoint | flag_output}) {
      ASSERT_TRUE(rank.session->start_output(fmt::format("with {}", flags), flags));
      ASSERT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
    }
  });
  std::vector<bool> are_outputs;
  for (const Json& line : news())
    if (line.value("event", "") == "CHECKPOINT_END")
      are_outputs.push_back(line.value("output", false));
  EXPECT_EQ(are_outputs, std::vector<bool>({false, true}));
}

/// That is known only once all has been read.
TEST_F(SessionLog, ADamagedFileIsARebuildToo) {
  bed_.write(four_nodes(), {1});
  std::filesystem::resize_file(bed_.parts("n1", 1)[0] + "/files/ckpt.1/rank 2.0", 1);
  news();
  EXPECT_EQ(bed_.restart(four_nodes()), 1);
  EXPECT_EQ(brief(news()), Lines({"START", "REBUILD_START 1", "REBUILD_SUCCESS 1",
                                  "RESTART_START 1", "RESTART_SUCCESS 1"}));
}

/// Its beginning was logged, so its end is.
TEST_F(SessionLog, ARecordAloneThatIsLost) {
  bed_.write(four_nodes(), {1});
  std::filesystem::remove(bed_.parts("n1", 1)[0] + "/record");
  news();
  EXPECT_EQ(bed_.restart(four_nodes()), 1);
  EXPECT_EQ(brief(news()), Lines({"START", "REBUILD_START 1", "REBUILD_SUCCESS 1",
                                  "RESTART_START 1", "RESTART_SUCCESS 1"}));
}

TEST_F(SessionLog, WhatIsWholeIsNotRebuilt) {
  bed_.write(four_nodes(), {1});
  news();
  EXPECT_EQ(bed_.restart(four_nodes()), 1);
  EXPECT_EQ(brief(news()), Lines({"START", "RESTART_START 1", "RESTART_SUCCESS 1"}));
}

/// What rank 0 waits for takes a minute of the clock.
class MinuteBehind final : public WorkBehind {
 public:
  MinuteBehind(Background& background, Communicator& comm, std::atomic<std::int64_t>& later_s)
      : work_(background, comm), is_first_(comm.rank() == 0), later_s_(later_s) {}
  void post(std::uint64_t bytes, Task task) override { work_.post(bytes, std::move(task)); }
  bool wait(std::chrono::milliseconds at_most) override {
    if (is_first_) later_s_ = 60;
    return work_.wait(at_most);
  }

 private:
  WorkOfBackground work_;
  const bool is_first_;
  std::atomic<std::int64_t>& later_s_;
};

TEST_F(SessionLog, AStartThatWaitsForProtectionCountsAsBlocked) {
  auto clock = std::make_unique<LaterClock>();
  std::atomic<std::int64_t>& later_s = clock->later_s;
  bed_.clock = std::move(clock);
  bed_.settings.checkpoints[0].behind = true;
  bed_.settings.flush_interval = 10;
  bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.behind = std::make_unique<MinuteBehind>(
        *rank.background, *std::exchange(rank.second_comm, nullptr), later_s);
    ASSERT_TRUE(rank.init());
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
  });
  std::map<std::string, double> seconds;  // of the last of each
  for (const Json& line : news())
    if (line.contains("seconds"))
      seconds[line.value("event", line.value("transfer", ""))] = line["seconds"].get<double>();
  EXPECT_GE(seconds.at("CHECKPOINT_END"), 60);
  EXPECT_LT(seconds.at("COMPUTE_END"), 60);
  EXPECT_LT(seconds.at("WRITE"), 60);
}

/// The threads are held back until a rank sleeps in its second wait. Each sleep takes a minute.
TEST_F(SessionLog, HowLongCairnWaitHasWaitedForProtection) {
  auto owned_clock = std::make_unique<LaterClock>();
  LaterClock& clock = *owned_clock;
  bed_.clock = std::move(owned_clock);
  bed_.settings.checkpoints[0].behind = true;
  const auto gate = clock.gate.get_future().share();
  std::vector<Json> in_vain;
  std::vector<Json> well;
  bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    ASSERT_TRUE(rank.init());
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    rank.background->post(1 << 20, [gate] { gate.wait(); });
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
    clock.for_each_sleep_s = 60;
    const auto wait = [&](double seconds, std::vector<Json>& logged) {
      const auto reached = rank.session->safety().wait("ckpt.1", Safety::protected_, seconds);
      rank.comm.barrier();
      if (rank.number() == 0) logged = news();
      rank.comm.barrier();
      return reached.value_or(false);
    };
    EXPECT_FALSE(wait(3000, in_vain));
    if (rank.number() == 0) clock.opens_at_a_sleep = true;
    rank.comm.barrier();
    EXPECT_TRUE(wait(-1, well));
    clock.for_each_sleep_s = 0;
  });
  EXPECT_GE(seconds_of("PROTECT_WAIT", in_vain), 60);
  EXPECT_GE(seconds_of("PROTECT_WAIT", well), 60);
}

/// The ranks lose each other behind the program, and the program makes parity for a minute.
TEST_F(SessionLog, WhatAProgramProtectsItselfCountsAsWaiting) {
  auto clock = std::make_unique<LaterClock>();
  std::atomic<std::int64_t>& later_s = clock->later_s;
  bed_.clock = std::move(clock);
  bed_.settings.checkpoints[0].behind = true;
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    const auto at_parity = [&rank](const std::function<void()>& then) {
      rank.hook = [&rank, then](const FileOperation& operation) -> Status {
        const bool is_here = operation.path.find("/parity.") != std::string_view::npos;
        if (is_here && operation.name == "create") then();
        return {};
      };
    };
    if (rank.number() == 0) at_parity(rank.break_behind);
    rank.expect_written(1);
    if (rank.number() == 0) at_parity([&] { later_s = 60; });
    EXPECT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
  });
  EXPECT_GE(the("PROTECT_WAIT", news()).at("seconds"), 60);
}

/// For `cairn run --hung-after`.
TEST_F(SessionLog, ACallThatChangesNothingIsASignOfLife) {
  auto clock = std::make_unique<LaterClock>();
  std::atomic<std::int64_t>& later_s = clock->later_s;
  bed_.clock = std::move(clock);
  std::size_t silent = 0;
  const auto expect_call = [&](JobRank& rank, const std::function<void()>& call) {
    if (rank.number() == 0) silent = (news(), later_s += 60, news().size());
    rank.comm.barrier();
    call();
    if (rank.number() == 0) {
      EXPECT_EQ(the("CALL", news())["host"], "n0");
    }
    rank.comm.barrier();
  };
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    expect_call(rank, [&] { EXPECT_TRUE(rank.session->schedule().need_checkpoint()); });
    EXPECT_TRUE(rank.session->start_checkpoint());
    expect_call(rank,
                [&] { EXPECT_TRUE(rank.session->route_file(rank.settings.prefix + "/file")); });
    EXPECT_FALSE(rank.session->complete_checkpoint(true));
  });
  EXPECT_EQ(silent, 0U);
}

TEST_F(SessionLog, FailuresAreReportedWithTheirReason) {
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    EXPECT_TRUE(rank.session->start_output("bad", flag_checkpoint));
    EXPECT_FALSE(rank.session->complete_output(rank.number() != 3));
  });
  const std::vector<Json> first = news();
  EXPECT_EQ(brief(first).back(), "CHECKPOINT_END 3");
  EXPECT_NE(first[first.size() - 2]["note"].get<std::string>().find("rank 3"), std::string::npos);

  for (const std::string name : {"n0", "n1"}) bed_.lose(name);
  const std::string damaged = bed_.settings.prefix + "/ckpt.2/rank 5.0";
  std::filesystem::resize_file(damaged, 1);
  bed_.run_well(four_nodes(),
                [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart().value()); });
  const std::vector<Json> second = news();
  EXPECT_EQ(brief(second), Lines({"START", "REBUILD_START 2", "REBUILD_FAIL 2", "FETCH_START 2",
                                  "FETCH_FAIL 2", "FRESH_START"}));
  EXPECT_NE(the("FETCH_FAIL", second)["note"].get<std::string>().find(damaged), std::string::npos);
}

TEST_F(SessionLog, WhatIsCopiedForAnotherNumberOfRanks) {
  bed_.settings.elastic = true;
  bed_.write(four_nodes(), {1});
  news();
  bed_.run_well({"n0", "n1", "n2", "n3"}, [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
    EXPECT_TRUE(rank.session->start_restart());
  });
  const std::vector<Json> lines = news();
  EXPECT_EQ(brief(lines), Lines({"START", "FLUSH_START 1", "FLUSH_SUCCESS 1", "FLUSH_SYNC> 1",
                                 "RESTART_START 1"}));
  const Json copied = the("FLUSH_SYNC", lines);
  EXPECT_EQ(copied["from"], bed_.settings.stores[0].path);
  EXPECT_EQ(copied["to"], bed_.settings.prefix);
  EXPECT_EQ(copied["files"], 8 * files_per_rank);
  EXPECT_EQ(copied["bytes"], bytes_of_dataset(1));
  EXPECT_GT(copied["rate"], 0);
}

/// How long all of it has taken is unknown.
TEST_F(SessionLog, AFlushThatAnEarlierRunHasBegun) {
  EXPECT_FALSE(bed_.run(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    rank.hook = [](const FileOperation& operation) -> Status {
      if (is_done_marker(operation, 0)) throw Crash();
      return {};
    };
    (void)rank.write(2);
  }));
  news();
  bed_.run_well(four_nodes(), [](JobRank&) {});
  const std::vector<Json> lines = news();
  EXPECT_EQ(brief(lines), Lines({"START", "FLUSH_SUCCESS 2", "FLUSH_SYNC> 2"}));
  const Json copied = the("FLUSH_SYNC", lines);
  EXPECT_EQ(copied["bytes"], bytes_of_dataset(2));
  EXPECT_FALSE(copied.contains("rate"));
}

TEST_F(SessionLog, FetchedAndHalted) {
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
  });
  for (const std::string name : {"n0", "n1", "n2", "n3"}) bed_.lose(name);
  news();
  bed_.settings.end_time_s = 1;
  bed_.settings.halt_seconds = 1;
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
  const std::vector<Json> lines = news();
  EXPECT_EQ(brief(lines), Lines({"START", "HALT", "FETCH_START 2", "FETCH_SUCCESS 2", "FETCH> 2",
                                 "RESTART_START 2", "RESTART_SUCCESS 2"}));
  EXPECT_EQ(the("HALT", lines)["note"].get<std::string>().rfind("TIME_LIMIT", 0), 0U);
}

TEST_F(SessionLog, AFetchHasABeginningInTheLogWhateverWentBefore) {
  bed_.write(four_nodes(), {1});
  news();
  bed_.settings.global_restart = bed_.settings.fetch_bypass = true;
  bed_.run_well(four_nodes(),
                [](JobRank& rank) { EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1"); });
  EXPECT_EQ(brief(news()), Lines({"START", "FLUSH_START 1", "FLUSH_SUCCESS 1", "FLUSH_SYNC> 1",
                                  "FETCH_START 1", "FETCH_SUCCESS 1", "FETCH> 1"}));
}

/// A program may write thousands.
TEST_F(SessionLog, OnlyTheFirstCheckpointOfARunIsReportedOnALine) {
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
  });
  const std::string said = bed_.log_text();
  const std::size_t first = said.find("from Start to Complete");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(first, said.rfind("from Start to Complete")) << said;
}

/// By which job control distinguishes a program that stopped from one that came to its end.
TEST_F(SessionLog, ThatTheProgramIsToExitIsLoggedOnceAndOnlyThen) {
  const auto times = [](const std::vector<Json>& lines) {
    return std::count_if(lines.begin(), lines.end(),
                         [](const Json& line) { return line.value("event", "") == "SHOULD_EXIT"; });
  };
  bed_.run_well(four_nodes(),
                [](JobRank& rank) { EXPECT_FALSE(*rank.session->schedule().should_exit()); });
  EXPECT_EQ(times(news()), 0);
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_FALSE(*rank.session->schedule().need_checkpoint());
    rank.comm.barrier();
    if (rank.number() == 0) {
      const auto files = make_posix_files();
      const auto clock = make_system_clock();
      ASSERT_TRUE(HaltFile(*files, *clock, {bed_.settings.prefix}).update([](HaltRecord& asked) {
        asked.reason = halt_reason::job_halted;
      }));
    }
    rank.comm.barrier();
    EXPECT_FALSE(*rank.session->schedule().should_exit());
  });
  EXPECT_EQ(times(news()), 0) << "its last checkpoint comes first";
  std::filesystem::remove(PrefixFolder{bed_.settings.prefix}.job().halt());
  bed_.settings.end_time_s = 1;
  bed_.settings.halt_seconds = 1;
  bed_.run_well(four_nodes(),
                [](JobRank& rank) { EXPECT_TRUE(*rank.session->schedule().need_checkpoint()); });
  EXPECT_EQ(times(news()), 0) << "it did not ask";
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1, flag_output);
    EXPECT_FALSE(*rank.session->schedule().may_end_here());
  });
  EXPECT_EQ(times(news()), 0) << "it continues after an output";
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(*rank.session->schedule().may_end_here());
    rank.session->schedule().log_exit();
  });
  EXPECT_EQ(times(news()), 1) << "it is ended";
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(*rank.session->schedule().should_exit());
    EXPECT_TRUE(*rank.session->schedule().should_exit());
  });
  EXPECT_EQ(times(news()), 1);
}

}  // namespace
}  // namespace cairn
