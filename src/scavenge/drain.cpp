#include "scavenge/drain.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "comm/alone.hpp"
#include "prefix/flush_parts.hpp"
#include "prefix/unread.hpp"
#include "scavenge/save_part.hpp"

namespace cairn {
namespace {

constexpr std::int64_t us_per_s = 1'000'000;

using Outcome = DrainedDataset::Outcome;

/// A plan, and what this node has of its dataset.
struct Share {
  UnfinishedFlush flush;
  /// By rank: where its part is. Several caches of the node may have it, and one may be damaged.
  std::map<int, std::vector<CachedPart>> parts;
  std::map<int, std::uint64_t> bytes;
};

Share share_of(Files& files, UnfinishedFlush flush, const std::vector<Remains>& held) {
  Share share{std::move(flush), {}, {}};
  const DatasetInfo& dataset = share.flush.plan.info;
  for (const Remains& remains : held) {
    if (remains.uuid != dataset.uuid) continue;
    for (const HeldPart& part : remains.parts) {
      const bool is_usable = !part.own.empty() && part.owner >= 0 &&
                             static_cast<std::uint32_t>(part.owner) < dataset.ranks;
      if (!is_usable) continue;
      share.parts[part.owner].push_back({dataset.uuid, part.owner, part.folder});
      share.bytes[part.owner] = bytes_of(read_part(files, part.folder, part.owner, dataset.uuid));
    }
  }
  return share;
}

class Draining {
 public:
  Draining(Files& files, Clock& clock, const PrefixFolder& folder, const DrainOptions& options,
           const std::function<void(ScavengeProgress)>& progress)
      : files_(files), clock_(clock), folder_(folder), options_(options), progress_(progress) {}

  Result<std::vector<DrainedDataset>> run(const std::vector<Remains>& held) {
    CAIRN_ASSIGN(auto plans, plans_to_drain(files_, folder_));
    std::vector<Share> shares;
    for (UnfinishedFlush& plan : plans) {
      shares.push_back(share_of(files_, std::move(plan), held));
      for (const auto& [rank, bytes] : shares.back().bytes) all_bytes_ += bytes;
    }
    std::vector<DrainedDataset> drained;
    for (const Share& share : shares) {
      CAIRN_TRY(check_time());
      CAIRN_ASSIGN(DrainedDataset one, drain_one(share));
      drained.push_back(std::move(one));
    }
    return drained;
  }

 private:
  Status check_time() const {
    const std::int64_t end_s = options_.limits.end_time_s;
    if (end_s == 0 || clock_.now_us() < end_s * us_per_s) return {};
    return fail(
        Code::busy,
        "the time is up (SCR_END_TIME {}): {} bytes are copied, and the next drain continues "
        "from there",
        end_s, moved_bytes_);
  }

  /// The rights are those of the epoch in which the run planned it; the keeper died with the run.
  Site site_of(const Share& share) const {
    TransferLimits limits;
    limits.width = 1;
    limits.bytes_per_s_node = options_.limits.bytes_per_s;
    return {files_,  clock_,
            folder_, share.flush.epoch,
            1,       options_.copy_metadata,
            limits,  options_.limits.io,
            nullptr, nullptr};
  }

  /// An error: the time is up. A part that fails does not keep the others from being copied.
  Result<DrainedDataset> drain_one(const Share& share) {
    const Site site = site_of(share);
    const DatasetRecord& plan = share.flush.plan;
    DrainedDataset drained{plan.info, {}, {}, Outcome::incomplete, {}};
    bool is_published = false;
    const auto note = [&](const Result<Publication::State>& reached) {
      if (!reached && drained.failure) drained.failure = tl::unexpected(reached.error());
      is_published = is_published || (reached && *reached == Publication::State::published);
    };
    for (const auto& [rank, parts] : share.parts) {
      CAIRN_TRY(check_time());
      drained.ranks.push_back(rank);
      note(copy_any(site, plan, parts));
      moved_bytes_ += share.bytes.at(rank);
      if (progress_) progress_({moved_bytes_, std::max(moved_bytes_, all_bytes_)});
    }
    const auto missing = find_missing(share.flush);
    if (missing)
      drained.missing = *missing;
    else if (drained.failure)
      drained.failure = tl::unexpected(missing.error());
    // The process that has copied the last part may have died before it could publish the dataset.
    const bool may_be_whole = missing && (missing->empty() || !files_.info(share.flush.folder));
    if (!is_published && may_be_whole) note(publish_if_done(site, plan));
    if (is_published) {
      drained.outcome = Outcome::published;
      drained.missing.clear();  // the markers are in another place now
    } else if (!drained.failure) {
      drained.outcome = Outcome::failed;
    }
    return drained;
  }

  static Result<Publication::State> copy_any(const Site& site, const DatasetRecord& plan,
                                             const std::vector<CachedPart>& parts) {
    Result<Publication::State> reached = Publication::State::planned;
    for (const CachedPart& part : parts) {
      reached = publish_alone(site, plan, {part});
      if (reached || !is_damage(reached.error().code)) break;
    }
    return reached;
  }

  /// The ranks whose parts are not marked as copied.
  Result<std::vector<int>> find_missing(const UnfinishedFlush& flush) const {
    CAIRN_ASSIGN(const auto markers, names_in(files_, DatasetFolder::markers(flush.folder)));
    const auto marked = numbers_after("0.", markers);
    const std::set<std::uint64_t> copied(marked.begin(), marked.end());
    std::vector<int> missing;
    for (std::uint32_t rank = 0; rank < flush.plan.info.ranks; ++rank)
      if (!copied.contains(rank)) missing.push_back(static_cast<int>(rank));
    return missing;
  }

  Files& files_;
  Clock& clock_;
  const PrefixFolder& folder_;
  const DrainOptions& options_;
  const std::function<void(ScavengeProgress)>& progress_;
  std::uint64_t all_bytes_ = 0;
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace

Result<std::vector<UnfinishedFlush>> plans_to_drain(Files& files, const PrefixFolder& folder) {
  std::vector<std::string> damaged;  // no command can use these
  std::vector<UnreadDataset> unread;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged, nullptr, &unread));
  Alone alone;
  auto read = read_unfinished(alone, files, folder, listing);
  for (std::size_t i = 0; read && i < read->size(); ++i)
    if (const Status known =
            check_unread(UnreadMatters::give_names, unread, {(*read)[i].plan.info.uuid});
        !known)
      read = tl::unexpected(known.error());
  if (!read)
    return fail(
        read.error().code,
        "it is unknown whether {} has unfinished copies, so nothing was copied now: {}. Try "
        "again before the nodes are given back",
        folder.prefix, read.error().text);
  std::vector<UnfinishedFlush> plans = *std::move(read);
  // A later owner has closed the epoch of the others, and decides what becomes of them.
  std::erase_if(plans, [&](const UnfinishedFlush& flush) {
    return flush.folder != folder.pending(flush.epoch, flush.plan.info);
  });
  std::stable_sort(plans.begin(), plans.end(),
                   [](const UnfinishedFlush& a, const UnfinishedFlush& b) {
                     return is_saved_before(a.plan.info, b.plan.info);
                   });
  return plans;
}

Result<std::vector<DrainedDataset>> drain(Files& files, Clock& clock, const PrefixFolder& folder,
                                          const std::vector<Remains>& held,
                                          const DrainOptions& options,
                                          const std::function<void(ScavengeProgress)>& progress) {
  return Draining(files, clock, folder, options, progress).run(held);
}

}  // namespace cairn
