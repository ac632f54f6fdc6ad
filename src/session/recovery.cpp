#include "session/recovery.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/units.hpp"
#include "cache/catalog.hpp"
#include "comm/group.hpp"
#include "redundancy/repair.hpp"
#include "session/commit.hpp"
#include "session/restore.hpp"

namespace cairn {
namespace {

/// What all ranks know of a dataset before they look closer.
struct Summary {
  Uuid uuid;
  std::uint64_t generation = 0;  ///< largest committed, 0 if none
  bool several = false;          ///< ranks have committed different generations
  bool newer = false;
  bool damaged = false;
  std::uint32_t ranks = 0;
  std::size_t store = 0;
  std::uint64_t number = 0;
  std::uint64_t checkpoint = 0;
  std::uint32_t flags = 0;
};

class Recovery {
 public:
  Recovery(Communicator& comm, Files& files, Clock& clock, std::vector<Store>& stores,
           const std::vector<Level>& levels, const Placement& placement, const Settings& settings,
           const Log& log)
      : comm_(comm),
        files_(files),
        clock_(clock),
        stores_(stores),
        levels_(levels),
        placement_(placement),
        settings_(settings),
        log_(log) {}

  Result<std::vector<CachedDataset>> run() {
    auto looks_after = responsibility();
    Status status = looks_after ? Status{} : Status(tl::unexpected(looks_after.error()));
    if (status) {
      auto catalog = read_catalog(files_, stores_, *looks_after);
      if (catalog)
        catalog_ = *std::move(catalog);
      else
        status = tl::unexpected(catalog.error());
    }
    CAIRN_TRY(agree(comm_, std::move(status)));
    std::vector<CachedDataset> found;
    while (const auto uuid = next_older()) CAIRN_TRY(take_in(summarise(*uuid), found));
    return found;
  }

 private:
  /// A part belongs to its owner where that sees the store, else to one of those who do.
  Result<LooksAfter> responsibility() const {
    std::vector<std::vector<int>> beside;
    for (const Store& store : stores_) {
      CAIRN_ASSIGN(const auto groups,
                   failure_groups(placement_, store.shared() ? "WORLD" : store.settings().group,
                                  settings_.node_groups));
      const auto mine = groups[static_cast<std::size_t>(comm_.rank())];
      std::vector<int>& here = beside.emplace_back();
      for (int rank = 0; rank < comm_.size(); ++rank)
        if (groups[static_cast<std::size_t>(rank)] == mine) here.push_back(rank);
    }
    return LooksAfter([beside, me = comm_.rank()](std::size_t store, int owner) {
      const std::vector<int>& here = beside[store];
      if (std::binary_search(here.begin(), here.end(), owner)) return owner == me;
      return here[static_cast<std::size_t>(owner) % here.size()] == me;
    });
  }

  /// The newest dataset older than the one before, over all ranks.
  std::optional<Uuid> next_older() {
    const auto mine = last_ ? catalog_.lower_bound(*last_) : catalog_.end();
    const Uuid candidate = mine == catalog_.begin() ? Uuid{} : std::prev(mine)->first;
    Uuid next;
    next.time_us = allreduce(comm_, candidate.time_us, Reduce::max);
    next.chance =
        allreduce(comm_, candidate.time_us == next.time_us ? candidate.chance : 0, Reduce::max);
    if (next == Uuid{}) return std::nullopt;
    last_ = next;
    return next;
  }

  template <class Visit>
  static void for_each_record(const HeldDataset& held, Visit visit) {
    for (const HeldPart& part : held.parts)
      for (const auto* records : {&part.own, &part.kept})
        for (const HeldRecord& record : *records) visit(record);
  }

  Summary summarise(const Uuid& uuid) {
    constexpr std::int64_t none = -std::numeric_limits<std::int64_t>::max();
    std::array<std::int64_t, 9> facts{0, none};
    auto& [newest, minus_oldest, newer, damaged, ranks, store, number, checkpoint, flags] = facts;
    const HeldDataset& held = catalog_[uuid];  // an empty one where this rank has none of it
    store = static_cast<std::int64_t>(held.store);
    number = static_cast<std::int64_t>(held.number);
    for (const HeldPart& part : held.parts) {
      newer |= part.newer ? 1 : 0;
      damaged |= part.damaged ? 1 : 0;
    }
    for_each_record(held, [&](const HeldRecord& record) {
      const DatasetInfo& info = record.record.dataset;
      ranks = std::max<std::int64_t>(ranks, info.ranks);
      checkpoint = std::max(checkpoint, static_cast<std::int64_t>(info.checkpoint));
      flags = std::max<std::int64_t>(flags, info.flags);
      if (!record.committed) return;
      newest = std::max(newest, generation_of(record));
      minus_oldest = std::max(minus_oldest, -generation_of(record));
    });
    comm_.allreduce(facts, Reduce::max);
    return {uuid,
            static_cast<std::uint64_t>(newest),
            newest != 0 && newest != -minus_oldest,
            newer != 0,
            damaged != 0,
            static_cast<std::uint32_t>(ranks),
            static_cast<std::size_t>(store),
            static_cast<std::uint64_t>(number),
            static_cast<std::uint64_t>(checkpoint),
            static_cast<std::uint32_t>(flags)};
  }

  static std::int64_t generation_of(const HeldRecord& held) {
    return static_cast<std::int64_t>(held.record.encoding.generation);
  }

  /// Ranks have committed different generations where a run died while it made new sets, or where a
  /// node comes back that was left out since. Then the newest counts of which every rank's record
  /// is left somewhere.
  std::uint64_t choose_generation(const Summary& summary, const HeldDataset& held) {
    if (!summary.several) return summary.generation;
    auto generation = static_cast<std::int64_t>(summary.generation);
    while (generation > 0 && !every_rank_has_record(held, generation)) {
      std::int64_t next = 0;
      for_each_record(held, [&](const HeldRecord& record) {
        if (record.committed && generation_of(record) < generation)
          next = std::max(next, generation_of(record));
      });
      generation = allreduce(comm_, next, Reduce::max);
    }
    return generation > 0 ? static_cast<std::uint64_t>(generation) : summary.generation;
  }

  bool every_rank_has_record(const HeldDataset& held, std::int64_t generation) {
    std::vector<std::int64_t> known(static_cast<std::size_t>(comm_.size()));
    for_each_record(held, [&](const HeldRecord& record) {
      if (generation_of(record) == generation && record.record.rank < comm_.size())
        known[static_cast<std::size_t>(record.record.rank)] = 1;
    });
    comm_.allreduce(known, Reduce::max);
    return std::find(known.begin(), known.end(), 0) == known.end();
  }

  Status take_in(const Summary& summary, std::vector<CachedDataset>& found) {
    const HeldDataset& held = catalog_[summary.uuid];
    CachedDataset dataset;
    dataset.info.uuid = summary.uuid;
    dataset.info.number = summary.number;
    dataset.info.checkpoint = summary.checkpoint;
    dataset.info.flags = summary.flags;
    dataset.info.ranks = summary.ranks;
    dataset.store = summary.store;
    if (summary.newer) {
      dataset.state = CachedDataset::State::left_alone;
      dataset.reason = "its records are in a newer format; it is left alone";
      tell(Severity::warning, fmt::format("dataset {}: {}", summary.number, dataset.reason));
    } else if (summary.generation == 0 && summary.ranks != 0 && !same_ranks(summary)) {
      // With the number of ranks that wrote it, another run may still see it committed on other
      // nodes.
      set_aside(held, CachedDataset::State::unusable, "it was not complete when its run ended",
                dataset);
    } else if (summary.generation == 0 && !summary.damaged) {
      return remove_uncommitted(summary, held);
    } else if (summary.generation == 0) {
      // A store that cannot be read now may be readable in the next run, so this removes nothing.
      set_aside(held, CachedDataset::State::unusable, "none of its records can be read", dataset);
      tell(Severity::warning,
           fmt::format("dataset {} cannot be restored: {}", summary.number, dataset.reason));
    } else if (!settings_.distribute) {
      set_aside(held, CachedDataset::State::left_alone, "SCR_DISTRIBUTE=0 leaves it where it is",
                dataset);
      tell(Severity::info,
           fmt::format("dataset {} in the cache: {}", summary.number, dataset.reason));
    } else if (!same_ranks(summary)) {
      set_aside(held, CachedDataset::State::other_ranks,
                fmt::format("it was written by {} ranks", summary.ranks), dataset);
    } else {
      restore_dataset(held, choose_generation(summary, held), found, dataset);
    }
    found.push_back(std::move(dataset));
    return {};
  }

  bool same_ranks(const Summary& summary) const {
    return summary.ranks == static_cast<std::uint32_t>(comm_.size());
  }

  static void set_aside(const HeldDataset& held, CachedDataset::State state, std::string reason,
                        CachedDataset& dataset) {
    dataset.state = state;
    dataset.reason = std::move(reason);
    for (const HeldPart& part : held.parts) dataset.parts.push_back(part.folder);
  }

  Status remove_uncommitted(const Summary& summary, const HeldDataset& held) {
    tell(Severity::info,
         fmt::format("dataset {} was not complete when its run ended; its remains are removed",
                     summary.number));
    Status status;
    for (const HeldPart& part : held.parts)
      if (status) status = stores_[summary.store].remove(part.folder);
    return agree(comm_, std::move(status));
  }

  void restore_dataset(const HeldDataset& held, std::uint64_t generation,
                       const std::vector<CachedDataset>& newer, CachedDataset& dataset) {
    const bool newest = std::none_of(newer.begin(), newer.end(), [](const CachedDataset& other) {
      return other.usable() && other.info.is_checkpoint();
    });
    const std::int64_t from_us = clock_.steady_us();
    const DatasetInfo known_to_all = dataset.info;
    auto account =
        restore(comm_, files_, stores_, settings_, held, generation, newest, dataset, log_);
    if (!account) {
      // Some ranks may have read more in a record; what is decided by it must be equal everywhere.
      dataset.info = known_to_all;
      set_aside(held, CachedDataset::State::unusable, account.error().text, dataset);
      tell(Severity::warning,
           fmt::format("dataset {} cannot be restored: {}", dataset.info.number, dataset.reason));
      return;
    }
    report(dataset, *account, static_cast<double>(clock_.steady_us() - from_us) * 1e-6);
    if (protect_anew(dataset)) remove_what_is_elsewhere(dataset);
  }

  /// The copies that were moved. They stay until now because the places they were moved to may have
  /// needed new sets, and a node lost before those are committed may take two of an old one.
  void remove_what_is_elsewhere(CachedDataset& dataset) {
    Store& store = stores_[dataset.store];
    const RankFolder own = store.rank_folder(dataset.info, comm_.rank());
    for (const RankFolder& part : dataset.parts) {
      const Status removed = part.path == own.path ? Status{} : store.remove(part);
      if (!removed) log_.warning("rank {}: {}", comm_.rank(), removed.error().text);
    }
    dataset.parts = {own};
  }

  void report(const CachedDataset& dataset, const RestoreAccount& account, double seconds) {
    std::string what;
    const auto add = [&what](std::string part) {
      what += (what.empty() ? "" : ", ") + std::move(part);
    };
    if (account.rebuilt_ranks > 0)
      add(fmt::format("rebuilt {} that were lost", account.rebuilt_names));
    if (account.moved_ranks > 0)
      add(fmt::format("moved {} of {} ranks to another node",
                      format_bytes(static_cast<std::uint64_t>(account.moved_bytes)),
                      account.moved_ranks));
    if (account.repaired_blocks > 0)
      add(fmt::format("{} in {} blocks came from redundancy",
                      format_bytes(static_cast<std::uint64_t>(account.repaired_bytes)),
                      account.repaired_blocks));
    if (!what.empty())
      tell(Severity::info,
           fmt::format("{}: {}; took {}", dataset.label(), what, format_seconds(seconds)));
  }

  /// The level under which a dataset found here would be protected now.
  const Level* level_of(const CachedDataset& dataset) const {
    const Level& chosen = levels_[choose_level(levels_, dataset.info)];
    if (chosen.store == dataset.store) return &chosen;
    const auto same_store = std::find_if(levels_.begin(), levels_.end(), [&](const Level& level) {
      return level.store == dataset.store;
    });
    return same_store == levels_.end() ? nullptr : &*same_store;
  }

  /// Where members of one set have come to share a failure group, makes new sets, if that helps.
  /// False if it would, and failed.
  bool protect_anew(CachedDataset& dataset) {
    const Level* level = level_of(dataset);
    if (level == nullptr) return true;
    const bool crowded =
        !spread_over_groups(dataset.record.encoding.members, level->failure_groups);
    if (allreduce(comm_, crowded ? 1 : 0, Reduce::max) == 0) return true;
    if (level->unprotected_ranks > 0) {
      tell(Severity::warning,
           fmt::format("{}: ranks that protect each other share a {} now, and there are "
                       "too few to protect all anew: its loss may lose the dataset",
                       dataset.label(), level->settings.group));
      return true;
    }
    if (!dataset.checked && !check_and_heal(comm_, files_, stores_, settings_, dataset, log_))
      return false;
    return encode_again(dataset, *level);
  }

  /// Later than the old one, and one that no other run can have given, not even a run that died
  /// with this step half done on nodes that are not here now.
  std::uint64_t new_generation(const RankRecord& old) {
    const std::int64_t now_us = allreduce(comm_, clock_.now_us(), Reduce::max);
    return std::max(old.encoding.generation + 1,
                    static_cast<std::uint64_t>(std::max<std::int64_t>(now_us, 0)));
  }

  bool encode_again(CachedDataset& dataset, const Level& level) {
    Store& store = stores_[dataset.store];
    const RankFolder folder = store.rank_folder(dataset.info, comm_.rank());
    const RankRecord old = dataset.record;
    RankRecord fresh = old;
    const std::uint64_t generation = new_generation(old);
    fresh.encoding = level.encoding;
    fresh.encoding.generation = generation;
    Status status = protect_and_commit(comm_, files_, store, folder, fresh, settings_, &old);
    if (!status) {
      // What was made of the new generation stays: some rank may have committed it.
      tell(Severity::warning, fmt::format("{} keeps its old redundancy sets: {}", dataset.label(),
                                          status.error().text));
      return false;
    }
    dataset.record = std::move(fresh);
    tell(Severity::info,
         fmt::format("{} is protected anew for the nodes of this run", dataset.label()));
    if (const Status removed = files_.remove_file(folder.parity(old.encoding.generation)); !removed)
      log_.warning("rank {}: {}", comm_.rank(), removed.error().text);
    return true;
  }

  void tell(Severity severity, const std::string& text) const {
    if (comm_.rank() != 0) return;
    if (severity == Severity::warning)
      log_.warning("{}", text);
    else
      log_.info("{}", text);
  }

  Communicator& comm_;
  Files& files_;
  Clock& clock_;
  std::vector<Store>& stores_;
  const std::vector<Level>& levels_;
  const Placement& placement_;
  const Settings& settings_;
  const Log& log_;
  Catalog catalog_;
  std::optional<Uuid> last_;
};

}  // namespace

Result<std::vector<CachedDataset>> recover_cache(Communicator& comm, Files& files, Clock& clock,
                                                 std::vector<Store>& stores,
                                                 const std::vector<Level>& levels,
                                                 const Placement& placement,
                                                 const Settings& settings, const Log& log) {
  return Recovery(comm, files, clock, stores, levels, placement, settings, log).run();
}

Status check_and_heal(Communicator& comm, Files& files, std::vector<Store>& stores,
                      const Settings& settings, CachedDataset& dataset, const Log& log) {
  Group set(comm, dataset.record.encoding.members);
  const Store& store = stores[dataset.store];
  HealOptions options{true, store.durable(), settings.copy_metadata, settings.encode_bytes};
  const auto healed =
      heal(set, files, store.rank_folder(dataset.info, comm.rank()), dataset.record, options);
  const Status status = agree(comm, healed ? Status{} : Status(tl::unexpected(healed.error())));
  if (!status) {
    dataset.state = CachedDataset::State::unusable;
    dataset.reason = status.error().text;
    if (comm.rank() == 0) log.warning("{} cannot be restored: {}", dataset.label(), dataset.reason);
    return status;
  }
  dataset.checked = true;
  const auto blocks =
      allreduce(comm, static_cast<std::int64_t>(healed->repaired_blocks), Reduce::sum);
  if (blocks > 0 && comm.rank() == 0)
    log.warning("{}: {} blocks did not match their checksums and were repaired", dataset.label(),
                blocks);
  return {};
}

}  // namespace cairn
