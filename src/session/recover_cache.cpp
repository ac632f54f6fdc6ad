#include "session/recover_cache.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/once.hpp"
#include "base/units.hpp"
#include "cache/catalog.hpp"
#include "recovery/commit.hpp"
#include "recovery/restore.hpp"
#include "recovery/survey.hpp"
#include "recovery/written.hpp"
#include "session/sharing.hpp"

namespace cairn {
namespace {

class Recovery {
 public:
  Recovery(Communicator& comm, Files& files, Clock& clock, std::vector<Store>& stores,
           const std::vector<Level>& levels, const Placement& placement, const Settings& settings,
           const Log& log, EventLog& events)
      : comm_(comm),
        files_(files),
        clock_(clock),
        stores_(stores),
        levels_(levels),
        placement_(placement),
        settings_(settings),
        log_(log),
        events_(events) {}

  Result<std::vector<CachedDataset>> run() {
    auto looks_after = responsibility();
    Status status = looks_after ? Status{} : Status(tl::unexpected(looks_after.error()));
    Catalog catalog;
    if (status) {
      auto read = read_catalog(files_, stores_, *looks_after);
      if (read)
        catalog = *std::move(read);
      else
        status = tl::unexpected(read.error());
      if (status) warn(drop_leftovers(files_, stores_, *looks_after));
    }
    CAIRN_TRY(agree(comm_, std::move(status)));
    survey_.emplace(comm_, std::move(catalog));
    std::vector<CachedDataset> found;
    while (const auto summary = survey_->next_older()) take_in(*summary, found);
    return found;
  }

 private:
  /// A part belongs to its owner where that sees the store, else to one of those who do.
  Result<LooksAfter> responsibility() const {
    std::vector<std::vector<int>> beside;
    for (const Store& store : stores_) {
      CAIRN_ASSIGN(std::vector<int> here,
                   ranks_sharing(store, comm_.rank(), placement_, settings_));
      beside.push_back(std::move(here));
    }
    return LooksAfter([beside, me = comm_.rank()](std::size_t store, int owner) {
      const std::vector<int>& here = beside[store];
      if (std::binary_search(here.begin(), here.end(), owner)) return owner == me;
      return here[static_cast<std::size_t>(owner) % here.size()] == me;
    });
  }

  void take_in(const Summary& summary, std::vector<CachedDataset>& found) {
    HeldDataset& held = survey_->held(summary);
    CachedDataset dataset;
    dataset.info.uuid = summary.uuid;
    dataset.info.number = summary.number;
    dataset.info.checkpoint = summary.checkpoint;
    dataset.info.flags = summary.flags;
    dataset.info.ranks = summary.ranks;
    dataset.store = summary.store;
    dataset.state = judge(summary, static_cast<std::uint32_t>(comm_.size()), settings_.distribute);
    dataset.reason = reason_of(dataset.state, summary);
    if (dataset.state == CacheState::incomplete) return remove_incomplete(summary, held);
    if (dataset.state == CacheState::committed)
      restore_dataset(summary, held, found, dataset);
    else if (dataset.state == CacheState::other_ranks && summary.written_generation != 0)
      settle_of_others(summary, held, dataset);
    else
      set_aside(held, dataset);
    log_end(dataset);
    dataset.may_be_there = true;
    found.push_back(std::move(dataset));
  }

  /// Nothing of it is removed: a store that cannot be read now may be readable in the next run.
  void set_aside(const HeldDataset& held, CachedDataset& dataset) {
    if (dataset.state == CacheState::newer_format) {
      dataset.reason += "; this run does not change it";
      return log(Severity::warning,
                 fmt::format("dataset {}: {}", dataset.info.number, dataset.reason));
    }
    note_parts(held, dataset);
    if (dataset.state == CacheState::unreadable)
      tell_unrestored(dataset, {Code::lost, dataset.reason, -1});
    if (dataset.state == CacheState::left_alone)
      log(Severity::info,
          fmt::format("dataset {} in the cache: {}", dataset.info.number, dataset.reason));
  }

  /// And its name, for people: on all ranks alike, though some may have no record.
  void note_parts(const HeldDataset& held, CachedDataset& dataset) {
    const std::string here = name_in(held);
    const auto names = gather_first(comm_, std::as_bytes(std::span(here)), 1);
    Blob name = names.empty() ? Blob{} : names.front();
    bcast_blob(comm_, name, 0);
    dataset.info.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    for (const HeldPart& part : held.parts) dataset.parts.push_back(part.folder);
  }

  /// From a record that this rank looks after; empty if there is none.
  static std::string name_in(const HeldDataset& held) {
    for (const HeldPart& part : held.parts)
      for (const auto* records : {&part.own, &part.kept})
        if (!records->empty()) return records->front().record.dataset.name;
    return "";
  }

  /// Where a rank has lost its record, or has it elsewhere. That blocks are bad shows only while
  /// they are read, which the ranks of a set do by themselves: then the end logs the beginning.
  void log_start_if_known(const HeldDataset& held, std::uint64_t generation,
                          const DatasetInfo& info) {
    if (!events_.is_on()) return;
    const bool here = held.own_record(comm_.rank(), generation) != nullptr;
    if (allreduce(comm_, here ? 0 : 1, Reduce::max) != 0) log_start(info, name_in(held));
  }

  void log_start(DatasetInfo info, const std::string& name) {
    info.name = name;
    events_.happened("REBUILD_START", info);
    start_is_logged_ = true;
  }

  /// What came of a dataset for which something had to be done: once for each start.
  void log_end(const CachedDataset& dataset) {
    const bool failed = is_lost(dataset.state);
    const DatasetInfo& info = dataset.info;
    if (!start_is_logged_ && (failed || !dataset.restored.empty())) log_start(info, info.name);
    if (!std::exchange(start_is_logged_, false)) return;
    if (failed)
      events_.happened("REBUILD_FAIL", info, {}, dataset.reason);
    else
      events_.happened("REBUILD_SUCCESS", info, dataset.restore_seconds, dataset.restored);
  }

  /// What cannot be removed stays without a record to be taken for one, and the next run tries
  /// again.
  void remove_incomplete(const Summary& summary, const HeldDataset& held) {
    log(Severity::info, fmt::format("dataset {} was not complete (its run ended while it was "
                                    "written or deleted); its leftovers are removed",
                                    summary.number));
    for (const HeldPart& part : held.parts) warn(stores_[summary.store].remove(part.folder));
  }

  /// What was written and not protected gets its checksums, part by part.
  Status settle(const Summary& summary, HeldDataset& held, std::uint64_t generation,
                CachedDataset& dataset) {
    if (!summary.is_written(generation)) return {};
    Status settled;
    std::int64_t since_us = 0;
    for (HeldPart& part : held.parts) {
      for (const HeldRecord& own : part.own)
        if (own.record.exposure) since_us = std::max(since_us, own.record.exposure->since_us);
      if (settled) settled = settle_written(files_, part, generation);
    }
    exposure_ = describe_exposure({"", allreduce(comm_, since_us, Reduce::max)});
    const Status all = agree_lost_first(comm_, std::move(settled));
    if (!all) dataset.repair = chance_after(comm_, all.error(), own_part(held, generation));
    return all;
  }

  /// Of what was only written, and so never moved. A node that is away may have it protected, if it
  /// was amid that; whether one is away only the same number of ranks knows.
  PartSeen own_part(const HeldDataset& held, std::uint64_t generation) const {
    const HeldRecord* own = held.own_record(comm_.rank(), generation);
    const bool is_of_this_job =
        own != nullptr && own->record.dataset.ranks == static_cast<std::uint32_t>(comm_.size());
    return {is_of_this_job, held.has_unread()};
  }

  /// Another number of ranks copies it to the prefix directory, and needs the checksums for that.
  void settle_of_others(const Summary& summary, HeldDataset& held, CachedDataset& dataset) {
    const Status settled = settle(summary, held, survey_->choose_generation(summary), dataset);
    set_aside(held, dataset);
    if (settled) return;
    dataset.state = CacheState::lost;
    dataset.reason = not_protected(settled.error().text);
    tell_unrestored(dataset, settled.error());
  }

  /// The first line that has something for the user to do says it for the others too.
  void tell_unrestored(const CachedDataset& dataset, const Error& why) {
    const bool has_remedy = dataset.repair != CachedDataset::Repair::never;
    log(Severity::warning, cannot_be_restored(dataset, why, has_remedy && loss_.is_first()));
  }

  /// The reason why a dataset is lost that settle() has looked at: the same on all ranks.
  std::string not_protected(const std::string& what) const { return exposure_ + "; " + what; }

  void restore_dataset(const Summary& summary, HeldDataset& held,
                       const std::vector<CachedDataset>& newer, CachedDataset& dataset) {
    const std::uint64_t generation = survey_->choose_generation(summary);
    const bool newest = std::none_of(newer.begin(), newer.end(), [](const CachedDataset& other) {
      return other.usable() && other.info.is_checkpoint();
    });
    const std::int64_t from_us = clock_.steady_us();
    const DatasetInfo known_to_all = dataset.info;
    log_start_if_known(held, generation, known_to_all);
    const bool was_written = summary.is_written(generation);
    auto account = settle(summary, held, generation, dataset).and_then([&] {
      return restore(comm_, files_, stores_, settings_, held, generation, newest, dataset, log_);
    });
    if (!account && was_written) account.error().text = not_protected(account.error().text);
    if (!account) {
      // Some ranks may have read more in a record; what is decided by it must be equal everywhere.
      dataset.info = known_to_all;
      dataset.state = CacheState::lost;
      dataset.reason = account.error().text;
      if (const HeldRecord* own = held.own_record(comm_.rank(), generation))
        dataset.record = own->record;  // a restore may not have come so far
      note_parts(held, dataset);
      tell_unrestored(dataset, account.error());
      return;
    }
    dataset.state = CacheState::protected_;
    report(dataset, *account, static_cast<double>(clock_.steady_us() - from_us) * 1e-6);
    if (const Status anew = protect_anew(dataset); anew)
      remove_what_is_elsewhere(dataset);
    else
      dataset.weaker = anew.error();
    dataset.survives_nodes = survives_nodes_now(dataset);
  }

  /// On all ranks. The nodes of this run count, not those on which it was written.
  bool survives_nodes_now(const CachedDataset& dataset) {
    if (stores_[dataset.store].shared()) return true;
    const Encoding& encoding = dataset.record.encoding;
    const bool mine = encoding.scheme != Scheme::single &&
                      spread_over_groups(encoding.members, placement_.node_of_rank);
    return allreduce(comm_, mine ? 1 : 0, Reduce::min) != 0;
  }

  /// The copies that were moved. They stay until now because the places they were moved to may have
  /// needed new sets, and a node lost before those are committed may take two of an old one.
  void remove_what_is_elsewhere(CachedDataset& dataset) {
    Store& store = stores_[dataset.store];
    const RankFolder own = store.rank_folder(dataset.info, comm_.rank());
    for (const RankFolder& part : dataset.parts) {
      if (part.path != own.path) warn(store.remove(part));
    }
    dataset.parts = {own};
  }

  void report(CachedDataset& dataset, const RestoreAccount& account, double seconds) {
    dataset.restored = describe(account);
    dataset.restore_seconds = seconds;
    if (!dataset.restored.empty())
      log(Severity::info, fmt::format("{}: {}; took {}", dataset.label(), dataset.restored,
                                      format_seconds(seconds)));
  }

  /// The level under which a dataset found here would be protected now, if there is one.
  const Level* level_of(const CachedDataset& dataset) const {
    const Level& chosen = levels_[choose_level(levels_, dataset.info)];
    const auto protects_it = [&](const Level& level) {
      return level.store == dataset.store && !level.settings.bypass;
    };
    if (protects_it(chosen)) return &chosen;
    const auto another = std::find_if(levels_.begin(), levels_.end(), protects_it);
    return another == levels_.end() ? nullptr : &*another;
  }

  /// Where members of one set have come to share a failure group, makes new sets, if that helps;
  /// and where no rank has a set, as of what was only written. An error (agreed) if it would help,
  /// and failed.
  Status protect_anew(CachedDataset& dataset) {
    const Level* level = level_of(dataset);
    if (level == nullptr) return {};
    const std::vector<int>& members = dataset.record.encoding.members;
    std::array<std::int64_t, 2> any = {!spread_over_groups(members, level->failure_groups),
                                       members.size() == 1 && level->encoding.members.size() > 1};
    comm_.allreduce(any, Reduce::max);
    const auto [is_crowded, lacks_sets] = any;
    if (is_crowded == 0 && lacks_sets == 0) return {};
    if (lacks_sets == 0 && level->unprotected_ranks > 0) {
      log(Severity::warning,
          fmt::format("{}: ranks that protect each other now share one {}, and the job has too "
                      "few to form new redundancy sets: a single loss may lose the dataset",
                      dataset.label(), level->settings.group));
      return {};
    }
    if (!dataset.checked)
      CAIRN_TRY(check_and_heal(comm_, files_, stores_, settings_, dataset, log_));
    return encode_again(dataset, *level);
  }

  Status encode_again(CachedDataset& dataset, const Level& level) {
    Store& store = stores_[dataset.store];
    const RankFolder folder = store.rank_folder(dataset.info, comm_.rank());
    const RankRecord old = dataset.record;
    RankRecord fresh = old;
    const std::uint64_t generation = later_generation(comm_, clock_, old.encoding.generation);
    fresh.encoding = level.encoding;
    fresh.encoding.generation = generation;
    bool has_committed = false;
    Status status = protect_and_commit(comm_, files_, store, folder, fresh, settings_, &old,
                                       nullptr, &has_committed);
    if (!status) {
      const bool has_any = allreduce(comm_, has_committed ? 1 : 0, Reduce::max) != 0;
      if (!has_any) warn(remove_all(files_, folder.parity(generation)));
      log(Severity::warning, not_protected_anew(dataset, status.error()));
      return status;
    }
    dataset.record = std::move(fresh);
    log(Severity::info,
        fmt::format("{} is protected again, with redundancy sets for the nodes of this run",
                    dataset.label()));
    warn(remove_all(files_, folder.parity(old.encoding.generation)));
    return {};
  }

  static std::string not_protected_anew(const CachedDataset& dataset, const Error& why) {
    if (dataset.record.encoding.members.size() > 1)
      return fmt::format("{} keeps its old redundancy sets: {}", dataset.label(), why.text);
    return fmt::format(
        "{} is whole, but cannot be protected: {}. The loss of a node would lose it; older "
        "checkpoints stay until a newer one is protected, and the next run tries again",
        dataset.label(), why.text);
  }

  void warn(const Status& status) const {
    if (!status) log_.warning("rank {}: {}", comm_.rank(), status.error().text);
  }

  void log(Severity severity, const std::string& text) const {
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
  EventLog& events_;
  Once loss_;                     ///< logged with what the user can do
  bool start_is_logged_ = false;  ///< of the dataset that is looked at
  std::optional<Survey> survey_;
  std::string exposure_;  ///< of the dataset that settle() has looked at last
};

}  // namespace

Result<std::vector<CachedDataset>> recover_cache(Communicator& comm, Files& files, Clock& clock,
                                                 std::vector<Store>& stores,
                                                 const std::vector<Level>& levels,
                                                 const Placement& placement,
                                                 const Settings& settings, const Log& log,
                                                 EventLog& events) {
  return Recovery(comm, files, clock, stores, levels, placement, settings, log, events).run();
}

Status purge_cache(Communicator& comm, Files& files, std::vector<Store>& stores,
                   const Placement& placement) {
  const auto mine = [&](std::size_t, int owner) { return owner % comm.size() == comm.rank(); };
  const auto everything = [](std::size_t, int) { return true; };
  const bool leader = placement.beside(comm.rank()).front() == comm.rank();
  const auto purge = [&](Store& store) -> Status {
    const std::vector<Store> one = {store};
    CAIRN_ASSIGN(const Catalog catalog,
                 read_catalog(files, one, store.shared() ? LooksAfter(mine) : everything));
    for (const auto& [uuid, dataset] : catalog)
      for (const HeldPart& part : dataset.parts) CAIRN_TRY(store.remove(part.folder));
    return {};
  };
  Status purged;
  for (Store& store : stores)
    if (purged && (store.shared() || leader)) purged = purge(store);
  return agree(comm, std::move(purged));
}

}  // namespace cairn
