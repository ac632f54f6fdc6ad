// The text and the JSON of cairn rbio say the same.
#include "support/report_checks.hpp"
#include "tools/rbio/rbio_fixture.hpp"

namespace cairn {
namespace {

class RbioReportTest : public RbioCommandTest {
 protected:
  void expect_same_report(RbioCommand command, int exit_code) {
    command.json = false;
    EXPECT_EQ(run(command), exit_code) << logged();
    const std::string text = printed();
    command.json = true;
    EXPECT_EQ(run(command), exit_code) << logged();
    Json json = printed_json();
    take_errors(json, logged());
    expect_same(text, json);
  }
  void expect_same_report(Action action, const std::string& path, int exit_code) {
    RbioCommand command;
    command.action = action;
    command.path = path;
    command.ranks = true;
    expect_same_report(command, exit_code);
  }
};

TEST_F(RbioReportTest, OfAWholeSeriesSaysTheSameInTextAndJson) {
  expect_same_report(Action::list, series(), 0);
  expect_same_report(Action::verify, series(), 0);
  expect_same_report(Action::show, series() + "/step.9", 0);
  expect_same_report(Action::show, part(9, 1), 0);
}

TEST_F(RbioReportTest, OfAnEmptySeriesSaysTheSameInTextAndJson) {
  rbio::write_steps(*files_, folder_ / "empty", shape_, {});
  expect_same_report(Action::list, folder_ / "empty", 0);
  EXPECT_TRUE(prints("no step has been published yet"));
  expect_same_report(Action::verify, folder_ / "empty", 0);
  EXPECT_TRUE(prints("there is no step to verify"));
}

TEST_F(RbioReportTest, OfDamageSaysTheSameInTextAndJson) {
  flip_bit(part(9, 0), 100);
  flip_bit(part(5, 1), index_of(part(5, 1)).header.fields[0].offset);
  fs::remove(part(3, 1));
  expect_same_report(Action::list, series(), 1);
  expect_same_report(Action::verify, series(), 1);
  expect_same_report(Action::show, series() + "/step.9", 1);
  expect_same_report(Action::show, series() + "/step.3", 1);
}

TEST_F(RbioReportTest, OfAnUnpublishedStepSaysTheSameInTextAndJson) {
  const std::string work = series() + "/.rbio/attempt.2-1.11";
  fs::create_directories(work);
  std::ofstream(work + "/part.0.rbio") << "0123456789";
  fs::rename(series() + "/step.3", series() + "/.rbio/removed.3");
  expect_same_report(Action::list, series(), 0);
}

TEST_F(RbioReportTest, OfAnExtractedFieldSaysTheSameInTextAndJson) {
  RbioCommand command = extraction("momentum");
  command.force = true;
  expect_same_report(command, 0);
}

TEST_F(RbioReportTest, OfWhatIsNoSeriesHasOnlyTheError) {
  for (const Action action : {Action::list, Action::verify, Action::show}) {
    expect_same_report(action, folder_ / "gone", 1);
    EXPECT_EQ(printed_json()["errors"].size(), 1U) << printed();
  }
}

}  // namespace
}  // namespace cairn
