#include "scavenge/publish.hpp"

#include <algorithm>
#include <set>

#include "prefix/carry_out.hpp"
#include "prefix/tidy.hpp"

namespace cairn {
namespace {

using Outcome = SalvagedDataset::Outcome;

constexpr std::uint32_t only_me = 0700;

Outcome outcome_of(Rebuild::Outcome outcome) {
  switch (outcome) {
    case Rebuild::Outcome::whole:
      return Outcome::whole;
    case Rebuild::Outcome::lost:
      return Outcome::lost;
    case Rebuild::Outcome::uncommitted:
      return Outcome::uncommitted;
    case Rebuild::Outcome::newer:
      return Outcome::newer;
  }
  return Outcome::lost;
}

/// One folder for each node, and that of what was rebuilt.
Result<std::vector<std::string>> saved_caches(Files& files, const PrefixFolder& folder) {
  std::vector<std::string> caches;
  auto nodes = files.list(folder.scavenged());
  if (!nodes && nodes.error().code == Code::not_found) return caches;
  CAIRN_ASSIGN(const std::vector<std::string> names, std::move(nodes));
  for (const std::string& name : names) caches.push_back(folder.scavenged(name));
  caches.push_back(folder.rebuilt());
  const auto is_no_folder = [&](const std::string& path) {
    const auto info = files.info(path);
    return !info || info->kind != Kind::folder;
  };
  std::erase_if(caches, is_no_folder);
  return caches;
}

/// Published, or dropped since: then the files may be the program's to write to by now.
Result<std::set<Uuid>> known_datasets(Files& files, const PrefixFolder& folder) {
  std::vector<std::string> damaged;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged));
  CAIRN_ASSIGN(const Listing dropped, read_dropped(files, folder, damaged));
  std::set<Uuid> known;
  for (const DatasetRecord& record : listing)
    if (record.failed_us == 0) known.insert(record.info.uuid);
  for (const DatasetRecord& record : dropped) known.insert(record.info.uuid);
  return known;
}

SalvagedDataset salvage_one(Files& files, const PrefixFolder& folder, Remains&& remains,
                            const Log& log) {
  SalvagedDataset dataset;
  RebuiltByThreads rebuilt = rebuild_by_threads(files, remains, folder.rebuilt(), log);
  dataset.outcome = outcome_of(rebuilt.whole.outcome);
  dataset.reason = std::move(rebuilt.whole.reason);
  dataset.account = std::move(rebuilt.whole.account);
  dataset.folders = std::move(rebuilt.folders);
  dataset.remains = std::move(remains);
  return dataset;
}

/// The newest committed record in the rank's folder.
Result<RecordedPart> recorded_part(Files& files, const Uuid& uuid, int rank,
                                   const RankFolder& folder) {
  const HeldPart part = read_part(files, folder, rank);
  const HeldRecord* best = nullptr;
  for (const HeldRecord& held : part.own)
    if (held.committed &&
        (best == nullptr || held.record.encoding.generation > best->record.encoding.generation))
      best = &held;
  if (best == nullptr)
    return fail(Code::corrupt, "there is no record of rank {} in {}", rank, folder.path);
  return RecordedPart{{uuid, rank, folder, true}, best->record};
}

Result<std::vector<RecordedPart>> recorded_parts(Files& files, const SalvagedDataset& dataset) {
  std::vector<RecordedPart> parts;
  for (std::size_t rank = 0; rank < dataset.folders.size(); ++rank) {
    CAIRN_ASSIGN(RecordedPart part, recorded_part(files, dataset.remains.uuid,
                                                  static_cast<int>(rank), dataset.folders[rank]));
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Also of what could not be made whole: what is missing may have been flushed before.
void append_parts(const SalvagedDataset& dataset, std::vector<CachedPart>& cached) {
  for (std::size_t rank = 0; rank < dataset.folders.size(); ++rank)
    cached.push_back({dataset.remains.uuid, static_cast<int>(rank), dataset.folders[rank], true});
  if (dataset.folders.empty())
    for (const HeldPart& part : dataset.remains.parts)
      cached.push_back({dataset.remains.uuid, part.owner, part.folder});
}

Status remove_copies(Files& files, const SalvagedDataset& dataset) {
  std::set<std::string> paths;
  for (const HeldPart& part : dataset.remains.parts) paths.insert(part.folder.path);
  for (const RankFolder& folder : dataset.folders) paths.insert(folder.path);
  for (const std::string& path : paths) {
    CAIRN_ASSIGN(Store store, Store::at(files, folder_of(folder_of(path))));
    CAIRN_TRY(store.remove({path}));
  }
  return {};
}

class Publishing {
 public:
  Publishing(Communicator& comm, const Site& site, const std::string& job_id, const Log& log)
      : comm_(comm), site_(site), job_id_(job_id), log_(log) {}

  void run(Salvage& salvage) {
    carry_plans_on(salvage);
    for (SalvagedDataset& dataset : salvage.datasets) {
      if (dataset.outcome == Outcome::whole) publish(dataset);
      const bool is_there =
          dataset.outcome == Outcome::published || dataset.outcome == Outcome::there;
      if (!is_there) continue;
      if (const Status removed = remove_copies(site_.files, dataset); !removed)
        log_.warning("what was scavenged of dataset {} stays beside it: {}", dataset.remains.number,
                     removed.error().text);
    }
  }

 private:
  void carry_plans_on(Salvage& salvage) {
    std::vector<CachedPart> cached;
    for (const SalvagedDataset& dataset : salvage.datasets) append_parts(dataset, cached);
    std::vector<DatasetRecord> published;
    // Somewhere there may be more than has been scavenged so far.
    const Status tidied = tidy(comm_, site_, cached, Unfinished::left, &published);
    if (!tidied)
      log_.warning("what an earlier run has left half done stays: {}", tidied.error().text);
    for (SalvagedDataset& dataset : salvage.datasets)
      if (std::any_of(published.begin(), published.end(), [&](const DatasetRecord& record) {
            return record.info.uuid == dataset.remains.uuid;
          }))
        dataset.outcome = Outcome::published;
  }

  void publish(SalvagedDataset& dataset) {
    Status done;
    if (const auto parts = recorded_parts(site_.files, dataset); parts)
      done = flush_parts(comm_, site_, parts->front().record.dataset, *parts, job_id_);
    else
      done = tl::unexpected(parts.error());
    dataset.outcome = done ? Outcome::published : Outcome::failed;
    if (!done) dataset.reason = done.error().text;
  }

  Communicator& comm_;
  const Site& site_;
  const std::string& job_id_;
  const Log& log_;
};

}  // namespace

std::string_view name_of(SalvagedDataset::Outcome outcome) {
  switch (outcome) {
    case Outcome::whole:
      return "whole";
    case Outcome::published:
      return "published";
    case Outcome::there:
      return "there";
    case Outcome::lost:
      return "lost";
    case Outcome::uncommitted:
      return "uncommitted";
    case Outcome::newer:
      return "newer";
    case Outcome::failed:
      return "failed";
  }
  return "";
}

Result<Salvage> make_whole(Files& files, const PrefixFolder& folder,
                           const std::function<bool(const Remains&)>& wanted, const Log& log) {
  Salvage salvage;
  CAIRN_ASSIGN(std::vector<std::string> caches, saved_caches(files, folder));
  CAIRN_ASSIGN(salvage.locks, lock_caches(files, caches));
  CAIRN_ASSIGN(std::vector<Remains> found, find_remains(files, caches));
  std::reverse(found.begin(), found.end());
  std::erase_if(found, [&](const Remains& remains) { return !wanted(remains); });
  if (found.empty()) return salvage;
  CAIRN_ASSIGN(const std::set<Uuid> known, known_datasets(files, folder));
  CAIRN_TRY(files.make_folder(folder.rebuilt(), only_me));
  for (Remains& remains : found)
    if (known.contains(remains.uuid))
      salvage.datasets.push_back({std::move(remains), Outcome::there, "", {}, {}});
    else
      salvage.datasets.push_back(salvage_one(files, folder, std::move(remains), log));
  return salvage;
}

void publish(Communicator& comm, const Site& site, Salvage& salvage, const std::string& job_id,
             const Log& log) {
  Publishing(comm, site, job_id, log).run(salvage);
}

}  // namespace cairn
