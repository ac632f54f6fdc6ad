// A flush as a plan on disk, which anybody can carry out who has the files: without peers, in any
// order, again after a crash (docs/format/prefix.md, docs/adr/0014-the-flush-is-a-plan-on-disk.md).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "prefix/site.hpp"
#include "records/rank_folder.hpp"

namespace cairn {

/// One rank's part of a dataset in a cache that this process sees.
struct CachedPart {
  Uuid dataset;
  int rank = 0;  ///< that wrote it
  RankFolder folder;
  /// On the file system of the prefix directory, every block of it just checked, and durable: a
  /// second name for its files will do.
  bool beside = false;
};

/// Who has done his part, as the markers in the plan's folder tell. They are empty files, one for
/// each node of a binary tree over the ranks: that of a leaf says that this rank's files are
/// durable under their staged names, that of a node above that all leaves below it have one.
///
/// Whoever has made one looks for that of its sibling, and makes that of their parent if it is
/// there. Of two siblings, one looks after both are there; so somebody gets to the root after the
/// last part is done, and knows it, though nobody has looked at more than log2(ranks) markers of
/// others. To make a marker twice does no harm, nor does one that a power failure takes: its part
/// is done again.
class DoneMarkers {
 public:
  /// `folder`: of the plan.
  DoneMarkers(Files& files, const std::string& folder, std::uint32_t ranks);

  Status mark(int rank);
  Result<bool> is_done(int rank);
  /// To be called after the part of `rank` is done, by whoever did it or finds it done. True if all
  /// parts are.
  Result<bool> climb(int rank);
  /// Whether somebody has come to the root.
  Result<bool> are_all_done();
  /// Removes what marks `rank`, and the nodes above it whose first leaf it is.
  Status remove(int rank);

 private:
  using Node = std::pair<int, std::uint32_t>;  ///< level, 0 for leaves; number at this level

  std::string path_of(const Node& node) const;
  Status make(const Node& node);
  Result<bool> is_there(const Node& node);

  Files& files_;
  const std::string folder_;
  const std::uint32_t ranks_;
  std::set<Node> known_;  ///< to be there
};

/// How the files of a part get to their staged names.
enum class Way {
  copy,
  link,  ///< a second name for files on the same file system; a copy where that cannot be made
};

/// Local. Does one rank's part of the plan that lies in `plan`, of this epoch: its files are
/// durable beside their places under their staged names, and then its marker says so. `cached`: one
/// path for each file of the record. Begins from nothing, whatever an earlier try left.
Status do_part(const Site& site, const std::string& plan, const RankRecord& record,
               const std::vector<std::string>& cached, Way way);

/// Local. Gives the files of one rank of a published dataset their own names, where they do not
/// have them yet; then its marker goes.
Status settle_rank(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Local. Removes what one rank has staged of a dataset that was not published. Also before it is
/// staged anew: it may be a second name of what it is to be made of, and to write over it would be
/// to write over that.
Status unstage_rank(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Local. Removes what there is of one rank's part of a plan that was withdrawn, or was none yet:
/// what was staged, and what marks it in `plan`, the folder.
Status remove_part(Files& files, const PrefixFolder& folder, const std::string& plan,
                   const RankRecord& record);

/// Local. Does a part of the plan in the folder of this epoch, unless it is done; true if all parts
/// are done.
Result<bool> carry_on(const Site& site, const DatasetRecord& plan, const CachedPart& part);

/// Local. Looks at the parts whose records are in manifest `number`, whoever did them; true if all
/// of the plan are done. corrupt if staged files of a part that was done are not there any more.
Result<bool> look_after(const Site& site, const DatasetRecord& plan, std::uint32_t number);

}  // namespace cairn
