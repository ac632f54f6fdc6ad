#include "scavenge/publish.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "prefix/check.hpp"
#include "prefix/contents.hpp"
#include "prefix/flush_parts.hpp"
#include "prefix/repair_files.hpp"
#include "prefix/tidy.hpp"
#include "prefix/unfinished.hpp"
#include "scavenge/scavenge.hpp"

namespace cairn {
namespace {

using Outcome = SalvagedDataset::Outcome;

constexpr std::uint32_t only_me = 0700;
constexpr int checking_threads = 2;
constexpr std::uint64_t longest_reason_bytes = 1 << 20;

/// Beside what was rebuilt.
std::string failure_file(const PrefixFolder& folder, Outcome outcome, const Uuid& dataset) {
  return fmt::format("{}/{}.{}", folder.saved().rebuilt(), name_of(outcome), text_of(dataset));
}

Outcome outcome_of(Rebuild::Outcome outcome) {
  switch (outcome) {
    case Rebuild::Outcome::whole:
      return Outcome::whole;
    case Rebuild::Outcome::lost:
      return Outcome::lost;
    case Rebuild::Outcome::newer:
      return Outcome::newer;
    case Rebuild::Outcome::uncommitted:  // only what was complete is scavenged, records last
    case Rebuild::Outcome::failed:
      return Outcome::failed;
  }
  return Outcome::lost;
}

/// What the prefix directory has.
struct Known {
  Listing listing;
  Dropped dropped;
  Listing deleted;

  bool was_given_up(const Uuid& uuid) const {
    return dropped.has(uuid) || find_in(deleted, uuid) != nullptr;
  }
};

Result<Known> read_known(Files& files, const PrefixFolder& folder, std::string* damage = nullptr) {
  std::vector<std::string> damaged;
  Known known;
  const auto take = [&](auto read, auto& into, std::string_view why) -> Status {
    if (!read)
      return fail(read.error().code,
                  "{}. Nothing is published, because {}. Correct the cause and repeat the command",
                  read.error().text, why);
    into = *std::move(read);
    return {};
  };
  constexpr std::string_view back = "dropped or deleted datasets would reappear";
  CAIRN_TRY(take(read_listing(files, folder, damaged), known.listing,
                 "the datasets that exist already are unknown"));
  CAIRN_TRY(take(read_dropped(files, folder), known.dropped, back));
  CAIRN_TRY(take(read_deleted(files, folder, damage), known.deleted, back));
  return known;
}

/// Whether what is there makes the saved copies worthless.
bool is_there(Files& files, const IoThreads& io, const PrefixFolder& folder, const Known& known,
              const Uuid& uuid) {
  const DatasetRecord* record = find_in(known.listing, uuid);
  if (record == nullptr || record->failed_us != 0) return false;
  const auto account =
      check_dataset(files, io, folder, folder.dataset(record->info), *record, CheckDepth::blocks);
  return account && account->troubles.empty();
}

/// For who lists or explains, who has no time to read all bytes.
Status remember_failure(Files& files, const PrefixFolder& folder, const SalvagedDataset& dataset) {
  CAIRN_TRY(forget_failure(files, folder, dataset.remains.uuid));
  const std::size_t bytes = std::min<std::size_t>(dataset.reason.size(), longest_reason_bytes);
  return write_file_atomically(files, failure_file(folder, dataset.outcome, dataset.remains.uuid),
                               std::as_bytes(std::span(dataset.reason).first(bytes)), true);
}

SalvagedDataset salvage_one(Files& files, const PrefixFolder& folder, Remains&& remains,
                            const Log& log) {
  SalvagedDataset dataset;
  Rebuild rebuilt = rebuild_remains(files, remains, folder.saved().rebuilt(), Settings{}, log);
  dataset.outcome = outcome_of(rebuilt.outcome);
  dataset.reason = std::move(rebuilt.reason);
  if (rebuilt.outcome == Rebuild::Outcome::uncommitted) {
    const bool never = was_never_complete(remains);
    if (never) dataset.outcome = Outcome::uncommitted;
    dataset.reason =
        never ? never_complete : "no node has copied its part completely: run cairn scavenge again";
  }
  dataset.account = std::move(rebuilt.account);
  dataset.folders = std::move(rebuilt.folders);
  dataset.remains = std::move(remains);
  return dataset;
}

/// The newest committed record in the rank's folder.
Result<RankRecord> newest_record(Files& files, const CachedPart& part) {
  HeldPart held_part = read_part(files, part.folder, part.rank);
  HeldRecord* best = nullptr;
  for (HeldRecord& held : held_part.own)
    if (held.committed &&
        (best == nullptr || held.record.encoding.generation > best->record.encoding.generation))
      best = &held;
  if (best == nullptr)
    return fail(Code::corrupt, "there is no record of rank {} in {}", part.rank, part.folder.path);
  return std::move(best->record);
}

std::vector<CachedPart> parts_of(const SalvagedDataset& dataset) {
  std::vector<CachedPart> parts;
  for (std::size_t rank = 0; rank < dataset.folders.size(); ++rank)
    parts.push_back({dataset.remains.uuid, static_cast<int>(rank), dataset.folders[rank], true});
  return parts;
}

/// Also of what could not be made whole: what is missing may have been flushed before.
void append_parts(const SalvagedDataset& dataset, std::vector<CachedPart>& cached) {
  if (dataset.outcome == Outcome::given_up) return;
  for (CachedPart& part : parts_of(dataset)) cached.push_back(std::move(part));
  if (dataset.folders.empty())
    for (const HeldPart& part : dataset.remains.parts)
      cached.push_back({dataset.remains.uuid, part.owner, part.folder});
}

Status remove_copies(Files& files, const PrefixFolder& folder, const Remains& remains,
                     const std::vector<RankFolder>& made) {
  CAIRN_TRY(forget_failure(files, folder, remains.uuid));
  return remove_remains(files, remains, made);
}

class Publishing {
 public:
  Publishing(Communicator& comm, const Site& site, const std::string& job_id, const Log& log)
      : comm_(comm), site_(site), job_id_(job_id), log_(log) {}

  void run(Salvage& salvage) {
    const bool can_pass = carry_plans_on(salvage);
    const auto known = read_known(site_.files, site_.folder);
    for (SalvagedDataset& dataset : salvage.datasets) {
      if (dataset.outcome == Outcome::whole) publish_wanted(dataset, known);
      const bool is_there =
          dataset.outcome == Outcome::published || dataset.outcome == Outcome::there;
      if (!is_there) {
        if (const Status noted = note_failure(dataset, can_pass); !noted)
          log_.warning("{}", noted.error().text);
        continue;
      }
      if (const Status removed =
              remove_copies(site_.files, site_.folder, dataset.remains, dataset.folders);
          !removed)
        log_.warning("the scavenged copy of dataset {} could not be removed: {}",
                     dataset.remains.number, removed.error().text);
    }
  }

 private:
  /// True if it went wrong for a reason that may be gone the next time.
  bool carry_plans_on(Salvage& salvage) {
    std::vector<CachedPart> cached;
    for (const SalvagedDataset& dataset : salvage.datasets) append_parts(dataset, cached);
    Tidied found;
    // Somewhere there may be more than has been scavenged so far.
    const Status tidied = tidy(comm_, site_, cached, Unfinished::left, &found);
    if (!tidied)
      log_.warning("the leftovers of an earlier run could not be finished or removed: {}",
                   tidied.error().text);
    for (const std::string& line : found.given_up) log_.warning("{}", line);
    for (const std::string& damaged : found.damaged)
      log_.warning("{}", remedy_for_damaged(damaged));
    for (SalvagedDataset& dataset : salvage.datasets)
      if (std::any_of(found.published.begin(), found.published.end(),
                      [&](const DatasetRecord& record) {
                        return record.info.uuid == dataset.remains.uuid;
                      }))
        dataset.outcome = Outcome::published;
    return !tidied && !is_damage(tidied.error().code);
  }

  /// What is lost may be in a flush that `can_pass` has kept from being ended.
  Status note_failure(const SalvagedDataset& dataset, bool can_pass) {
    const bool for_good =
        dataset.outcome == Outcome::refused || (dataset.outcome == Outcome::lost && !can_pass);
    if (for_good) return remember_failure(site_.files, site_.folder, dataset);
    if (dataset.outcome != Outcome::lost && dataset.outcome != Outcome::failed) return {};
    return forget_failure(site_.files, site_.folder, dataset.remains.uuid);
  }

  /// Another process may have been faster, and may have dropped it since.
  void publish_wanted(SalvagedDataset& dataset, const Result<Known>& known) {
    if (!known) {
      dataset.outcome = Outcome::failed;
      dataset.reason = known.error().text;
    } else if (known->was_given_up(dataset.remains.uuid)) {
      dataset.outcome = Outcome::given_up;
    } else {
      publish(dataset);
    }
  }

  void publish(SalvagedDataset& dataset) {
    const Status done = flush(dataset);
    // What went wrong after it was published keeps files from their own names for a while only.
    const bool listed = site_.keeper->known().is_durable && !was_listed_ &&
                        find_in(site_.keeper->known().listing, dataset.remains.uuid) != nullptr;
    if (!done && listed) log_.warning("{}", done.error().text);
    dataset.outcome = done || listed                       ? Outcome::published
                      : done.error().code == Code::invalid ? Outcome::refused
                                                           : Outcome::failed;
    if (!done) dataset.reason = done.error().text;
  }

  Status flush(const SalvagedDataset& dataset) {
    const Uuid& uuid = dataset.remains.uuid;
    was_listed_ = find_in(site_.keeper->known().listing, uuid) != nullptr;
    const std::vector<CachedPart> parts = parts_of(dataset);
    const ReadRecord read = [this](const CachedPart& part) {
      return newest_record(site_.files, part);
    };
    CAIRN_ASSIGN(const RankRecord first, read(parts.front()));
    CAIRN_TRY(refuse_names_of_newer(first.dataset, parts, read));
    CAIRN_TRY(flush_parts(comm_, site_, first.dataset, parts, read, job_id_));
    return {};
  }

  /// Whatever their times say: clocks of nodes differ.
  Status refuse_names_of_newer(const DatasetInfo& dataset, const std::vector<CachedPart>& parts,
                               const ReadRecord& read) {
    if (!site_.keeper->known().has_newer_than(dataset.uuid)) return {};
    std::set<std::string> names;
    for (const CachedPart& part : parts) {
      CAIRN_ASSIGN(const RankRecord record, read(part));
      for (const FileEntry& file : record.files) names.insert(file.name);
    }
    DatasetRecord mine;
    mine.info = dataset;
    for (const DatasetRecord& newer : newer_than(site_.keeper->known().listing, dataset.uuid)) {
      CAIRN_ASSIGN(const std::set<std::string> taken,
                   names_taken(site_.files, site_.folder, mine, {newer}, names));
      if (!taken.empty())
        return fail(
            Code::invalid,
            "its file {} now belongs to a newer dataset: delete {} to publish this one instead",
            *taken.begin(), newer.label());
    }
    return {};
  }

  bool was_listed_ = false;  ///< before it was published now
  Communicator& comm_;
  const Site& site_;
  const std::string& job_id_;
  const Log& log_;
};

}  // namespace

std::string_view name_of(SalvagedDataset::Outcome outcome) {
  constexpr std::array<std::string_view, 10> names = {
      "whole",    "published", "there",   "given_up", "uncommitted",
      "outlived", "lost",      "refused", "newer",    "failed"};
  return names.at(static_cast<std::size_t>(outcome));
}

Result<Salvage> make_whole(Files& files, Clock& clock, const PrefixFolder& folder,
                           const Choice& choice, const Log& log) {
  Salvage salvage;
  CAIRN_ASSIGN(const std::vector<std::string> caches, saved_caches(files, folder));
  CAIRN_ASSIGN(salvage.locks, lock_caches(files, clock, caches));
  std::vector<std::string> unreadable;
  CAIRN_ASSIGN(std::vector<Remains> found,
               find_remains(files, caches, RecordDetail::outline, &unreadable));
  for (const std::string& trouble : unreadable) log.warning("{}", trouble);
  std::reverse(found.begin(), found.end());
  std::erase_if(found, [&](const Remains& remains) { return !choice.wanted(remains); });
  if (found.empty()) return salvage;
  std::string damage;
  CAIRN_ASSIGN(const Known known, read_known(files, folder, &damage));
  if (!damage.empty()) log.warning("{}", damage);
  CAIRN_TRY(files.make_folder(folder.saved().rebuilt(), only_me));
  const auto background = make_background_thread();
  const IoThreads io{*background, checking_threads};
  for (Remains& remains : found) {
    const HeldRecord* record = record_of(remains);
    if (known.was_given_up(remains.uuid))
      salvage.datasets.push_back(
          {std::move(remains), Outcome::given_up, "it has been dropped or deleted", {}, {}});
    else if (is_there(files, io, folder, known, remains.uuid))
      salvage.datasets.push_back({std::move(remains), Outcome::there, "", {}, {}});
    else if (!choice.also_outlived && record != nullptr &&
             is_outlived(record->record.dataset, known.listing))
      salvage.datasets.push_back({std::move(remains),
                                  Outcome::outlived,
                                  "a newer checkpoint is in the prefix directory",
                                  {},
                                  {}});
    else
      salvage.datasets.push_back(salvage_one(files, folder, std::move(remains), log));
  }
  return salvage;
}

bool was_never_complete(const Remains& saved) {
  const auto prepared_only = [](const HeldPart& part) {
    return !part.own.empty() && std::none_of(part.own.begin(), part.own.end(),
                                             [](const HeldRecord& held) { return held.committed; });
  };
  return std::all_of(saved.parts.begin(), saved.parts.end(), prepared_only);
}

KnownFailure known_failure(Files& files, const PrefixFolder& folder, const Uuid& dataset) {
  const auto text_of_file = [&](Outcome outcome) -> std::string {
    const Blob text = read_file(files, failure_file(folder, outcome, dataset), longest_reason_bytes)
                          .value_or(Blob{});
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  };
  return {text_of_file(Outcome::lost), text_of_file(Outcome::refused)};
}

Status forget_failure(Files& files, const PrefixFolder& folder, const Uuid& dataset) {
  for (const Outcome outcome : {Outcome::lost, Outcome::refused}) {
    const std::string path = failure_file(folder, outcome, dataset);
    if (!files.info(path)) continue;
    CAIRN_TRY(files.remove_file(path));
    CAIRN_TRY(files.sync_folder(folder.saved().rebuilt()));
  }
  return {};
}

Result<std::vector<Remains>> find_saved(Files& files, const PrefixFolder& folder,
                                        std::vector<std::string>* unreadable) {
  CAIRN_ASSIGN(const std::vector<std::string> caches, saved_caches(files, folder));
  return find_remains(files, caches, RecordDetail::outline, unreadable);
}

Status remove_saved(Files& files, Clock& clock, const PrefixFolder& folder, const Remains& saved) {
  CAIRN_ASSIGN(const std::vector<std::string> caches, saved_caches(files, folder));
  CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files, clock, caches));
  return remove_copies(files, folder, saved, {});
}

void publish(Communicator& comm, const Site& site, Salvage& salvage, const std::string& job_id,
             const Log& log) {
  Publishing(comm, site, job_id, log).run(salvage);
}

}  // namespace cairn
