#include "prefix/unfinished.hpp"

#include <algorithm>

#include "prefix/check.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/dealt_manifests.hpp"
#include "prefix/site.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

std::optional<DatasetRecord> plan_in(Files& files, const std::string& pending) {
  return read_dataset_record(files, pending).value_or(std::nullopt);
}

/// True also if it was being moved there when a later epoch than that of its plan ended. In the
/// same epoch it was only moved aside, to be published again.
Result<bool> was_dropped(Files& files, const PrefixFolder& folder, std::uint64_t epoch_of_plan,
                         const DatasetInfo& dataset) {
  std::vector<std::string> places = {folder.dropped(dataset)};
  CAIRN_ASSIGN(const auto names, names_in(files, folder.root()));
  for (const std::uint64_t epoch : numbers_after("closed.", names))
    if (epoch > epoch_of_plan)
      places.push_back(folder.closed(epoch) + "/" + std::string(DatasetFolder::transit_start) +
                       DatasetFolder::folder_name(dataset));
  for (const std::string& place : places) {
    const auto there = files.info(place);
    if (there) return true;
    if (there.error().code != Code::not_found) return tl::unexpected(there.error());
  }
  return false;
}

bool any(Communicator& comm, bool here) { return allreduce(comm, here ? 1 : 0, Reduce::max) != 0; }

Result<bool> has_late_name(Communicator& comm, Files& files, const PrefixFolder& folder,
                           const std::string& pending, const DatasetRecord& plan,
                           const Listing& newer) {
  bool late = false;
  CAIRN_ASSIGN(const NameHashes names,
               deal_names(comm, files, pending, plan, [&](const FileEntry& file) {
                 late = late || is_written_since(files, file, folder.file(file));
               }));
  if (any(comm, late)) return true;
  for (const DatasetRecord& other : newer) {
    CAIRN_ASSIGN(const NameHashes taken,
                 deal_names(comm, files, folder.dataset(other.info), other));
    const bool same = std::any_of(taken.begin(), taken.end(),
                                  [&](std::uint64_t name) { return names.contains(name); });
    if (any(comm, same)) return true;
  }
  return false;
}

}  // namespace

Result<bool> is_unwanted(Files& files, const PrefixFolder& folder, const PlanFound& found,
                         const Listing& deleted) {
  CAIRN_ASSIGN(const bool dropped, was_dropped(files, folder, found.epoch, found.plan.info));
  return dropped || find_in(deleted, found.plan.info.uuid) != nullptr;
}

Listing newer_than(const Listing& listing, const Uuid& uuid) {
  const auto end = std::find_if(listing.begin(), listing.end(), [&](const DatasetRecord& record) {
    return record.info.uuid <= uuid;
  });
  return {listing.begin(), end};
}

Result<bool> would_replace(Communicator& comm, Files& files, const PrefixFolder& folder,
                           const std::string& pending, const DatasetRecord& plan,
                           const Listing& newer) {
  if (newer.empty()) return false;
  const auto late = has_late_name(comm, files, folder, pending, plan, newer);
  return late || !is_damage(late.error().code) ? late : true;
}

namespace {

using Plan = std::optional<DatasetRecord>;

/// Local. Nothing if it is damaged or unwanted, or if the dataset is listed. Transient errors are
/// errors: the plan may be a good one.
Result<Plan> plan_to_continue(Files& files, const PrefixFolder& folder, const BegunFolder& begun,
                              const Listing& listing, const Listing& deleted) {
  Result<Plan> plan = read_dataset_record(files, begun.path);
  if (!plan && is_damage(plan.error().code)) return Plan{};
  if (!plan || !*plan || find_in(listing, (*plan)->info.uuid) != nullptr)
    return plan.map([](const Plan&) { return Plan{}; });
  CAIRN_ASSIGN(const bool unwanted,
               is_unwanted(files, folder, {**plan, begun.path, begun.epoch}, deleted));
  if (unwanted) return Plan{};
  return plan;
}

/// Collective. The same, agreed, and nothing if it would replace files of newer datasets.
Result<Plan> harmless_plan(Communicator& comm, Files& files, const PrefixFolder& folder,
                           const BegunFolder& begun, const Listing& listing,
                           const Listing& deleted) {
  const Result<Plan> plan = plan_to_continue(files, folder, begun, listing, deleted);
  CAIRN_TRY(agree(comm, plan.map([](const Plan&) {})));
  if (!*plan) return Plan{};
  CAIRN_ASSIGN(const bool late, would_replace(comm, files, folder, begun.path, **plan,
                                              newer_than(listing, (*plan)->info.uuid)));
  if (late) return Plan{};
  return plan;
}

}  // namespace

Result<std::vector<UnfinishedFlush>> read_unfinished(Communicator& comm, Files& files,
                                                     const PrefixFolder& folder,
                                                     const Listing& listing,
                                                     std::vector<std::string>* unknown) {
  std::vector<UnfinishedFlush> found;
  CAIRN_ASSIGN(const Listing deleted, read_deleted(files, folder));
  CAIRN_ASSIGN(const auto all, begun_folders(files, folder));
  for (const BegunFolder& begun : all) {
    if (begun.state != PrefixState::planned) continue;
    const auto plan = harmless_plan(comm, files, folder, begun, listing, deleted);
    if (!plan && unknown != nullptr) {
      unknown->push_back(plan.error().text);
      continue;
    }
    CAIRN_TRY(plan);
    if (!*plan) continue;
    UnfinishedFlush flush{**plan, {}, begun.path, begun.epoch};
    CAIRN_ASSIGN(const auto marks, names_in(files, DatasetFolder::markers(begun.path)));
    for (const std::uint64_t rank : numbers_after("0.", marks))
      flush.done.insert(static_cast<int>(rank));
    found.push_back(std::move(flush));
  }
  return found;
}

namespace {

/// The records of datasets in the folders of epochs in this state.
Result<Listing> read_begun(Files& files, const PrefixFolder& folder, PrefixState state) {
  Listing found;
  CAIRN_ASSIGN(const auto all, begun_folders(files, folder));
  for (const BegunFolder& begun : all)
    if (auto record = begun.state == state ? plan_in(files, begun.path) : std::nullopt)
      insert(found, *std::move(record));
  return found;
}

}  // namespace

bool UnfinishedFlush::is_done_but_for(const std::set<int>& ranks) const {
  for (std::uint32_t i = 0; i < plan.info.ranks; ++i)
    if (const int rank = static_cast<int>(i); !done.contains(rank) && !ranks.contains(rank))
      return false;
  return true;
}

Result<Listing> read_half_deleted(Files& files, const PrefixFolder& folder) {
  return read_begun(files, folder, PrefixState::deleting);
}

Result<Listing> read_in_transit(Files& files, const PrefixFolder& folder) {
  return read_begun(files, folder, PrefixState::dropped);
}

}  // namespace cairn
