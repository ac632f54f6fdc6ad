#include "recovery/remains.hpp"

#include <algorithm>
#include <map>

namespace cairn {
namespace {

void add(Remains& remains, HeldDataset&& held) {
  remains.number = held.number;
  for (HeldPart& part : held.parts) {
    for (const auto* records : {&part.own, &part.kept})
      for (const HeldRecord& record : *records) {
        remains.ranks = std::max(remains.ranks, record.record.dataset.ranks);
        remains.name = record.record.dataset.name;
      }
    remains.parts.push_back(std::move(part));
  }
}

/// The encoding that a part is known to be of: the largest committed; 0 if it has no record.
std::uint64_t generation_of(const HeldPart& part) {
  std::uint64_t generation = 0;
  for (const HeldRecord& record : part.own)
    if (record.committed) generation = std::max(generation, record.record.encoding.generation);
  return generation;
}

std::string root_of(const HeldPart& part) { return folder_of(folder_of(part.folder.path)); }

/// What one rank of the team looks after.
struct Share {
  HeldDataset held;
  std::string root;  ///< where its own part is, or is to be
};

/// The newest part of each rank is its own; a copy that was left behind when the rank was moved is
/// looked after by the next rank, and offered as in the job.
Share share_of(int rank, int ranks, const Remains& remains, const std::string& spare_root) {
  std::map<int, const HeldPart*> own;
  for (const HeldPart& part : remains.parts) {
    const HeldPart*& best = own[part.owner];
    if (best == nullptr || generation_of(part) > generation_of(*best)) best = &part;
  }
  Share share;
  share.held.number = remains.number;
  share.root = own.contains(rank) ? root_of(*own.at(rank)) : spare_root;
  for (const HeldPart& part : remains.parts) {
    const int keeper = own.at(part.owner) == &part ? part.owner : (part.owner + 1) % ranks;
    if (keeper == rank && (part.owner != rank || own.at(rank) == &part))
      share.held.parts.push_back(part);
  }
  return share;
}

/// On an agreed error nobody has one.
Result<std::vector<Store>> open_store(Communicator& comm, Files& files, const Share& share) {
  auto store = Store::at(files, share.root);
  CAIRN_TRY(agree(comm, store ? Status{} : Status(tl::unexpected(store.error()))));
  return std::vector<Store>{*std::move(store)};
}

/// For a rank that has nothing: where it is to be told that there is nothing.
std::string any_root(const Remains& remains) {
  return remains.parts.empty() ? "/" : root_of(remains.parts.front());
}

CachedDataset dataset_of(const Remains& remains) {
  CachedDataset dataset;
  dataset.info.uuid = remains.uuid;
  dataset.info.number = remains.number;
  return dataset;
}

Rebuild not_whole(Rebuild::Outcome outcome, std::string reason) {
  return {outcome, std::move(reason), {}, {}};
}

}  // namespace

Result<std::vector<Remains>> find_remains(Files& files, const std::vector<std::string>& roots) {
  std::map<Uuid, Remains> found;
  for (const std::string& root : roots) {
    CAIRN_ASSIGN(const Store store, Store::at(files, root));
    CAIRN_ASSIGN(Catalog catalog,
                 read_catalog(
                     files, {store}, [](std::size_t, int) { return true; }, EmptyFolders::kept));
    for (auto& [uuid, held] : catalog) {
      found[uuid].uuid = uuid;
      add(found[uuid], std::move(held));
    }
  }
  std::vector<Remains> newest_first;
  for (auto entry = found.rbegin(); entry != found.rend(); ++entry)
    newest_first.push_back(std::move(entry->second));
  return newest_first;
}

Rebuild rebuild_remains(Communicator& comm, Files& files, const Remains& remains,
                        const std::string& spare_root, const Settings& settings, const Log& log) {
  const Share share = share_of(comm.rank(), comm.size(), remains, spare_root);
  auto stores = open_store(comm, files, share);
  if (!stores) return not_whole(Rebuild::Outcome::lost, stores.error().text);

  Survey survey(comm, {{remains.uuid, share.held}});
  const Summary summary = *survey.next_older();
  const Verdict verdict = judge(summary, static_cast<std::uint32_t>(comm.size()), true);
  const std::string reason = reason_of(verdict, summary);
  if (verdict == Verdict::newer) return not_whole(Rebuild::Outcome::newer, reason);
  if (verdict == Verdict::uncommitted) return not_whole(Rebuild::Outcome::uncommitted, reason);
  if (verdict != Verdict::restorable) return not_whole(Rebuild::Outcome::lost, reason);

  CachedDataset dataset = dataset_of(remains);
  auto account = restore(comm, files, *stores, settings, share.held,
                         survey.choose_generation(summary), true, dataset, log);
  if (!account) return not_whole(Rebuild::Outcome::lost, account.error().text);
  return {Rebuild::Outcome::whole, "", *std::move(account),
          stores->at(0).rank_folder(dataset.info, comm.rank())};
}

Summary summarise(Communicator& comm, const Remains& remains) {
  Survey survey(comm, {{remains.uuid, {0, remains.number, remains.parts}}});
  return *survey.next_older();
}

Inspection inspect_remains(Communicator& comm, Files& files, const Remains& remains,
                           const Settings& settings, bool read_everything, const Log& log) {
  const Share share = share_of(comm.rank(), comm.size(), remains, any_root(remains));
  auto stores = open_store(comm, files, share);
  if (!stores) return {stores.error().text, {}};
  Survey survey(comm, {{remains.uuid, share.held}});
  const std::uint64_t generation = survey.choose_generation(*survey.next_older());
  CachedDataset dataset = dataset_of(remains);
  auto part = examine(comm, files, *stores, settings, share.held, generation, read_everything,
                      dataset, log);
  if (!part) return {part.error().text, {}};
  const Status whole = agree(comm, part->examined.can_heal);
  return {whole ? "" : whole.error().text, *std::move(part)};
}

}  // namespace cairn
