#include "session/restart_files.hpp"

namespace cairn {

void RestartFiles::learn_names(Communicator& comm, const DatasetInfo& dataset,
                               const std::vector<RankRecord>& records) {
  known_names_[dataset.uuid] = KnownNames(comm, records);
}

Status RestartFiles::place_broadcasts(Communicator& comm, const CachedDataset& dataset) {
  if (run_.settings.broadcast.empty()) return {};
  return broadcast_.place(comm, run_.settings.broadcast, dataset.record, cached_.own_paths(dataset),
                          run_.stores[dataset.store].broadcast(first_on_node()));
}

void RestartFiles::remove_broadcasts() { run_.warn_if(broadcast_.remove(run_.rank)); }

void RestartFiles::drop_old_broadcasts() {
  for (Store& store : run_.stores) {
    const bool is_mine = store.shared() ? run_.rank == 0 : first_on_node() == run_.rank;
    if (is_mine) run_.warn_if(store.drop_broadcasts());
  }
}

std::optional<std::string> RestartFiles::find(const CachedDataset& dataset, const std::string& path,
                                              bool is_open) const {
  if (!run_.is_written_by_as_many(dataset.info)) return find_anybodys(dataset, path);
  auto name = routing_.find_by_name(dataset.record, path);
  // Before a file of this rank's that only ends like it, which may be another one.
  if (!name && dataset.in_prefix()) {
    if (const auto of_another = find_anybodys(dataset, path)) return of_another;
  } else if (!name && is_broadcast(path)) {
    const auto of_another = broadcast_.find(*routing_.relative_name(path));
    // What other ranks wrote into their caches is known from SCR_Start_restart on.
    if (of_another || !is_open) return of_another;
  }
  if (!name) name = routing_.find_by_base(dataset.record, path);
  if (!name) return std::nullopt;
  if (dataset.in_prefix()) return run_.settings.prefix + "/" + *name;
  return cached_.own_folder(dataset).file(*name);
}

bool RestartFiles::is_broadcast(const std::string& path) const {
  const auto name = routing_.relative_name(path);
  return name && matches_any(run_.settings.broadcast, *name);
}

/// Any rank reads any file. Nothing is known of a dataset that is only offered.
std::optional<std::string> RestartFiles::find_anybodys(const CachedDataset& dataset,
                                                       const std::string& path) const {
  const auto name = routing_.relative_name(path);
  const auto known = known_names_.find(dataset.info.uuid);
  if (!name || known == known_names_.end() || !known->second.has(*name)) return std::nullopt;
  return run_.settings.prefix + "/" + *name;
}

Result<std::string> RestartFiles::route(const CachedDataset& dataset,
                                        const std::string& path) const {
  const auto found = find(dataset, path, true);
  if (!found && (dataset.in_prefix() || !run_.is_written_by_as_many(dataset.info)))
    return fail(Code::not_found, "no rank wrote a file {} in {}", path, dataset.label());
  if (!found)
    return fail(Code::not_found,
                "rank {} wrote no file {} in {}, and from the cache a rank reads only its own "
                "files: name the file in CAIRN_BROADCAST, or set SCR_GLOBAL_RESTART=1",
                run_.rank, path, dataset.label());
  CAIRN_TRY(run_.files.info(*found));
  return *found;
}

}  // namespace cairn
