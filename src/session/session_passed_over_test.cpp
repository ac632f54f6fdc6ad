// A checkpoint that the program goes back to stays the current one, whatever was half done then.
#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// The files of the newer one cannot get their names before the program goes back to the older.
TEST(SessionPassedOver, ANewerCheckpointThatIsSettledLaterDoesNotBecomeCurrent) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.settings.stores[0].count = 2;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool names = operation.name == "rename" && operation.to.ends_with(".0") &&
                         operation.path.find("/.cairn.0") != std::string::npos;
      return names ? fail(Code::io, "injected") : Status{};
    };
    (void)rank.write(2);
    (void)rank.session->datasets().current("ckpt.1");
    (void)rank.session->finalize();
  });
  ASSERT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"})) << bed.log_text();
  for (int round = 0; round < 2; ++round) {
    bed.lose_all_nodes();
    EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
    bed.expect_own_files(2);
  }
}

}  // namespace
}  // namespace cairn
