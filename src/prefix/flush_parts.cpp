#include "prefix/flush_parts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "prefix/epoch_folder.hpp"
#include "prefix/flush.hpp"
#include "prefix/manifest.hpp"
#include "prefix/messages.hpp"

namespace cairn {
namespace {

/// Collective. Which of the cached parts this process is to do: of several that have the same one,
/// the first. Rank r is asked about parts r, r + size and so on, so that no rank is asked much.
std::vector<CachedPart> share_out(Communicator& comm, const DatasetInfo& dataset,
                                  const std::vector<CachedPart>& cached) {
  std::map<int, Encoder> questions;
  for (const CachedPart& part : cached)
    if (part.dataset == dataset.uuid && part.rank >= 0 &&
        static_cast<std::uint32_t>(part.rank) < dataset.ranks)
      questions[part.rank % comm.size()].u32(static_cast<std::uint32_t>(part.rank));
  std::set<std::uint32_t> given;
  std::map<int, Encoder> answers;
  exchange_messages(comm, std::move(questions), [&](int peer, Decoder& in) {
    if (const std::uint32_t rank = in.u32(); given.insert(rank).second) answers[peer].u32(rank);
  });
  std::set<int> mine;
  exchange_messages(comm, std::move(answers),
                    [&](int, Decoder& in) { mine.insert(static_cast<int>(in.u32())); });
  std::vector<CachedPart> parts;
  for (const CachedPart& part : cached)
    if (part.dataset == dataset.uuid && mine.erase(part.rank) > 0) parts.push_back(part);
  return parts;
}

/// Local. Does these parts; true if all parts of the plan are done.
Result<bool> carry_all_on(const Site& site, const DatasetRecord& plan,
                          const std::vector<CachedPart>& parts) {
  bool whole = false;
  for (const CachedPart& part : parts) {
    CAIRN_ASSIGN(const bool last, carry_on(site, plan, part));
    whole = whole || last;
  }
  return whole;
}

/// Local. Looks at the parts in manifest `first`, and in each `step`th after it; true if all parts
/// of the plan are done.
Result<bool> look_after_all(const Site& site, const DatasetRecord& plan, int first, int step) {
  bool whole = false;
  for (auto number = static_cast<std::uint32_t>(first); number < plan.manifests();
       number += static_cast<std::uint32_t>(step)) {
    CAIRN_ASSIGN(const bool last, look_after(site, plan, number));
    whole = whole || last;
  }
  return whole;
}

/// Collective. Of each part, one process has it in `parts`.
Result<bool> do_parts(Communicator& comm, const Site& site, const DatasetRecord& plan,
                      const std::vector<CachedPart>& parts) {
  Result<bool> copied = false;
  in_turns(comm, site.limits.width, [&] { copied = carry_all_on(site, plan, parts); });
  const Result<bool> seen = copied ? look_after_all(site, plan, comm.rank(), comm.size()) : copied;
  CAIRN_TRY(agree(comm, seen.map([](bool) {})));
  return allreduce(comm, *copied || *seen ? 1 : 0, Reduce::max) != 0;
}

}  // namespace

Result<bool> do_cached_parts(Communicator& comm, const Site& site, const DatasetRecord& plan,
                             const std::vector<CachedPart>& cached) {
  return do_parts(comm, site, plan, share_out(comm, plan.info, cached));
}

namespace {

/// Whether all parts are done (`whole`), or why that is unknown.
Result<Publication::State> publish_whole(const Site& site, const DatasetRecord& plan,
                                         const Result<bool>& whole) {
  // Where its folder is gone another process has published it meanwhile, or a later owner has the
  // plan. If that is unknown, the parts decide.
  const EpochFolder epoch(site.files, site.folder, site.epoch);
  const auto pending = site.files.info(site.folder.pending(site.epoch, plan.info));
  if (!pending && pending.error().code == Code::not_found) {
    if (!epoch.is_published(plan.info))
      return tl::unexpected(epoch.under_epoch(tl::unexpected(pending.error())).error());
    CAIRN_TRY(
        site.files.sync_folder(site.folder.datasets()));  // the process that did it may not have
    return Publication::State::published;
  }
  CAIRN_TRY(whole);
  if (!*whole || site.files.info(site.folder.dataset(plan.info)))
    return Publication::State::planned;
  CAIRN_TRY(epoch.publish_once(plan.info));
  return Publication::State::published;
}

}  // namespace

Result<Publication::State> publish_alone(const Site& site, const DatasetRecord& plan,
                                         const std::vector<CachedPart>& parts) {
  return publish_whole(site, plan, carry_all_on(site, plan, parts));
}

Result<Publication::State> publish_if_done(const Site& site, const DatasetRecord& plan) {
  return publish_whole(site, plan, look_after_all(site, plan, 0, 1));
}

namespace {

/// Without what grows with its data: many are held at once.
RankRecord outline_of(RankRecord&& whole) {
  RankRecord outline;
  outline.dataset = std::move(whole.dataset);
  outline.rank = whole.rank;
  outline.files = std::move(whole.files);
  return outline;
}

/// What the caches of these processes have of a dataset.
class CachedParts final : public Staging {
 public:
  CachedParts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
              const std::vector<CachedPart>& cached, const ReadRecord& read)
      : site_(site),
        dataset_(dataset),
        read_(read),
        deal_(dataset.ranks, comm.size()),
        parts_(share_out(comm, dataset, cached)) {}

  /// Collective. That there is a record of every part. The error is local.
  Status look(Communicator& comm) {
    const Status whole = find_gap(comm);
    for (const CachedPart& part : parts_) {
      CAIRN_ASSIGN(RankRecord record, read_(part));
      records_.push_back(outline_of(std::move(record)));
    }
    return whole;
  }

  /// Collective, after look(). What a survey knows of the dataset is not all: the first process
  /// that has a part says it.
  DatasetInfo share_info(Communicator& comm) const {
    const int first = static_cast<int>(
        allreduce(comm, records_.empty() ? comm.size() : comm.rank(), Reduce::min));
    const bool is_first = comm.rank() == first;
    Blob blob = encode(record_of(is_first ? records_.front().dataset : dataset_, ""));
    bcast_blob(comm, blob, first);
    return decode_dataset_record(blob).value().info;
  }

  std::span<const RankRecord> records() const override { return records_; }

  Status describe(Communicator& comm, const std::string& folder, Status seen) override {
    std::map<int, const CachedPart*> parts;
    HeldRecords held;
    for (const CachedPart& part : parts_) {
      parts[part.rank] = &part;
      held.ranks.insert(part.rank);
    }
    held.seal = [&](int rank) {
      return read_(*parts.at(rank)).map([](const RankRecord& record) { return encode(record); });
    };
    held.holder_of = [&](int rank) { return holders_.at(rank); };
    const Status written = write_manifests(comm, site_.files, folder, deal_, held);
    return agree(comm, seen ? written : seen);
  }

  Result<bool> stage(Communicator& comm, const DatasetRecord& plan,
                     const Status& planned) override {
    CAIRN_TRY(agree(comm, planned));
    return do_parts(comm, site_, plan, parts_);
  }

 private:
  /// Which process writes the manifest that has this rank.
  int writer_for(int rank) const {
    const auto part = static_cast<std::uint64_t>(rank);
    return deal_.rank_of(part - part % ranks_per_manifest);
  }

  Status find_gap(Communicator& comm) {
    std::map<int, Encoder> messages;
    for (const CachedPart& part : parts_)
      messages[writer_for(part.rank)].u32(static_cast<std::uint32_t>(part.rank));
    exchange_messages(comm, std::move(messages), [&](int peer, Decoder& in) {
      holders_.emplace(static_cast<int>(in.u32()), peer);
    });
    for (int rank = 0; rank < static_cast<int>(dataset_.ranks); ++rank)
      if (writer_for(rank) == comm.rank() && !holders_.contains(rank))
        return fail(Code::lost, "no node of this run has the part of rank {} in its cache", rank);
    return {};
  }

  const Site& site_;
  const DatasetInfo& dataset_;
  const ReadRecord& read_;
  const Deal deal_;
  const std::vector<CachedPart> parts_;  ///< that this process does
  std::map<int, int> holders_;           ///< by rank, of those whose manifest this process writes
  std::vector<RankRecord> records_;      ///< of the parts that this process does, in outline
};

}  // namespace

Result<DatasetInfo> find_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               const std::vector<CachedPart>& cached, const ReadRecord& read) {
  CachedParts parts(comm, site, dataset, cached, read);
  CAIRN_TRY(agree(comm, parts.look(comm)));
  return parts.share_info(comm);
}

Result<FlushAccount> flush_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                                 const std::vector<CachedPart>& cached, const ReadRecord& read,
                                 const std::string& job_id) {
  CachedParts parts(comm, site, dataset, cached, read);
  const Status found = parts.look(comm);
  const Status single = refuse_double_names(comm, parts.records());
  CAIRN_TRY(agree(comm, found ? single : found));
  CAIRN_TRY(refuse_late_names(comm, site, parts.records()));
  Publication publication(site, parts, record_of(parts.share_info(comm), job_id));
  CAIRN_ASSIGN(FlushAccount account, publication.run(comm));
  if (account.settled) return account;
  return fail(account.settled.error().code,
              "all of it is copied, but some files still have temporary names: {}",
              account.settled.error().text);
}

}  // namespace cairn
