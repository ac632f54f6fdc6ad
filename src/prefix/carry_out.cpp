#include "prefix/carry_out.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "prefix/flush.hpp"
#include "prefix/letters.hpp"
#include "prefix/manifest.hpp"

namespace cairn {

/// Rank r is asked about parts r, r + size and so on.
std::vector<CachedPart> claim(Communicator& comm, const DatasetInfo& dataset,
                              const std::vector<CachedPart>& cached) {
  std::map<int, Encoder> questions;
  for (const CachedPart& part : cached)
    if (part.dataset == dataset.uuid && part.rank >= 0 &&
        static_cast<std::uint32_t>(part.rank) < dataset.ranks)
      questions[part.rank % comm.size()].u32(static_cast<std::uint32_t>(part.rank));
  std::set<std::uint32_t> given;
  std::map<int, Encoder> answers;
  exchange_letters(comm, std::move(questions), [&](int peer, Decoder& in) {
    if (const std::uint32_t rank = in.u32(); given.insert(rank).second) answers[peer].u32(rank);
  });
  std::set<int> mine;
  exchange_letters(comm, std::move(answers),
                   [&](int, Decoder& in) { mine.insert(static_cast<int>(in.u32())); });
  std::vector<CachedPart> parts;
  for (const CachedPart& part : cached)
    if (part.dataset == dataset.uuid && mine.erase(part.rank) > 0) parts.push_back(part);
  return parts;
}

Result<bool> carry_out(Communicator& comm, const Site& site, const DatasetRecord& plan,
                       const std::vector<CachedPart>& cached) {
  bool whole = false;
  Status status;
  const auto note = [&](Result<bool> done) {
    whole = whole || (done && *done);
    if (!done && status) status = tl::unexpected(std::move(done).error());
  };
  const std::vector<CachedPart> parts = claim(comm, plan.info, cached);
  in_turns(comm, site.limits.width, [&] {
    for (const CachedPart& part : parts)
      if (status) note(carry_on(site, plan, part));
  });
  visit_dealt(comm, plan.manifests(), [&](std::size_t i) {
    if (status) note(look_after(site, plan, static_cast<std::uint32_t>(i)));
  });
  CAIRN_TRY(agree(comm, std::move(status)));
  return allreduce(comm, whole ? 1 : 0, Reduce::max) != 0;
}

namespace {

class PartsFlush {
 public:
  PartsFlush(Communicator& comm, const Site& site, const DatasetInfo& dataset,
             const std::vector<RecordedPart>& cached)
      : comm_(comm),
        site_(site),
        dataset_(dataset),
        pending_(site.folder.pending(site.epoch, dataset)) {
    std::vector<CachedPart> parts;
    for (const RecordedPart& each : cached) parts.push_back(each.part);
    parts_ = claim(comm, dataset, parts);
    for (const CachedPart& part : parts_)
      records_.push_back(std::find_if(cached.begin(), cached.end(), [&](const RecordedPart& each) {
                           return each.part.rank == part.rank;
                         })->record);
  }

  Status find() { return agree(comm_, collect()); }

  Status run(const std::string& job_id) {
    Status found = collect();
    const Status single = refuse_double_names(comm_, records_);
    if (found) found = single;
    CAIRN_TRY(agree(comm_, std::move(found)));
    const DatasetRecord plan = describe_all(job_id);
    CAIRN_TRY(refuse_late_names(comm_, site_, records_));
    CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.begin(plan.info); }));
    if (Status done = publish(plan); !done) {
      give_up();
      return done;
    }
    if (Status settled = settle(plan); !settled)
      return fail(settled.error().code, "all of it is there, but not under its own names yet: {}",
                  settled.error().text);
    return {};
  }

  /// After find(). What a survey knows of the dataset is not all; rank 0 has the first manifest.
  DatasetRecord describe_all(const std::string& job_id) {
    const bool first = comm_.rank() == 0;
    Blob blob =
        encode(describe(comm_, site_, first ? manifests_.at(0).begin()->second.dataset : dataset_,
                        records_, job_id));
    bcast_blob(comm_, blob, 0);
    return decode_dataset_record(blob).value();
  }

 private:
  using Manifests = std::map<std::uint32_t, std::map<int, RankRecord>>;

  /// The records to those who write the manifests.
  Status collect() {
    std::map<int, Blob> letters;
    for (const RankRecord& record : records_) {
      const std::uint32_t number = static_cast<std::uint32_t>(record.rank) / ranks_per_manifest;
      const Blob sealed = encode(record);
      Blob& letter = letters[static_cast<int>(number) % comm_.size()];
      letter.insert(letter.end(), sealed.begin(), sealed.end());
    }
    std::vector<Parcel> parcels;
    for (auto& [to, letter] : letters) parcels.push_back({to, std::move(letter)});
    for (const Parcel& parcel : exchange(comm_, std::move(parcels)))
      for (const Envelope& envelope : find_envelopes(parcel.payload)) {
        CAIRN_ASSIGN(RankRecord record, decode_rank_record(envelope.payload, envelope.version));
        const std::uint32_t number = static_cast<std::uint32_t>(record.rank) / ranks_per_manifest;
        const int rank = record.rank;
        manifests_[number].emplace(rank, std::move(record));
      }
    return find_gap();
  }

  Status find_gap() {
    Status status;
    const std::uint32_t count = (dataset_.ranks + ranks_per_manifest - 1) / ranks_per_manifest;
    visit_dealt(comm_, count, [&](std::size_t i) {
      const auto number = static_cast<std::uint32_t>(i);
      const std::uint32_t end = std::min(dataset_.ranks, (number + 1) * ranks_per_manifest);
      for (std::uint32_t rank = number * ranks_per_manifest; rank < end; ++rank)
        if (status && !manifests_[number].contains(static_cast<int>(rank)))
          status =
              fail(Code::lost, "no node of this run has the part of rank {} in its cache", rank);
    });
    return status;
  }

  Status publish(const DatasetRecord& plan) {
    Status written;
    for (const auto& [number, records] : manifests_) {
      Blob content;
      for (const auto& [rank, record] : records) {
        const Blob sealed = encode(record);
        content.insert(content.end(), sealed.begin(), sealed.end());
      }
      if (written) written = write_manifest(site_.files, pending_, number, content);
    }
    CAIRN_TRY(agree(comm_, std::move(written)));
    CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.plan(plan); }));
    CAIRN_ASSIGN(const bool whole, carry_out(comm_, site_, plan, parts_));
    if (!whole) return fail(Code::lost, "not all parts of {} could be copied", plan.label());
    return on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.publish(plan); });
  }

  Status settle(const DatasetRecord& plan) {
    Status settled;
    for (const RankRecord& record : records_)
      if (settled) settled = settle_rank(site_.files, site_.folder, record);
    CAIRN_TRY(agree(comm_, std::move(settled)));
    return on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.mark_settled(plan); });
  }

  void give_up() {
    if (!on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.withdraw(dataset_); })) return;
    Status unstaged;
    for (const RankRecord& record : records_)
      if (unstaged) unstaged = unstage_rank(site_.files, site_.folder, record);
    if (agree(comm_, std::move(unstaged)) && site_.keeper != nullptr)
      (void)site_.keeper->abandon(dataset_);
  }

  Communicator& comm_;
  const Site& site_;
  const DatasetInfo& dataset_;
  const std::string pending_;
  std::vector<CachedPart> parts_;    ///< that this process does
  std::vector<RankRecord> records_;  ///< of these
  Manifests manifests_;              ///< that this process writes
};

}  // namespace

Result<DatasetInfo> find_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               const std::vector<RecordedPart>& cached) {
  PartsFlush parts(comm, site, dataset, cached);
  CAIRN_TRY(parts.find());
  return parts.describe_all("").info;
}

Status flush_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                   const std::vector<RecordedPart>& cached, const std::string& job_id) {
  return PartsFlush(comm, site, dataset, cached).run(job_id);
}

}  // namespace cairn
