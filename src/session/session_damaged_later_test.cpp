// Outputs that an earlier run has left in the caches only, and that are damaged or cannot be read
// there when a later run copies them.
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// Output 1 could not be copied before the first run ended, but checkpoint 2 was.
class LeftOutput : public testing::Test {
 protected:
  void leave(Scheme scheme) {
    bed_.settings.log_json = true;
    bed_.settings.checkpoints[0].scheme = scheme;
    bed_.settings.stores[0].count = 9;
    bed_.settings.flush_async = false;
    bed_.hook = [](int, const FileOperation& operation) -> Status {
      const bool is_first = operation.path.find("/ckpt.1/") != std::string::npos;
      return is_first && stages(operation) ? fail(Code::no_space, "injected") : Status{};
    };
    bed_.run_async([&](JobRank& rank) {
      rank.expect_not_copied(1, flag_output);
      rank.expect_written(2);
      rank.expect_not_all_copied();
    });
    bed_.settings.flush_async = true;
    bed_.hook = nullptr;
  }
  std::string cached_file() const {
    return bed_.parts("n1", number_).front() + "/files/ckpt.1/rank 2.0";
  }

  SafetyBed bed_;
  int number_ = 1;  ///< of the dataset with the name ckpt.1 that is left
};

void expect_lost(const Status& told) {
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Code::lost) << told.error().text;
  EXPECT_NE(told.error().text.find("dataset 1 (ckpt.1) is lost"), std::string::npos)
      << told.error().text;
}

// --- whose files there has been written again ---

class DamagedOutput : public LeftOutput {
 protected:
  DamagedOutput() {
    leave(Scheme::single);
    flip_bit(cached_file());
  }
};

TEST_F(DamagedOutput, IsNotCalledSafeThoughItsNamesAreTaken) {
  const std::string newer = bed_.file(1, 2);
  std::filesystem::create_directories(folder_of(newer));
  std::ofstream(newer) << "by hand";
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(3, flag_output));
    finalize(rank);
  });
  EXPECT_FALSE(bed_.logs("move it away")) << bed_.log_text();
  EXPECT_EQ(read_all(newer), "by hand");
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
}

TEST_F(DamagedOutput, IsNotMissedOnceItIsWrittenAgain) {
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(1, flag_output));
    finalize(rank);
  });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.1", "ckpt.2"}));
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(4);
    finalize(rank);
  });
  EXPECT_TRUE(bed_.logs("is not missed")) << bed_.log_text();
  EXPECT_FALSE(bed_.logs("safe in the cache")) << bed_.log_text();
  EXPECT_EQ(bed_.logged_events("LOST"), 1) << "by the run before";
  EXPECT_TRUE(bed_.parts("n1", 1).empty()) << "its leftovers go with the next checkpoint";
  bed_.expect_own_files(1);
}

TEST_F(LeftOutput, IsMissedThoughAnOlderOneOfItsNameIsThere) {
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    finalize(rank);
  });
  number_ = 2;
  leave(Scheme::single);
  flip_bit(cached_file());
  bed_.run_async([&](JobRank& rank) {
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_NE(told.error().text.find("dataset 2 (ckpt.1) is lost"), std::string::npos)
        << told.error().text;
    finalize(rank);
  });
}

TEST_F(LeftOutput, ThatIsWholeStaysWhereItsNamesAreTaken) {
  leave(Scheme::single);
  const std::string newer = bed_.file(1, 2);
  std::filesystem::create_directories(folder_of(newer));
  std::ofstream(newer) << "by hand";
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(3);
    rank.expect_not_all_copied();
  });
  EXPECT_TRUE(bed_.logs("move it away")) << bed_.log_text();
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  std::filesystem::remove(newer);
  bed_.run_async([&](JobRank& rank) { finalize(rank); });
  bed_.expect_own_files(1);
}

// --- of which the device cannot read a file ---

class UnreadableOutput : public LeftOutput {
 protected:
  void begin(Scheme scheme, int error_number) {
    leave(scheme);
    bed_.hook = [this, error_number, bad = cached_file()](int, const FileOperation& operation) {
      if (operation.path != bad) return Status{};
      if (operation.name == "write") is_bad_ = false;
      const bool reads = operation.name == "read" || operation.name == "view_at";
      const bool fails = is_bad_ && reads;
      return fails ? Status(tl::unexpected(errno_error(error_number, "read", bad))) : Status{};
    };
  }

  std::atomic<bool> is_bad_ = true;  ///< until it is written anew
};

TEST_F(UnreadableOutput, IsRepairedAndCopied) {
  begin(Scheme::xor_, EIO);
  bed_.run_async([&](JobRank& rank) {
    expect_reached(rank, 1, Safety::flushed);
    finalize(rank);
  });
  EXPECT_TRUE(bed_.logs("were repaired")) << bed_.log_text();
  EXPECT_FALSE(bed_.logs("Cairn goes on trying")) << bed_.log_text();
  bed_.expect_own_files(1);
}

TEST_F(UnreadableOutput, IsLostWhereNoSchemeHasItAndHoldsNoOtherBack) {
  begin(Scheme::single, EIO);
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(3, flag_output));
    expect_reached(rank, 3, Safety::flushed);
    finalize(rank);
  });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.3", "ckpt.2"}));
}

/// That ends, and says nothing of the file.
TEST_F(UnreadableOutput, WaitsWhereTheProcessHasTooManyFiles) {
  begin(Scheme::single, EMFILE);
  bed_.run_async([&](JobRank& rank) {
    expect_error(rank, 1, Safety::flushed, 0.2, Code::not_copied);
    rank.comm.barrier();
    is_bad_ = false;
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  bed_.expect_own_files(1);
}

}  // namespace
}  // namespace cairn
