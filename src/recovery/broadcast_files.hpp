// Files that one rank has written and every rank reads at a restart: one copy for each node.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "records/rank_record.hpp"
#include "topology/placement.hpp"

namespace cairn {

/// True if one of the shell patterns (fnmatch; * also stands for /) fits the name.
bool matches_any(const std::vector<std::string>& patterns, const std::string& name);

class BroadcastFiles {
 public:
  /// What is passed by reference must outlive this.
  BroadcastFiles(Files& files, const Placement& placement) : files_(files), placement_(placement) {}

  /// Collective. Every file of a rank's record whose name fits one of `patterns` is read once, each
  /// block compared with its checksum, and goes down a tree of nodes into `folder`, which is one
  /// for each node, is made anew, and has a copy of it from then on, with its mode and times. Of
  /// files of one name that of the lowest rank. `paths`: where this rank's files are.
  /// Errors are agreed: corrupt, io, no_space; there are no copies then.
  Status place(Communicator& comm, const std::vector<std::string>& patterns, const RankRecord& mine,
               const std::vector<std::string>& paths, const std::string& folder);

  /// Local. The copy on this node of the file that is called `name`.
  std::optional<std::string> find(const std::string& name) const;

  /// Local. The copies go, with the folder; rank `rank` does its part of it.
  Status remove(int rank);

 private:
  struct Announced {
    FileEntry entry;
    int owner = 0;
  };
  std::vector<Announced> announce(Communicator& comm, const std::vector<FileEntry>& mine) const;
  Status copy(Communicator& comm, const Announced& file, const RankRecord& mine,
              const std::vector<std::string>& paths);
  Status create(const std::string& name, std::unique_ptr<File>& out);
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }

  Files& files_;
  const Placement& placement_;
  std::vector<int> first_ranks_;  ///< of each node
  std::string folder_;            ///< empty: there are no copies
  std::map<std::string, std::string> copies_;
};

}  // namespace cairn
