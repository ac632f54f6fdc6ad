// A flush as a plan on disk. Any process that has the files can execute it: without messages, in
// any order, and again after a crash (docs/format/prefix.md,
// docs/adr/0014-the-flush-is-a-plan-on-disk.md).
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
  /// The part is on the file system of the prefix directory, checked and durable: hard links to its
  /// files are enough.
  bool beside = false;
};

/// The markers in the plan's folder that show which parts are done. They are empty files, one for
/// each node of a binary tree over the ranks. The marker of a leaf means that this rank's files are
/// durable under their staged names; that of an inner node means that all leaves below it have one.
///
/// A process that has made a marker checks for that of its sibling, and if it exists, makes that of
/// their parent. Of two siblings, at least one is checked when both exist. So one process reaches
/// the root after the last part is done, and no process checks more than log2(ranks) markers of
/// others. Making a marker twice is harmless, and so is the loss of one in a power failure: its
/// part is done again.
class DoneMarkers {
 public:
  /// `folder`: the folder of the plan.
  DoneMarkers(Files& files, const std::string& folder, std::uint32_t ranks);

  Status mark(int rank);
  Result<bool> is_done(int rank);
  /// Called by a process that has done the part of `rank`, or found it done. True if all parts are
  /// done.
  Result<bool> climb(int rank);
  /// True if the root has its marker: all parts are done.
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
enum class Way {
  copy,
  link,  ///< hard links to files on the same file system; a copy if that fails
};

/// Local. Does one rank's part of the plan in the folder `plan`, of this epoch: makes its files
/// durable under their staged names beside their places, then makes its marker. `cached`: one path
/// for each file of the record. Ignores the results of earlier attempts.
Status do_part(const Site& site, const std::string& plan, const RankRecord& record,
               const std::vector<std::string>& cached, Way way);

/// Local. Gives the files of one rank of a published dataset their own names, if they do not have
/// them yet; then removes its marker.
Status settle_rank(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Local. Removes the staged files of one rank of an unpublished dataset. Also called before
/// staging again: a staged file may be a hard link to its source, and writing to it would change
/// the source.
Status unstage_rank(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Local. Removes one rank's part of a plan that was withdrawn or incomplete: its staged files, and
/// its markers in the folder `plan`.
Status remove_part(Files& files, const PrefixFolder& folder, const std::string& plan,
                   const RankRecord& record);

/// Local. Does a part of the plan in the folder of this epoch, unless it is done. True if all parts
/// are done.
Result<bool> carry_on(const Site& site, const DatasetRecord& plan, const CachedPart& part);

/// Local. Checks the parts whose records are in manifest `number`. True if all parts of the plan
/// are done. corrupt if staged files of a done part are missing.
Result<bool> look_after(const Site& site, const DatasetRecord& plan, std::uint32_t number);

}  // namespace cairn
