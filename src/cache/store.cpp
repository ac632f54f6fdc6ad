#include "cache/store.hpp"

#include "cache/job_folder.hpp"
#include "cache/private_folder.hpp"

namespace cairn {
namespace {
constexpr std::uint32_t only_me = 0700;

/// False also if the directory does not exist.
Result<bool> is_empty_folder(Files& files, const std::string& path) {
  auto names = files.list(path);
  if (!names && names.error().code == Code::not_found) return false;
  CAIRN_ASSIGN(const std::vector<std::string> listed, std::move(names));
  return listed.empty();
}

Status remove_if_empty(Files& files, const std::string& folder) {
  CAIRN_ASSIGN(const bool empty, is_empty_folder(files, folder));
  if (!empty) return {};
  const Status removed = files.remove_folder(folder);
  if (removed) return {};
  // Between the two calls another rank may have removed it, or put something in it, as when a
  // dataset is moved here.
  CAIRN_ASSIGN(const bool still_empty, is_empty_folder(files, folder));
  return still_empty ? removed : Status{};
}

}  // namespace

Result<Store> Store::open(Files& files, const StoreSettings& store, const Settings& settings,
                          PrefixId id) {
  const std::string base = expand_node(store.path, settings.node_name);
  CAIRN_ASSIGN(std::string root, claim_private_folder(files, base, store.mkdir, settings.user,
                                                      job_folder_name(settings, id)));
  CAIRN_ASSIGN(const bool memory, files.is_memory(root));
  // The directories made just now, or by a run that died before it synced them.
  if (!memory)
    for (const std::string& above : {folder_of(root), base}) CAIRN_TRY(files.sync_folder(above));
  return Store(files, store, std::move(root), !memory);
}

Result<Store> Store::at(Files& files, const std::string& root) {
  CAIRN_ASSIGN(const bool memory, files.is_memory(root));
  return Store(files, {}, root, !memory);
}

std::string Store::dataset_folder(const DatasetInfo& dataset) const {
  return fmt::format("{}/dataset.{}.{}", root_, dataset.number, text_of(dataset.uuid));
}

RankFolder Store::rank_folder(const DatasetInfo& dataset, int rank) const {
  return {fmt::format("{}/rank.{}", dataset_folder(dataset), rank)};
}

Status Store::make_rank_folder(const DatasetInfo& dataset, int rank) {
  const RankFolder folder = rank_folder(dataset, rank);
  for (const std::string& path : {dataset_folder(dataset), folder.path, folder.files()})
    CAIRN_TRY(files_->make_folder(path, only_me));
  return {};
}

Status Store::sync_names(const DatasetInfo& dataset) {
  if (!durable_) return {};
  CAIRN_TRY(files_->sync_folder(dataset_folder(dataset)));
  return files_->sync_folder(root_);
}

Status Store::remove(const RankFolder& folder) {
  // Also if a directory has one of these names: it must not stay for ever.
  CAIRN_TRY(remove_all(*files_, folder.record()));
  CAIRN_TRY(remove_all(*files_, folder.prepared()));
  // After a crash a record must not exist without its data: it would be preferred to a complete
  // copy.
  Status synced = durable_ ? files_->sync_folder(folder.path) : Status{};
  if (!synced && synced.error().code != Code::not_found) return synced;
  CAIRN_TRY(remove_all(*files_, folder.path));
  return remove_if_empty(*files_, folder_of(folder.path));
}

RankFolder Store::fetch_folder(int rank) const { return {fmt::format("{}/fetch.{}", root_, rank)}; }

Status Store::take_fetched(const DatasetInfo& dataset, int rank) {
  const RankFolder part = rank_folder(dataset, rank);
  CAIRN_TRY(files_->make_folder(dataset_folder(dataset), only_me));
  CAIRN_TRY(remove_all(*files_, part.path));
  return files_->rename(fetch_folder(rank).path, part.path);
}

std::string Store::spare(int rank) const { return fmt::format("{}/spare.{}", root_, rank); }

Status Store::recycle(const RankFolder& folder, const std::string& parity, int rank) {
  Status kept = durable_ ? Status{} : files_->rename(parity, spare(rank));
  CAIRN_TRY(remove(folder));
  return kept || kept.error().code == Code::not_found ? Status{} : kept;
}

std::string Store::broadcast(int first_rank) const {
  return fmt::format("{}/broadcast.{}", root_, first_rank);
}

Status Store::drop_broadcasts() {
  CAIRN_ASSIGN(const std::vector<std::string> names, files_->list(root_));
  for (const std::string& name : names)
    if (name.starts_with("broadcast.")) CAIRN_TRY(remove_all(*files_, root_ + "/" + name));
  return {};
}

Status Store::drop_spare(int rank) { return remove_all(*files_, spare(rank)); }

}  // namespace cairn
