// Where the files of a restart are: those of this rank, those that any rank may read, and copies.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "prefix/known_names.hpp"
#include "recovery/broadcast_files.hpp"
#include "session/cached_datasets.hpp"
#include "session/routing.hpp"

namespace cairn {

/// Functions with a communicator are collective.
class RestartFiles {
 public:
  /// All must outlive this.
  RestartFiles(ThisRun& run, const CachedDatasets& cached, const Routing& routing)
      : run_(run), cached_(cached), routing_(routing), broadcast_(run.files, run.placement) {}

  /// Of a dataset that is read in the prefix directory, while each rank has its share of the
  /// records: SCR_Route_file is a call of one rank alone. What is read there lies where every rank
  /// can read it, so any rank may have any file.
  void learn_names(Communicator& comm, const DatasetInfo& dataset,
                   const std::vector<RankRecord>& records);
  void forget_names() { known_names_.clear(); }

  /// Copies the files that CAIRN_BROADCAST names to every node, until remove_broadcasts().
  Status place_broadcasts(Communicator& comm, const CachedDataset& dataset);
  void remove_broadcasts();
  /// A run that died in its restart has left some.
  void drop_old_broadcasts();

  /// Where the file is that the program calls `path`; nothing if this rank cannot have it.
  /// `is_open`: between Start and Complete_restart.
  std::optional<std::string> find(const CachedDataset& dataset, const std::string& path,
                                  bool is_open) const;
  /// As find() within a restart; else the error that says why not.
  Result<std::string> route(const CachedDataset& dataset, const std::string& path) const;

 private:
  std::optional<std::string> find_anybodys(const CachedDataset& dataset,
                                           const std::string& path) const;
  bool is_broadcast(const std::string& path) const;
  int first_on_node() const { return run_.placement.beside(run_.rank).front(); }

  ThisRun& run_;
  const CachedDatasets& cached_;
  const Routing& routing_;
  /// Of each dataset that is read where it is: the files that others have written.
  std::map<Uuid, KnownNames> known_names_;
  BroadcastFiles broadcast_;
};

}  // namespace cairn
