// Facts for the tests of the decision, in a short form.
#pragma once

#include "restart/restart_decision.hpp"

namespace cairn {

inline constexpr std::uint32_t ranks_of_run = 8;
inline constexpr std::uint32_t ranks_of_others = 4;

/// A checkpoint that was begun at that time; its name is the time.
inline DatasetInfo checkpoint_at(int time, std::uint32_t ranks = ranks_of_run) {
  DatasetInfo info;
  info.uuid = {time, 1};
  info.number = static_cast<std::uint64_t>(time);
  info.checkpoint = info.number;
  info.flags = 1;
  info.ranks = ranks;
  info.name = std::to_string(time);
  return info;
}

inline CachedDataset cached_at(int time, CacheState state = CacheState::protected_) {
  CachedDataset dataset;
  const bool is_of_others = state == CacheState::other_ranks;
  dataset.info = checkpoint_at(time, is_of_others ? ranks_of_others : ranks_of_run);
  dataset.state = state;
  if (state == CacheState::lost) dataset.reason = "two nodes are lost";
  return dataset;
}

inline DatasetRecord listed_at(int time, std::uint32_t ranks = ranks_of_run) {
  DatasetRecord record;
  record.info = checkpoint_at(time, ranks);
  record.settled = true;
  return record;
}

inline UnreadDataset unread_at(int time) {
  return {"folder", checkpoint_at(time).uuid, fmt::format("the record of {} is away", time), false};
}

inline RestartFacts facts_of(std::vector<CachedDataset> cached, Listing listing = {}) {
  RestartFacts facts;
  facts.ranks = ranks_of_run;
  facts.cached = std::move(cached);
  facts.listing = std::move(listing);
  return facts;
}

/// As every run has them, unless a test changes them.
inline Settings usual_settings() {
  Settings settings;
  settings.prefix = "/pfs";
  settings.fetch = true;
  return settings;
}

inline RestartAttempt went_well(RestartStep step, int time) {
  return {step, checkpoint_at(time).uuid, {}, {}};
}

inline RestartAttempt is_damaged(RestartStep step, int time) {
  return {step, checkpoint_at(time).uuid, Code::corrupt, {"a block is damaged", false}};
}

inline RestartAttempt failed_for_now(RestartStep step, int time, Code code = Code::io) {
  return {step, checkpoint_at(time).uuid, code, {"the file system is away", true}};
}

}  // namespace cairn
