#include "recovery/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "records/state_words.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

template <class Visit>
void for_each_record(const HeldDataset& held, Visit visit) {
  for (const HeldPart& part : held.parts)
    for (const auto* records : {&part.own, &part.kept})
      for (const HeldRecord& record : *records) visit(record);
}

std::int64_t generation_of(const HeldRecord& held) {
  return static_cast<std::int64_t>(held.record.encoding.generation);
}

/// The largest of all ranks counts.
using Facts = std::array<std::int64_t, 10>;

Facts facts_of(const HeldDataset& held) {
  constexpr std::int64_t none = -std::numeric_limits<std::int64_t>::max();
  Facts facts{0, none};
  // Plain references: lambdas may not capture structured bindings with every compiler.
  std::int64_t &newest = facts[0], &minus_oldest = facts[1], &newer = facts[2], &damaged = facts[3],
               &ranks = facts[4], &checkpoint = facts[7], &flags = facts[8], &written = facts[9];
  facts[5] = static_cast<std::int64_t>(held.store);
  facts[6] = static_cast<std::int64_t>(held.number);
  for (const HeldPart& part : held.parts) {
    newer |= part.newer ? 1 : 0;
    damaged |= part.damaged ? 1 : 0;
  }
  for_each_record(held, [&](const HeldRecord& record) {
    const DatasetInfo& info = record.record.dataset;
    ranks = std::max<std::int64_t>(ranks, info.ranks);
    checkpoint = std::max(checkpoint, static_cast<std::int64_t>(info.checkpoint));
    flags = std::max<std::int64_t>(flags, info.flags);
    // Also if only prepared here: after a death amid the renames, the rank that has committed may
    // have its checksums already, from a run that did not see this node.
    if (record.record.exposure) written = std::max(written, generation_of(record));
    if (!record.committed) return;
    newest = std::max(newest, generation_of(record));
    minus_oldest = std::max(minus_oldest, -generation_of(record));
  });
  return facts;
}

Summary summary_of(const Uuid& uuid, const Facts& facts) {
  const auto& [newest, minus_oldest, newer, damaged, ranks, store, number, checkpoint, flags,
               written] = facts;
  return {uuid,
          static_cast<std::uint64_t>(newest),
          newest != 0 && newest != -minus_oldest,
          newer != 0,
          damaged != 0,
          static_cast<std::uint32_t>(ranks),
          static_cast<std::size_t>(store),
          static_cast<std::uint64_t>(number),
          static_cast<std::uint64_t>(checkpoint),
          static_cast<std::uint32_t>(flags),
          static_cast<std::uint64_t>(written)};
}

}  // namespace

Summary summarise(const Uuid& uuid, const HeldDataset& held) {
  return summary_of(uuid, facts_of(held));
}

CacheState judge(const Summary& summary, std::uint32_t ranks, bool distribute) {
  const bool same_ranks = summary.ranks == ranks;
  if (summary.newer) return CacheState::newer_format;
  // With the number of ranks that wrote it, another run may still see it committed on other nodes.
  if (summary.generation == 0 && summary.ranks != 0 && !same_ranks)
    return CacheState::maybe_incomplete;
  if (summary.generation == 0)
    return summary.damaged ? CacheState::unreadable : CacheState::incomplete;
  if (!distribute) return CacheState::left_alone;
  return same_ranks ? CacheState::committed : CacheState::other_ranks;
}

std::string reason_of(CacheState state, const Summary& summary) {
  return fmt::format(fmt::runtime(words_of(state).reason), fmt::arg("ranks", summary.ranks));
}

std::optional<Summary> Survey::next_older() {
  const auto mine = last_ ? catalog_.lower_bound(*last_) : catalog_.end();
  const Uuid candidate = mine == catalog_.begin() ? Uuid{} : std::prev(mine)->first;
  Uuid next;
  next.time_us = allreduce(comm_, candidate.time_us, Reduce::max);
  next.chance =
      allreduce(comm_, candidate.time_us == next.time_us ? candidate.chance : 0, Reduce::max);
  if (next == Uuid{}) return std::nullopt;
  last_ = next;
  return summarise(next);
}

Summary Survey::summarise(const Uuid& uuid) {
  Facts facts = facts_of(catalog_[uuid]);  // of nothing where this rank has none of it
  comm_.allreduce(facts, Reduce::max);
  return summary_of(uuid, facts);
}

std::uint64_t Survey::choose_generation(const Summary& summary) {
  const HeldDataset& held = catalog_[summary.uuid];
  if (!summary.several) return summary.generation;
  const Generations known = gather_generations(held, summary.ranks);
  const int size = comm_.size();
  const auto ranks = static_cast<int>(summary.ranks);
  const std::size_t all_of_mine =
      comm_.rank() < ranks ? static_cast<std::size_t>((ranks - comm_.rank() - 1) / size + 1) : 0;
  auto generation = static_cast<std::int64_t>(summary.generation);
  while (generation > 0) {
    const auto found = known.find(generation);
    const std::size_t there = found == known.end() ? 0 : found->second.size();
    if (allreduce(comm_, there == all_of_mine ? 1 : 0, Reduce::min) != 0) break;
    std::int64_t next = 0;
    for_each_record(held, [&](const HeldRecord& record) {
      if (record.committed && generation_of(record) < generation)
        next = std::max(next, generation_of(record));
    });
    generation = allreduce(comm_, next, Reduce::max);
  }
  return generation > 0 ? static_cast<std::uint64_t>(generation) : summary.generation;
}

Survey::Generations Survey::gather_generations(const HeldDataset& held, std::uint32_t ranks) {
  std::vector<Parcel> parcels;
  for_each_record(held, [&](const HeldRecord& record) {
    const int rank = record.record.rank;
    if (static_cast<std::uint32_t>(rank) >= ranks) return;
    Encoder out;
    out.u32(static_cast<std::uint32_t>(rank));
    out.u64(record.record.encoding.generation);
    parcels.push_back({rank % comm_.size(), out.take()});
  });
  Generations known;
  for (const Parcel& parcel : exchange(comm_, std::move(parcels))) {
    Decoder in(parcel.payload);
    const std::uint32_t rank = in.u32();
    known[static_cast<std::int64_t>(in.u64())].insert(rank);
  }
  return known;
}

}  // namespace cairn
