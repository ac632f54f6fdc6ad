// The test bed of whole jobs: ranks are threads, nodes are directories, files are real.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/team.hpp"
#include "config/sources.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "support/faults.hpp"
#include "support/file_contents.hpp"
#include "support/job_rank.hpp"
#include "support/log_capture.hpp"
#include "support/test_clocks.hpp"

namespace cairn {

using Names = std::vector<std::string>;

/// The node of every rank.
using Nodes = std::vector<std::string>;

inline Nodes four_nodes() { return {"n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3"}; }

/// The same ranks, with a spare in place of a node.
Nodes replaced(Nodes nodes, const std::string& node, const std::string& spare);

/// The storage of all nodes, and the runs of a job on them.
class JobBed {
 public:
  using RankMain = std::function<void(JobRank&)>;

  explicit JobBed(const std::string& base = memory_base());

  // --- runs ---

  Settings settings;  ///< of the next run, but for the name of the node
  std::unique_ptr<Clock> clock = make_system_clock();

  /// One run. Each rank gets a JobRank that it has to initialise. False if a Crash ended the run.
  bool run(const Nodes& nodes, const RankMain& rank_main);

  /// A run whose ranks initialise without an error, then do `rank_main`.
  void run_well(const Nodes& nodes, const RankMain& rank_main);

  /// A run that writes these datasets.
  void write(const Nodes& nodes, const std::vector<int>& datasets);

  /// A run with protection behind the program that dies when all ranks have written this dataset,
  /// and none has protected it.
  void die_exposed(const Nodes& nodes, int dataset);

  /// A run that restarts, then does `more`. Returns the dataset, the same on all ranks, or 0.
  int restart(
      const Nodes& nodes, const RankMain& more = [](JobRank&) {});

  /// A run whose ranks do `prepare`, then initialise without an error. Returns what all of them
  /// return from `rank_main`.
  int agreed(
      const Nodes& nodes, const std::function<int(JobRank&)>& rank_main,
      const RankMain& prepare = [](JobRank&) {});

  // --- what nodes have ---

  /// The directory of a node's storage; of all nodes for "".
  std::string node(const std::string& name) const { return folder_ / ("nodes/" + name); }
  /// The job's directory on a node, even if it does not exist there: it has the name of the job's
  /// directory that was last used on any node.
  std::string job_folder(const std::string& name) const;
  /// The ranks' directories of dataset `number` on a node; 0: of all datasets.
  std::vector<std::string> parts(const std::string& name, int number = 0) const;
  void lose(const std::string& name) { std::filesystem::remove_all(node(name)); }

  /// Keeps the present state of a node, or of all nodes (""), and the times of its files.
  void save(const std::string& as, const std::string& name = {}) { copy(node(name), folder_ / as); }
  void bring_back(const std::string& as, const std::string& name = {}) {
    copy(folder_ / as, node(name));
  }
  /// The directory of one node in the saved state of all.
  std::string saved(const std::string& as, const std::string& name) const {
    return folder_ / (as + "/" + name);
  }

  // --- what is around a run ---

  /// What a command on a node finds: the settings of the job.
  ProcessFacts process_on(const std::string& node) const;

  /// What the last run has logged.
  const std::string& log_text() const { return logged_.text(); }
  bool logs(const std::string& words) const { return logged_.has(words); }
  /// Of that name, in the event log of the job.
  int logged_events(const std::string& name) const;
  Log log() { return logged_.log(); }

 private:
  static void copy(const std::string& from, const std::string& to);

  TemporaryFolder folder_;
  LogCapture logged_;
};

/// A job with a prefix directory, to which it copies every second checkpoint.
class PrefixJobBed : public JobBed {
 public:
  PrefixJobBed();

  void lose_all_nodes();

  /// Checkpoint 4 is unprotected, and its flush dies; then n3 is lost, which had done its part.
  void lose_node_that_has_flushed();

  /// A run that writes these datasets and ends without an error.
  void write_and_finalize(const std::vector<int>& datasets, std::uint32_t flags = flag_checkpoint);

  /// A file of the program in the prefix directory.
  std::string file(int dataset, int rank, int number = 0) const;
  void expect_own_files(int dataset) const;

  /// The names of the datasets in the prefix directory, newest first.
  Names listed() const;
};

/// The file by which a rank shows that it has done its part of a flush is about to be made.
bool is_done_marker(const FileOperation& operation, int rank);

}  // namespace cairn
