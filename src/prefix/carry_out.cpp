#include "prefix/carry_out.hpp"

#include <algorithm>
#include <map>
#include <set>

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

/// Without what grows with its data: many are held at once.
RankRecord outline_of(RankRecord&& whole) {
  RankRecord outline;
  outline.dataset = std::move(whole.dataset);
  outline.rank = whole.rank;
  outline.files = std::move(whole.files);
  return outline;
}

class PartsFlush {
 public:
  PartsFlush(Communicator& comm, const Site& site, const DatasetInfo& dataset,
             const std::vector<CachedPart>& cached, const ReadRecord& read)
      : comm_(comm),
        site_(site),
        dataset_(dataset),
        read_(read),
        pending_(site.folder.pending(site.epoch, dataset)),
        parts_(claim(comm, dataset, cached)) {}

  Status find() { return agree(comm_, look()); }

  Result<FlushAccount> run(const std::string& job_id) {
    Status found = look();
    const Status single = refuse_double_names(comm_, records_);
    if (found) found = single;
    CAIRN_TRY(agree(comm_, std::move(found)));
    const DatasetRecord plan = describe_all(job_id);
    CAIRN_TRY(refuse_late_names(comm_, site_, records_));
    CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.begin(plan.info); }));
    if (Status done = publish(plan); !done) {
      give_up();
      return tl::unexpected(std::move(done).error());
    }
    FlushAccount account{plan.files, plan.bytes, {}};
    if (Status settled = settle(plan, account); !settled)
      return fail(settled.error().code,
                  "all of it is copied, but some files still have temporary names: {}",
                  settled.error().text);
    return account;
  }

  /// After find(). What a survey knows of the dataset is not all: the first who has a part tells.
  DatasetRecord describe_all(const std::string& job_id) {
    const int first = static_cast<int>(
        allreduce(comm_, records_.empty() ? comm_.size() : comm_.rank(), Reduce::min));
    const bool mine = comm_.rank() == first;
    Blob blob = encode(
        describe(comm_, site_, mine ? records_.front().dataset : dataset_, records_, job_id));
    bcast_blob(comm_, blob, first);
    return decode_dataset_record(blob).value();
  }

 private:
  static std::uint32_t manifest_of(int rank) {
    return static_cast<std::uint32_t>(rank) / ranks_per_manifest;
  }
  std::uint32_t manifests() const {
    return (dataset_.ranks + ranks_per_manifest - 1) / ranks_per_manifest;
  }

  /// That there is a record of every part.
  Status look() {
    Status looked = outline();
    const Status whole = find_gap();
    return looked ? whole : looked;
  }

  Status outline() {
    for (const CachedPart& part : parts_) {
      CAIRN_ASSIGN(RankRecord record, read_(part));
      records_.push_back(outline_of(std::move(record)));
    }
    return {};
  }

  Status find_gap() {
    std::map<int, Encoder> letters;
    for (const CachedPart& part : parts_)
      letters[static_cast<int>(manifest_of(part.rank)) % comm_.size()].u32(
          static_cast<std::uint32_t>(part.rank));
    std::set<std::uint32_t> there;
    exchange_letters(comm_, std::move(letters), [&](int, Decoder& in) { there.insert(in.u32()); });
    Status status;
    visit_dealt(comm_, manifests(), [&](std::size_t i) {
      const auto number = static_cast<std::uint32_t>(i);
      const std::uint32_t end = std::min(dataset_.ranks, (number + 1) * ranks_per_manifest);
      for (std::uint32_t rank = number * ranks_per_manifest; rank < end; ++rank)
        if (status && !there.contains(rank))
          status =
              fail(Code::lost, "no node of this run has the part of rank {} in its cache", rank);
    });
    return status;
  }

  /// Each process one at a time: it holds the records of no more ranks.
  Status write_manifests() {
    const auto at_once = static_cast<std::uint32_t>(comm_.size());
    Status written;
    for (std::uint32_t first = 0; first < manifests(); first += at_once) {
      std::map<int, Blob> letters;
      if (written) written = seal_records(first, first + at_once, letters);
      std::vector<Parcel> parcels;
      for (auto& [to, letter] : letters) parcels.push_back({to, std::move(letter)});
      const Status done = write_manifest_of(exchange(comm_, std::move(parcels)));
      if (written) written = done;
    }
    return written;
  }

  /// Those of the manifests [first, end), for who writes them.
  Status seal_records(std::uint32_t first, std::uint32_t end, std::map<int, Blob>& letters) {
    for (const CachedPart& part : parts_) {
      const std::uint32_t number = manifest_of(part.rank);
      if (number < first || number >= end) continue;
      CAIRN_ASSIGN(const RankRecord record, read_(part));
      const Blob sealed = encode(record);
      Blob& letter = letters[static_cast<int>(number) % comm_.size()];
      letter.insert(letter.end(), sealed.begin(), sealed.end());
    }
    return {};
  }

  /// By rank.
  Status write_manifest_of(const std::vector<Parcel>& parcels) {
    std::map<int, Bytes> sealed;
    for (const Parcel& parcel : parcels)
      for (const Envelope& envelope : find_envelopes(parcel.payload)) {
        CAIRN_ASSIGN(const RankRecord record,
                     decode_rank_record(envelope.payload, envelope.version));
        sealed.emplace(record.rank, envelope.whole);
      }
    if (sealed.empty()) return {};
    Blob content;
    for (const auto& [rank, record] : sealed)
      content.insert(content.end(), record.begin(), record.end());
    return write_manifest(site_.files, pending_, manifest_of(sealed.begin()->first), content);
  }

  Status publish(const DatasetRecord& plan) {
    CAIRN_TRY(agree(comm_, write_manifests()));
    CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.plan(plan); }));
    CAIRN_ASSIGN(const bool whole, carry_out(comm_, site_, plan, parts_));
    if (!whole) return fail(Code::lost, "not all parts of {} could be copied", plan.label());
    return on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.publish(plan); });
  }

  Status settle(const DatasetRecord& plan, FlushAccount& account) {
    Status settled;
    bool took = false;
    for (const RankRecord& record : records_) {
      took = took || takes_names(site_.files, site_.folder, record);
      if (settled) settled = settle_rank(site_.files, site_.folder, record);
    }
    CAIRN_TRY(agree(comm_, std::move(settled)));
    account.replaced = mark_replaced(comm_, site_, site_.folder.dataset(plan.info), took);
    return on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.mark_settled(plan); });
  }

  void give_up() {
    if (!on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.withdraw(pending_); })) return;
    Status unstaged;
    for (const RankRecord& record : records_)
      if (unstaged) unstaged = remove_part(site_.files, site_.folder, pending_, record);
    if (agree(comm_, std::move(unstaged)) && site_.keeper != nullptr)
      (void)site_.keeper->abandon(dataset_);
  }

  Communicator& comm_;
  const Site& site_;
  const DatasetInfo& dataset_;
  const ReadRecord& read_;
  const std::string pending_;
  const std::vector<CachedPart> parts_;  ///< that this process does
  std::vector<RankRecord> records_;      ///< of these, in outline
};

}  // namespace

Result<DatasetInfo> find_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               const std::vector<CachedPart>& cached, const ReadRecord& read) {
  PartsFlush parts(comm, site, dataset, cached, read);
  CAIRN_TRY(parts.find());
  return parts.describe_all("").info;
}

Result<FlushAccount> flush_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                                 const std::vector<CachedPart>& cached, const ReadRecord& read,
                                 const std::string& job_id) {
  return PartsFlush(comm, site, dataset, cached, read).run(job_id);
}

}  // namespace cairn
