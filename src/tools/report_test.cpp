#include "tools/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace cairn {
namespace {

const Error busy{Code::busy, "another job owns it", -1};
const Error broken{Code::io, "cannot read a file", -1};
constexpr ErrorExit try_again{Code::busy, exit_try_again};

class PrintReport : public testing::Test {
 protected:
  int print(Result<Report> report, bool as_json) {
    out_.str("");
    logged_.clear();
    const Log log([this](Severity, const std::string& text) { logged_.push_back(text); });
    return print_report(std::move(report), as_json, out_, log, try_again);
  }
  int exit_code_of(int of_report, std::vector<Error> failures) {
    Report report;
    report.exit_code = of_report;
    report.failures = std::move(failures);
    return print(report, false);
  }
  nlohmann::json json() const { return nlohmann::json::parse(out_.str()); }

  std::ostringstream out_;
  std::vector<std::string> logged_;
};

TEST_F(PrintReport, WithoutAReportJsonHasTheErrorAndTheTextNothing) {
  EXPECT_EQ(print(tl::unexpected(broken), true), exit_failure);
  EXPECT_EQ(json(), nlohmann::json({{"errors", {broken.text}}}));
  EXPECT_EQ(logged_, std::vector{broken.text});
  EXPECT_EQ(print(tl::unexpected(broken), false), exit_failure);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(logged_, std::vector{broken.text});
}

TEST_F(PrintReport, JsonHasTheErrorsBesideWhatWasDone) {
  Report report;
  report.facts = {{"done", {"a"}}};
  report.failures = {broken, busy};
  EXPECT_EQ(print(report, true), exit_failure);
  EXPECT_EQ(json(), nlohmann::json({{"done", {"a"}}, {"errors", {broken.text, busy.text}}}));
  report.datasets_key = "datasets";
  report.datasets.resize(1);
  EXPECT_EQ(print(report, true), exit_failure);
  EXPECT_EQ(json().at("errors").size(), 2U);
  EXPECT_EQ(json().at("datasets").size(), 1U);
}

TEST_F(PrintReport, AReportWithoutErrorsHasNone) {
  Report report;
  report.facts = {{"done", {"a"}}};
  EXPECT_EQ(print(report, true), exit_ok);
  EXPECT_EQ(json(), nlohmann::json({{"done", {"a"}}}));
}

TEST_F(PrintReport, TheWorstOutcomeIsTheExitCode) {
  EXPECT_EQ(exit_code_of(exit_ok, {}), exit_ok);
  EXPECT_EQ(exit_code_of(exit_ok, {busy}), exit_try_again);
  EXPECT_EQ(exit_code_of(exit_ok, {busy, broken}), exit_failure);
  EXPECT_EQ(exit_code_of(exit_ok, {broken, busy}), exit_failure) << "whichever came first";
  EXPECT_EQ(exit_code_of(exit_failure, {busy}), exit_failure);
  EXPECT_EQ(exit_code_of(exit_beyond_repair, {broken}), exit_beyond_repair);
  EXPECT_EQ(exit_code_of(exit_damaged, {broken}), exit_damaged);
}

TEST_F(PrintReport, AReportThatCannotBePrintedIsAFailure) {
  for (const auto& [before, after] :
       {std::pair{exit_ok, exit_failure}, {exit_damaged, exit_damaged}}) {
    out_.setstate(std::ios::badbit);
    EXPECT_EQ(exit_code_of(before, {}), after);
  }
}

}  // namespace
}  // namespace cairn
