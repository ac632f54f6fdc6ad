// What each rank of the simulated job does: the program that a user would write, and its checks.
#pragma once

#include "rank_process.hpp"
#include "run.hpp"

namespace cairn::sim {

class RankProgram {
 public:
  RankProgram(Run& run, int rank);
  /// All calls of the plan; throws Violation.
  void carry_out();

 private:
  void make_calls();
  bool init();
  void restart();
  /// One offer, opened and read. True when there is nothing more to try.
  bool try_restart(int& below);
  void read_back(int key);
  std::uint64_t faults_before(const DatasetPlan& dataset);
  void write(const DatasetPlan& dataset);
  bool write_files(const DatasetPlan& dataset);
  Status write_file(const DatasetPlan& dataset, const FileShape& file);
  /// Those before the dataset `next` of the run.
  void make_named_calls(std::size_t next);
  bool last_is_gone() const;
  void visit();
  void finalize();
  /// After a call that waits for it: the last dataset is protected now, or gone, or a fault has
  /// kept it as it was.
  void note_protection() { note_protection(run_.disturbed_since(0)); }
  void note_protection(bool disturbed);
  void compute(std::size_t dataset);
  void change_file();
  /// Violation if a dataset was lost behind the program, and this call returns success.
  bool may_report_late(std::string_view call, bool success);
  void check_error(std::string_view call, const Error& error) const;

  static Settings settings_of(const Run& run, int rank);

  Run& run_;
  World& world_;
  RankProcess process_;
  std::optional<std::uint64_t> faults_before_last_;  ///< before the last dataset was begun
  int last_written_ = 0;        ///< of which is not known yet whether it is protected; 0: none
  bool is_followed_ = false;    ///< another may have taken its place
  int lost_behind_ = 0;         ///< a dataset that is gone, and no call has said so; 0: none
  bool is_report_due_ = false;  ///< a call that failed may have had an error of its own
  std::string last_file_;       ///< which this rank has written; empty: none in the last dataset
  bool may_fail_ = true;        ///< operations on files
};

}  // namespace cairn::sim
