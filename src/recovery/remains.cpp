#include "recovery/remains.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>

#include "comm/team.hpp"

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

/// What may be different the next time is no loss.
Rebuild::Outcome outcome_of(Code code) {
  const bool may_pass = code == Code::no_space || code == Code::io || code == Code::busy;
  return may_pass ? Rebuild::Outcome::failed : Rebuild::Outcome::lost;
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
  if (!stores) return not_whole(outcome_of(stores.error().code), stores.error().text);

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
  if (!account) return not_whole(outcome_of(account.error().code), account.error().text);
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

namespace {

/// Where no record tells how many ranks there were, there is nobody to do anything.
Rebuild without_records(const Remains& remains) {
  const auto any = [&](auto property) {
    return std::any_of(remains.parts.begin(), remains.parts.end(), property);
  };
  if (any([](const HeldPart& part) { return part.newer; }))
    return not_whole(Rebuild::Outcome::newer, "its records are in a newer format");
  if (any([](const HeldPart& part) { return part.damaged; }))
    return not_whole(Rebuild::Outcome::lost, "none of its records can be read");
  return not_whole(Rebuild::Outcome::uncommitted, "it was not complete when its run ended");
}

}  // namespace

RebuiltByThreads rebuild_by_threads(Files& files, const Remains& remains,
                                    const std::string& spare_root, const Log& log,
                                    std::uint64_t memory_bytes) {
  if (remains.ranks == 0) return {without_records(remains), {}};
  Settings settings;
  settings.encode_bytes = std::min(settings.encode_bytes, memory_bytes / remains.ranks);
  RebuiltByThreads rebuilt{{}, std::vector<RankFolder>(remains.ranks)};
  std::mutex mutex;
  try {
    Team(static_cast<int>(remains.ranks)).run([&](Communicator& comm) {
      Rebuild mine = rebuild_remains(comm, files, remains, spare_root, settings, log);
      const std::scoped_lock lock(mutex);
      rebuilt.folders[static_cast<std::size_t>(comm.rank())] = mine.folder;
      if (comm.rank() == 0) rebuilt.whole = std::move(mine);
    });
  } catch (const std::system_error& error) {
    rebuilt.whole = not_whole(
        Rebuild::Outcome::failed,
        fmt::format("there is one thread for each of its {} ranks, and: {}; raise the limit of "
                    "processes (ulimit -u), or rebuild it on another host",
                    remains.ranks, error.what()));
  }
  if (rebuilt.whole.outcome != Rebuild::Outcome::whole) rebuilt.folders.clear();
  return rebuilt;
}

}  // namespace cairn
