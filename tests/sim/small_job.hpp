// A small job, to let its processes die at a call of one's choice: one rank on each of a few nodes
// writes the checkpoints "d1", "d2" and so on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cluster.hpp"
#include "program_files.hpp"
#include "rank_process.hpp"
#include "state_watch.hpp"

namespace cairn::sim {

struct SmallJob {
  /// `nodes`: those of the ranks, and then the spare ones. The settings have no store yet.
  static JobShape shape_of(std::uint64_t seed, const Nodes& nodes, int ranks);

  SmallJob(JobShape its_shape, bool print);

  /// What a rank does between Init and the end of its process.
  using Program = std::function<void(RankProcess&)>;
  /// `behind`, if there is one, carries the messages behind the program. After `ends_after` calls
  /// all processes end, unless that is 0. True if they have.
  bool run(const Program& program, Postboxes* behind = nullptr, std::uint64_t ends_after = 0);

  // Called by a rank. What fails is a Violation.

  /// From Start to Complete; before that `written` is called.
  void write(RankProcess& process, int key, const std::function<void()>& written = {}) const;
  /// The key of the dataset; 0: none is offered.
  int restart(RankProcess& process) const;
  static void finalize(RankProcess& process);
  static void require(const Status& status, std::string_view call);
  void check_content(Files& at, const std::string& path, int key, int rank,
                     const FileShape& file) const;

  // Called between runs, or while processes die.

  /// What the node holds is gone.
  void lose(const std::string& node) const;
  void lose_all_caches();
  void replace(const std::string& node, const std::string& spare);
  /// Of all nodes.
  void fail_power();

  Chance chance;
  Trace trace;
  const JobShape shape;
  Cluster cluster;
  std::shared_ptr<Volume> prefix;
  Scheduler scheduler;
  Seam seam;
  StateWatch watch;
  Nodes placement;
  ProgramFiles files{shape};

 private:
  void be_process(const Program& program, Postboxes& boxes, Postboxes* behind, int rank,
                  HelperBackground& background);
};

}  // namespace cairn::sim
