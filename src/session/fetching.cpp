#include "session/fetching.hpp"

#include "prefix/fetch.hpp"
#include "recovery/commit.hpp"

namespace cairn {

Status Fetching::take(Communicator& comm, const DatasetRecord& candidate, RestartStep step,
                      bool is_begun) {
  if (!is_begun) run_.events.happened("FETCH_START", candidate.info);
  const std::int64_t from_us = run_.clock.steady_us();
  const bool to_cache = step == RestartStep::fetch;
  Status taken = to_cache ? fetch(comm, candidate) : check_in_place(comm, candidate);
  if (!taken && to_cache && taken.error().code == Code::no_space) {
    run_.shared_log.warning("{} is not copied to the cache: {}", candidate.label(),
                            taken.error().text);
    return taken;
  }
  log_end(candidate, taken, step, run_.seconds_since(from_us));
  if (taken) return taken;
  note_damage(candidate.info.uuid, taken);
  run_.shared_log.warning("{} in {} cannot be used: {}", candidate.label(), run_.settings.prefix,
                          taken.error().text);
  return taken;
}

void Fetching::note_damage(const Uuid& dataset, const Status& taken) const {
  if (!taken && is_damage(taken.error().code))
    prefix_.book().note_failed(prefix_.owner().site().keeper, dataset, taken.error().text);
}

void Fetching::log_end(const DatasetRecord& dataset, const Status& taken, RestartStep step,
                       double seconds) {
  run_.events.happened(taken ? "FETCH_SUCCESS" : "FETCH_FAIL", dataset.info, seconds,
                       taken ? "" : taken.error().text);
  if (!taken) return;
  const std::string& store = run_.levels[choose_level(run_.levels, dataset.info)].settings.store;
  run_.events.moved("FETCH", run_.settings.prefix,
                    step == RestartStep::fetch ? store : run_.settings.prefix, dataset.info,
                    seconds, dataset.bytes, dataset.files);
}

Status Fetching::check_in_place(Communicator& comm, const DatasetRecord& candidate) {
  CAIRN_ASSIGN(const std::vector<RankRecord> records,
               cairn::check_in_place(comm, prefix_.owner().site(), candidate));
  CachedDataset dataset;
  files_.learn_names(comm, candidate.info, records);
  if (run_.is_written_by_as_many(candidate.info)) dataset.record = records.at(0);
  dataset.info = candidate.info;
  dataset.place = CachedDataset::Place::prefix;
  dataset.there = PrefixState::settled;
  dataset.checked = true;
  prefix_.book().note_fetched(prefix_.owner().site().keeper, dataset.info.uuid);
  run_.shared_log.info("{} is read directly in {}", dataset.label(), run_.settings.prefix);
  cached_.insert(std::move(dataset));
  return {};
}

Status Fetching::fetch(Communicator& comm, const DatasetRecord& candidate) {
  CachedDataset dataset;
  dataset.info = candidate.info;
  const Level& level = run_.levels[choose_level(run_.levels, dataset.info)];
  dataset.store = level.store;
  dataset.there = PrefixState::settled;
  dataset.checked = true;
  Store& store = run_.stores[dataset.store];
  dataset.parts = {cached_.own_folder(dataset)};
  CAIRN_ASSIGN(const RankRecord flushed, fetch_aside(comm, candidate, store));
  if (Status taken = take_fetched(comm, flushed, level, dataset); !taken) {
    cached_.remove(comm, dataset);
    // The copy matched its checksums: what has failed since says nothing against the original.
    if (is_damage(taken.error().code)) taken.error().code = Code::io;
    return taken;
  }
  prefix_.book().note_fetched(prefix_.owner().site().keeper, dataset.info.uuid);
  run_.shared_log.info("{} was fetched from {}", dataset.label(), run_.settings.prefix);
  cached_.insert(std::move(dataset));
  return {};
}

/// What the caches have left of the dataset, which another run with other nodes may find whole,
/// stays until the copy is known to be good; unless there is no room for both.
Result<RankRecord> Fetching::fetch_aside(Communicator& comm, const DatasetRecord& candidate,
                                         Store& store) {
  const RankFolder aside = store.fetch_folder(run_.rank);
  const auto fetch = [&]() -> Result<RankRecord> {
    CAIRN_TRY(agree(comm, make_folders(run_.files, aside.files(), 0700)));
    return cairn::fetch(comm, prefix_.owner().site(), candidate, aside);
  };
  auto fetched = fetch();
  const Uuid& uuid = candidate.info.uuid;
  if (!fetched && fetched.error().code == Code::no_space && cached_.find(uuid) != nullptr) {
    forget_remains_of(comm, uuid);
    cached_.wait_for_removal(comm);  // the room is there on all nodes
    fetched = fetch();
  }
  if (!fetched) run_.warn_if(remove_all(run_.files, aside.path));
  return fetched;
}

Status Fetching::take_fetched(Communicator& comm, const RankRecord& flushed, const Level& level,
                              CachedDataset& dataset) {
  Store& store = run_.stores[dataset.store];
  forget_remains_of(comm, dataset.info.uuid);
  // Who is the last to remove his part of it removes the dataset's folder.
  cached_.wait_for_removal(comm);
  CAIRN_TRY(agree(comm, store.take_fetched(dataset.info, run_.rank)));
  RankRecord record = flushed;
  record.encoding = level.encoding;
  record.encoding.generation = later_generation(comm, run_.clock, flushed.encoding.generation);
  // The new checksums are taken of what lies in the cache now; the old ones must hold for it too.
  CAIRN_TRY(protect_and_commit(comm, run_.files, store, dataset.parts[0], record, run_.settings,
                               &flushed));
  dataset.record = std::move(record);
  dataset.survives_nodes = survives_nodes(level, store);
  return {};
}

/// What is left in the caches of a dataset that has come from elsewhere.
void Fetching::forget_remains_of(Communicator& comm, const Uuid& uuid) {
  cached_.remove_if(comm, [&](const CachedDataset& dataset) { return dataset.info.uuid == uuid; });
}

}  // namespace cairn
