#include "tools/job_facts.hpp"

#include <algorithm>

#include "comm/alone.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/prefix_folder.hpp"
#include "prefix/scr_import.hpp"
#include "prefix/scr_index.hpp"
#include "recovery/dead_caches.hpp"

namespace cairn {
namespace {

class Gatherer {
 public:
  Gatherer(Files& files, Clock& clock, const Settings& settings, const Log& log)
      : files_(files), clock_(clock), settings_(settings), folder_{settings.prefix}, log_(log) {}

  Result<JobFacts> run(const std::vector<std::string>& folders, std::uint32_t ranks) {
    CAIRN_TRY(find_all_caches(folders));
    CAIRN_ASSIGN(std::vector<Remains> cached,
                 find_remains(files_, facts_.caches, RecordDetail::outline, &facts_.unreadable));
    std::vector<Remains> scavenged = read_saved();
    read_prefix();
    facts_.ranks = ranks != 0 ? ranks : ranks_of_newest(cached, scavenged);
    for (Remains& remains : cached) facts_.cached.push_back(look_at(std::move(remains)));
    for (Remains& remains : scavenged)
      facts_.scavenged.push_back(with_known_failure(look_at(std::move(remains))));
    return std::move(facts_);
  }

 private:
  Status find_all_caches(const std::vector<std::string>& folders) {
    if (folders.empty()) take_job_caches(caches_of_job(files_, settings_));
    for (const std::string& folder : folders)
      CAIRN_TRY(find_caches(files_, folder, facts_.caches, log_));
    facts_.running = those_in_work(facts_.caches);
    return {};
  }

  void take_job_caches(JobCaches caches) {
    facts_.caches = std::move(caches.used);
    facts_.left_caches = std::move(caches.left);
    facts_.ignored = std::move(caches.ignored);
    facts_.unreadable = std::move(caches.unreadable);
  }

  std::vector<std::string> those_in_work(const std::vector<std::string>& caches) const {
    std::vector<std::string> found;
    for (const std::string& cache : caches)
      if (is_locked(cache)) found.push_back(cache);
    if (found.empty()) return found;
    // Another command that only checks the lock holds it no longer than that.
    constexpr std::int64_t pause_us = 50'000;
    clock_.sleep_us(pause_us);
    std::erase_if(found, [this](const std::string& cache) { return !is_locked(cache); });
    return found;
  }

  bool is_locked(const std::string& cache) const {
    const std::string path = cache + "/lock";
    if (!files_.info(path)) return false;
    const auto lock = files_.lock(path);
    return !lock && lock.error().code == Code::busy;
  }

  /// Only the user who has scavenged it, and root, may read it.
  std::vector<Remains> read_saved() {
    const auto folders = saved_caches(files_, folder_);
    facts_.in_work = those_in_work(folders.value_or(std::vector<std::string>{}));
    auto saved = find_saved(files_, folder_, &facts_.unreadable);
    if (!saved) log_.warning("what was scavenged cannot be seen: {}", saved.error().text);
    return std::move(saved).value_or(std::vector<Remains>{});
  }

  void read_prefix() {
    const auto info = files_.info(folder_.prefix + "/.");
    facts_.prefix.is_there = info && info->kind == Kind::folder;
    const Status usable = look_into_prefix();
    if (!usable) facts_.prefix.trouble = usable.error().text;
  }

  /// A missing directory is no trouble: nothing has been flushed yet.
  Status look_into_prefix() {
    const auto root = files_.info(folder_.root());
    if (!root && root.error().code != Code::not_found) return tl::unexpected(root.error());
    if (facts_.prefix.is_there) CAIRN_TRY(read_books());
    return root ? may_become_owner(root->owner) : Status{};
  }

  /// The checks of Keeper::take_over, which begins by creating files of the owner. If the directory
  /// belongs to another user, the question is about runs of that user.
  Status may_become_owner(std::uint32_t user) {
    CAIRN_TRY(names_in(files_, folder_.root()).map([](const auto&) {}));
    const Status allowed = files_.may_change(folder_.root());
    if (!allowed && user == files_.effective_user()) return allowed;
    if (!allowed) facts_.prefix.not_mine = allowed.error().text;
    const auto space = files_.space(folder_.root());
    if (space && space->total_bytes > 0 && space->free_bytes == 0)
      return fail(Code::no_space, "no space is left in {}", settings_.prefix);
    return {};
  }

  Status read_books() {
    PrefixFacts& prefix = facts_.prefix;
    CAIRN_ASSIGN(prefix.listing,
                 read_listing(files_, folder_, prefix.unreadable, nullptr, &prefix.unread));
    CAIRN_ASSIGN(prefix.dropped, read_dropped(files_, folder_));
    CAIRN_ASSIGN(const std::string named, read_current(files_, folder_, &prefix.current_damage));
    prefix.current = current_in(prefix.listing, named);
    Alone alone;
    auto unfinished = read_unfinished(alone, files_, folder_, prefix.listing, &facts_.unreadable);
    // A run that cannot read these leaves them, and fetches all the same.
    if (!unfinished) facts_.unreadable.push_back(unfinished.error().text);
    prefix.unfinished = std::move(unfinished).value_or(std::vector<UnfinishedFlush>{});
    prefix.attempts = read_attempts(files_, folder_).value_or(Listing{});
    CAIRN_ASSIGN(prefix.deleted, read_deleted(files_, folder_, &prefix.deleted_damage));
    read_those_of_scr();
    const auto owner = read_owner(files_, folder_);
    if (!owner && owner.error().code == Code::newer_format) return tl::unexpected(owner.error());
    if (!owner || !*owner || (*owner)->beat_us == 0) return {};
    prefix.owner = **owner;
    OwnerRecord me;
    me.job_id = settings_.job_id;
    me.user = settings_.user;
    me.host = settings_.node_name;
    prefix.owner_is_rival = is_rival(**owner, me);
    return {};
  }

  void read_those_of_scr() {
    PrefixFacts& prefix = facts_.prefix;
    auto index = read_scr_index(files_, folder_.prefix);
    if (!index) {
      if (may_have_scr_index(files_, folder_.prefix))
        prefix.scr_trouble = {index.error().text, may_import_later(index.error().code)};
      return;
    }
    prefix.scr = *std::move(index);
    for (std::size_t i = 0; i < prefix.scr.datasets.size(); ++i) {
      ScrDataset& dataset = prefix.scr.datasets[i];
      read_scr_details(files_, folder_.prefix, dataset);
      const Uuid uuid = dataset.uuid();
      const bool known = find_in(prefix.listing, uuid) != nullptr || prefix.dropped.has(uuid) ||
                         find_in(prefix.deleted, uuid) != nullptr;
      if (dataset.trouble.empty() && !known) prefix.of_scr.push_back(i);
    }
  }

  std::uint32_t ranks_of_newest(const std::vector<Remains>& cached,
                                const std::vector<Remains>& scavenged) const {
    Uuid newest;
    std::uint32_t ranks = 0;
    const auto take = [&](const Uuid& uuid, std::uint32_t written_by) {
      if (uuid <= newest || written_by == 0) return;
      newest = uuid;
      ranks = written_by;
    };
    for (const auto* all : {&cached, &scavenged})
      for (const Remains& remains : *all) take(remains.uuid, remains.ranks);
    for (const DatasetRecord& record : facts_.prefix.listing)
      take(record.info.uuid, record.info.ranks);
    for (const std::size_t number : facts_.prefix.of_scr) {
      const ScrDataset& dataset = facts_.prefix.scr.datasets[number];
      take(dataset.uuid(), static_cast<std::uint32_t>(dataset.ranks.size()));
    }
    return ranks;
  }

  CachedFacts look_at(Remains remains) const {
    CachedFacts facts{std::move(remains), {}, {}, {}};
    facts.state = look_at_cache(files_, facts.remains, facts_.ranks, settings_, false, log_);
    CachedDataset& dataset = facts.dataset;
    const Summary& summary = facts.state.summary;
    dataset.info = {summary.uuid,  summary.number, summary.checkpoint,
                    summary.flags, summary.ranks,  facts.remains.name};
    // SCR_Init protects what is only written, and offers it.
    dataset.state =
        facts.state.state == CacheState::written ? CacheState::protected_ : facts.state.state;
    dataset.there = state_in_prefix(summary.uuid, left_by_purge(facts_.prefix, settings_).listing,
                                    facts_.prefix.unread, facts_.prefix.dropped,
                                    facts_.prefix.attempts, facts_.prefix.deleted);
    return facts;
  }

  CachedFacts with_known_failure(CachedFacts saved) const {
    saved.failure = known_failure(files_, folder_, saved.remains.uuid);
    if (saved.failure.lost.empty() || !saved.state.can_be_whole()) return saved;
    saved.state.reasons.push_back(saved.failure.lost);
    if (saved.dataset.usable()) saved.dataset.state = saved.state.state = CacheState::lost;
    return saved;
  }

  Files& files_;
  Clock& clock_;
  const Settings& settings_;
  const PrefixFolder folder_;
  const Log& log_;
  JobFacts facts_;
};

}  // namespace

const PrefixFacts& left_by_purge(const PrefixFacts& prefix, const Settings& settings) {
  static const PrefixFacts nothing;
  return purges_prefix(settings) ? nothing : prefix;
}

bool JobFacts::is_deleted(const CachedDataset& dataset) const {
  return prefix.trouble.empty() && dataset.there == PrefixState::deleted &&
         !is_left_alone(dataset.state);
}

std::vector<CachedDataset> JobFacts::cached_datasets() const {
  std::vector<CachedDataset> datasets;
  for (const CachedFacts& facts : cached)
    if (facts.dataset.state != CacheState::incomplete && !is_deleted(facts.dataset))
      datasets.push_back(facts.dataset);
  return datasets;
}

Result<JobFacts> gather_facts(Files& files, Clock& clock, const Settings& settings,
                              const std::vector<std::string>& folders, std::uint32_t ranks,
                              const Log& log) {
  return Gatherer(files, clock, settings, log).run(folders, ranks);
}

}  // namespace cairn
