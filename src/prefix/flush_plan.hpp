// A flush as a plan on disk: any process that has the files can carry it out, alone, in any order,
// and again after a crash (docs/format/prefix.md, docs/adr/0014-the-flush-is-a-plan-on-disk.md).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "prefix/site.hpp"
#include "records/rank_folder.hpp"

namespace cairn {

/// One rank's part of a dataset in a cache that is visible to this process.
struct CachedPart {
  Uuid dataset;
  int rank = 0;  ///< the rank that wrote it
  RankFolder folder;
  /// It is on the file system of the prefix directory, durable, and every block was just checked:
  /// links to its files are enough.
  bool beside = false;
};

/// Which parts are done, by markers in the plan's directory. Markers are empty files, one for each
/// node of a binary tree over the ranks. The marker of a leaf says that this rank's files are
/// durable under their staged names. The marker of an inner node says that all its leaves have one.
///
/// A process that has made a marker looks for the sibling, and makes the parent's marker if the
/// sibling has one. Of two siblings, the later one sees both. So the process that does the last
/// part reaches the root, and knows that all parts are done, though no process has looked at more
/// than log2(ranks) markers of others. Making a marker twice does no harm. If a power failure loses
/// one, its part is done again.
class DoneMarkers {
 public:
  /// `folder`: the folder of the plan.
  DoneMarkers(Files& files, const std::string& folder, std::uint32_t ranks);

  Status mark(int rank);
  Result<bool> is_done(int rank);
  /// Call it after the part of `rank` is done, or was found to be done. True if all parts are
  /// done.
  Result<bool> climb(int rank);
  /// The root has a marker.
  Result<bool> are_all_done();
  /// Removes the marker of `rank`, and those of the nodes above it whose first leaf it is.
  Status remove(int rank);

 private:
  using Node = std::pair<int, std::uint32_t>;  ///< level, 0 for leaves; number at this level

  std::string path_of(const Node& node) const;
  Status make(const Node& node);
  Result<bool> is_there(const Node& node);

  Files& files_;
  const std::string folder_;
  const std::uint32_t ranks_;
  std::set<Node> known_;  ///< markers that exist
};

/// How the files of a part get to their staged names.
enum class StageBy {
  copy,
  link,  ///< links to files on the same file system; a copy if links are impossible
};

/// Local. Does one rank's part of the plan in the directory `plan`, of this epoch: makes its files
/// durable under their staged names, and then its marker. `cached`: one path for each file of the
/// record. Starts over, whatever an earlier try left.
Status do_part(const Site& site, const std::string& plan, const RankRecord& record,
               const std::vector<std::string>& cached, StageBy how);

/// Local. Gives those files of one rank of a published dataset their own names that still have
/// staged ones, and then removes its marker. `left_over`: an earlier run has staged them, and other
/// processes may have written to them after that; they get modes and times of the record.
Status settle_rank(Files& files, const PrefixFolder& folder, const RankRecord& record,
                   bool left_over = false);

/// Local. Removes what one rank has staged of a dataset that was not published. Call it also before
/// staging again: a staged file may be a link to its source, and writing to it would destroy the
/// source.
Status unstage_rank(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Local. Removes one rank's part of a plan that was withdrawn, or was not complete: its staged
/// files, and its markers in the directory `plan`.
Status remove_part(Files& files, const PrefixFolder& folder, const std::string& plan,
                   const RankRecord& record);

/// Local. Does one part of a plan of this epoch, unless it is done already. True if all parts are
/// done.
Result<bool> carry_on(const Site& site, const DatasetRecord& plan, const CachedPart& part);

/// Local. Looks at the parts in manifest `number`, of all processes. True if all parts of the plan
/// are done. Fails with corrupt if staged files of a part with a marker are missing.
Result<bool> look_after(const Site& site, const DatasetRecord& plan, std::uint32_t number);

}  // namespace cairn
