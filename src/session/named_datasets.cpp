#include "session/named_datasets.hpp"

#include <algorithm>

namespace cairn {
namespace {

/// A name that the prefix directory does not know may be one of the cache's only.
Status unless_absent(Status status) {
  return !status && status.error().code == Code::not_found ? Status{} : status;
}

}  // namespace

Status NamedDatasets::current(const std::string& name) {
  CAIRN_TRY(calls_.enter_alone("SCR_Current", fmt::format("name \"{}\"", name)));
  Communicator& comm = calls_.comm();
  if (name.empty()) {
    CAIRN_TRY(restarting_.check_ranks());
    return fail(Code::bad_argument, "SCR_Current: the name is NULL or empty");
  }
  const auto there = prefix_.current(comm, name);
  // What is there a program of any number of ranks can have read.
  if (!there) CAIRN_TRY(restarting_.check_ranks());
  std::optional<DatasetInfo> named = find_in_cache(name);
  if (there && (!named || named->uuid < there->uuid)) named = *there;
  const Status status = unless_absent(there ? Status{} : Status(tl::unexpected(there.error())));
  if (!named && !status) return status;  // nothing was gone back to: a restart is still to come
  restarting_.go_back_to(comm, named ? &*named : nullptr);
  if (run_.settings.drop_after_current) flushing_.copies().forget_uncached();
  if (named && named->is_checkpoint()) run_.last.checkpoint = named->checkpoint;
  return status;
}

std::optional<DatasetInfo> NamedDatasets::find_in_cache(const std::string& name) {
  for (const CachedDataset& dataset : cached_.all())
    if (dataset.info.name == name) return dataset.info;
  return std::nullopt;
}

Status NamedDatasets::drop(const std::string& name) {
  CAIRN_TRY(calls_.enter_alone("SCR_Drop", fmt::format("name \"{}\"", name)));
  // What is read where it is goes with its entry; there may be another.
  cached_.forget_if([&](const CachedDataset& dataset) {
    return dataset.in_prefix() && dataset.info.name == name;
  });
  restarting_.reconsider_refusal();
  flushing_.copies().doubt_all_named(name);
  return unless_absent(prefix_.drop(calls_.comm(), name));
}

/// 1 for each of the datasets that has this name and may be removed, 0 for the others.
std::vector<std::int64_t> NamedDatasets::find_named(const std::string& name) const {
  std::vector<std::int64_t> named;
  for (const CachedDataset& dataset : cached_.all())
    named.push_back(dataset.info.name == name && !is_left_alone(dataset.state) ? 1 : 0);
  return named;
}

Status NamedDatasets::remove(const std::string& name) {
  CAIRN_TRY(calls_.enter_alone("SCR_Delete", fmt::format("name \"{}\"", name)));
  Communicator& comm = calls_.comm();
  CAIRN_TRY(prefix_.check_removal(comm, name));  // what must stay there stays in the caches too
  flushing_.copies().doubt_all_named(name);
  remove_cached(comm, find_named(name));
  return unless_absent(prefix_.remove(comm, name));
}

Result<std::set<std::string>> NamedDatasets::remove_from_caches(
    const std::function<bool(const std::string& file)>& goes) {
  CAIRN_TRY(calls_.enter_alone("remove_from_caches"));
  Communicator& comm = calls_.comm();
  std::vector<std::int64_t> which;
  for (const CachedDataset& dataset : cached_.all()) {
    const auto& files = dataset.record.files;
    const bool has_one = std::any_of(files.begin(), files.end(),
                                     [&](const FileEntry& file) { return goes(file.name); });
    which.push_back(has_one && !is_left_alone(dataset.state) ? 1 : 0);
  }
  if (!which.empty()) comm.allreduce(which, Reduce::max);
  return remove_cached(comm, which);
}

/// Those that are marked by 1. Their names, as far as this rank knows them.
std::set<std::string> NamedDatasets::remove_cached(Communicator& comm,
                                                   const std::vector<std::int64_t>& which) {
  std::set<std::string> names;
  for (std::size_t i = which.size(); i-- > 0;) {
    if (which[i] == 0) continue;
    names.insert(cached_.all()[i].info.name);
    run_.events.happened("DELETE", cached_.all()[i].info);
    cached_.remove(comm, cached_.all()[i]);
    cached_.forget(cached_.all()[i]);
  }
  cached_.wait_for_removal(comm);  // the room is there when this returns, on every rank's node
  restarting_.reconsider_refusal();
  return names;
}

}  // namespace cairn
