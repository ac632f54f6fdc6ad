#include "scavenge/scavenge.hpp"

#include <algorithm>
#include <atomic>
#include <set>

#include "files/lock_patiently.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/keeper.hpp"
#include "recovery/dead_caches.hpp"
#include "recovery/written.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/save_part.hpp"

namespace cairn {
namespace {

constexpr std::int64_t us_per_s = 1'000'000;
constexpr std::uint32_t for_all = 0777;  // less the umask, as all of <prefix>/.cairn
constexpr std::uint32_t only_me = 0700;

/// None where the program was still writing. Where its records were, but cannot be read here, its
/// files may still be what another node has the records of.
std::optional<Holding> holding_of(Files& files, Remains&& remains) {
  Holding holding;
  const HeldRecord* known = record_of(remains);
  holding.committed = may_be_committed(remains);
  if (known == nullptr && !holding.committed) return std::nullopt;
  holding.info.uuid = remains.uuid;
  holding.info.number = remains.number;
  if (known != nullptr) holding.info = known->record.dataset;
  if (holding.info.in_place()) return std::nullopt;
  holding.remains = std::move(remains);
  for (const HeldPart& part : holding.remains.parts)
    holding.bytes += bytes_of(read_part(files, part.folder, part.owner, holding.remains.uuid));
  return holding;
}

/// Copying too much does no harm: nothing of it is published before this can be read.
template <class List>
List or_none(Result<List>&& read, std::string_view what, const Log& log) {
  if (!read)
    log.warning("{}: the list of {} datasets is unknown, so these are copied too",
                read.error().text, what);
  return std::move(read).value_or(List{});
}

/// For one process of a node at a time, and to know when to stop.
class Scavenging {
 public:
  Scavenging(Files& files, Clock& clock, const ScavengeLimits& limits,
             const std::function<void(ScavengeProgress)>& progress, const Log& log)
      : files_(files),
        clock_(clock),
        limits_(limits),
        throttle_(clock, limits.bytes_per_s),
        progress_(progress),
        log_(log) {}

  Result<ScavengeAccount> run(const PrefixFolder& folder, const std::string& node,
                              const std::vector<Holding>& holdings) {
    CAIRN_ASSIGN(const auto lock, claim(folder, node));
    CAIRN_ASSIGN(const Store target, Store::at(files_, folder.saved().of_node(node)));
    for (const Holding& holding : holdings) all_bytes_ += holding.bytes;
    for (const Holding& holding : holdings) CAIRN_TRY(save(folder, holding, target));
    return account_;
  }

 private:
  Result<std::unique_ptr<FileLock>> claim(const PrefixFolder& folder, const std::string& node) {
    CAIRN_TRY(make_folders(files_, folder.root(), for_all));
    for (const std::string& path : {folder.saved().scavenged(), folder.saved().of_node(node)}) {
      CAIRN_TRY(files_.make_folder(path, only_me));
      CAIRN_TRY(files_.sync_folder(folder_of(path)));
    }
    auto lock = lock_patiently(files_, clock_, folder.saved().of_node(node) + "/lock",
                               clock_.steady_us() + lock_patience_us);
    if (!lock && lock.error().code == Code::busy)
      return fail(Code::busy, "another process is scavenging {} now: {}", node, lock.error().text);
    if (!lock)
      log_.warning("{}; continuing without a lock: do not run two scavenges of {} at the same time",
                   lock.error().text, node);
    return lock ? *std::move(lock) : nullptr;
  }

  Status save(const PrefixFolder& folder, const Holding& holding, const Store& target) {
    CAIRN_TRY(forget_failure(files_, folder, holding.remains.uuid));
    for (const HeldPart& outline : holding.remains.parts) {
      HeldPart part = read_part(files_, outline.folder, outline.owner, holding.remains.uuid);
      if (const Status settled = settle(part); !settled) {
        log_.warning("dataset {} ({}): {}; this part is not saved", holding.info.number,
                     holding.info.name, settled.error().text);
        continue;
      }
      const RankFolder to = target.rank_folder(holding.info, part.owner);
      CAIRN_TRY(make_folders(files_, folder_of(to.path), only_me));
      const SaveOptions options{limits_.io, throttle_,
                                [this](std::uint64_t bytes) { return go_on(bytes); }};
      CAIRN_TRY(go_on(0));
      CAIRN_ASSIGN(const SaveAccount saved,
                   save_part(files_, holding.remains.uuid, part, to, options));
      add(holding, saved);
      account_.files += part.own.empty() ? 0 : part.own.front().record.files.size();
    }
    CAIRN_TRY(files_.sync_folder(target.dataset_folder(holding.info)));
    return files_.sync_folder(target.root());
  }

  /// Only on its node can be known whether what has no checksums yet is what the program wrote. If
  /// it is not, a record of a later generation may name more of it.
  Status settle(HeldPart& part) {
    const auto is_written = [](const HeldRecord& own) { return own.record.exposure.has_value(); };
    const auto written = std::find_if(part.own.begin(), part.own.end(), is_written);
    if (written == part.own.end()) return {};
    Status settled = settle_written(files_, part, written->record.encoding.generation);
    if (settled) return {};
    std::erase_if(part.own, is_written);
    return part.own.empty() ? settled : Status{};
  }

  void add(const Holding& holding, const SaveAccount& saved) {
    account_.bytes += saved.bytes;
    account_.saved_bytes += saved.saved_bytes;
    account_.bad_blocks += saved.bad_blocks;
    if (account_.unreadable.empty()) account_.unreadable = saved.unreadable;
    if (saved.bad_blocks > 0)
      log_.warning("dataset {} ({}): {}; a rebuild treats {} blocks as missing",
                   holding.info.number, holding.info.name, saved.first_trouble, saved.bad_blocks);
  }

  Status go_on(std::uint64_t bytes) {
    const std::uint64_t moved = moved_bytes_ += bytes;
    if (progress_) progress_({moved, std::max(moved, all_bytes_)});
    if (limits_.end_time_s == 0 || clock_.now_us() < limits_.end_time_s * us_per_s) return {};
    return fail(Code::busy,
                "the time is up (SCR_END_TIME {}): {} bytes are copied, and the next scavenge "
                "continues from there",
                limits_.end_time_s, moved);
  }

  Files& files_;
  Clock& clock_;
  const ScavengeLimits& limits_;
  Throttle throttle_;
  const std::function<void(ScavengeProgress)>& progress_;
  const Log& log_;
  std::uint64_t all_bytes_ = 0;
  std::atomic<std::uint64_t> moved_bytes_ = 0;
  ScavengeAccount account_;
};

}  // namespace

bool is_saved_before(const DatasetInfo& a, const DatasetInfo& b) {
  if (a.is_output() != b.is_output()) return a.is_output();
  return a.is_output() ? a.uuid < b.uuid : a.uuid > b.uuid;
}

const HeldRecord* record_of(const Remains& remains) {
  const HeldRecord* best = nullptr;
  for (const HeldPart& part : remains.parts)
    for (const auto* records : {&part.own, &part.kept})
      for (const HeldRecord& held : *records)
        if (best == nullptr || (held.committed && !best->committed)) best = &held;
  return best;
}

std::vector<int> Holding::ranks() const {
  std::set<int> ranks;
  for (const HeldPart& part : remains.parts)
    if (!part.own.empty()) ranks.insert(part.owner);
  return {ranks.begin(), ranks.end()};
}

Result<std::vector<Holding>> find_holdings(Files& files, const std::vector<std::string>& caches,
                                           const PrefixFolder& folder,
                                           std::vector<std::string>& unreadable, const Log& log) {
  std::vector<std::string> damaged;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged));
  const Dropped dropped = or_none(read_dropped(files, folder), "dropped", log);
  std::string damage;
  const Listing deleted = or_none(read_deleted(files, folder, &damage), "deleted", log);
  if (!damage.empty()) log.warning("{}", damage);
  const Listing attempts = read_attempts(files, folder).value_or(Listing{});
  std::vector<Remains> found;
  for (const std::string& cache : caches) {
    CAIRN_ASSIGN(auto remains, find_remains(files, {cache}, RecordDetail::outline, &unreadable));
    std::move(remains.begin(), remains.end(), std::back_inserter(found));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Remains& a, const Remains& b) { return a.uuid > b.uuid; });
  std::vector<Holding> holdings;
  for (Remains& remains : found)
    if (auto holding = holding_of(files, std::move(remains))) {
      const PrefixState there =
          state_in_prefix(holding->info.uuid, listing, {}, dropped, attempts, deleted);
      // A user has given it up, and would get it back.
      if (is_held_back(there) || is_given_up(there)) continue;
      holding->in_prefix = is_flushed(there);
      holding->outlived = is_outlived(holding->info, listing);
      holdings.push_back(*std::move(holding));
    }
  return holdings;
}

Result<ScavengeAccount> scavenge(Files& files, Clock& clock, const PrefixFolder& folder,
                                 const std::string& node, const std::vector<Holding>& holdings,
                                 const ScavengeLimits& limits,
                                 const std::function<void(ScavengeProgress)>& progress,
                                 const Log& log) {
  return Scavenging(files, clock, limits, progress, log).run(folder, node, holdings);
}

}  // namespace cairn
