// What each rank of the simulated job does: the program that a user would write, and its checks.
#pragma once

#include "files/clock.hpp"
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
  void write(const DatasetPlan& dataset);
  bool write_files(const DatasetPlan& dataset);
  Status write_file(const DatasetPlan& dataset, const FileShape& file);
  /// Those before the dataset `next` of the run.
  void make_named_calls(std::size_t next);
  void visit();
  void finalize();
  void check_error(std::string_view call, const Error& error) const;

  Run& run_;
  World& world_;
  ScheduledCommunicator comm_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Files> memory_;
  std::unique_ptr<Files> files_;
  Settings settings_;
  HelperBackground& background_;
  Log log_;
  std::unique_ptr<Session> session_;
  bool may_fail_ = true;  ///< operations on files
};

}  // namespace cairn::sim
