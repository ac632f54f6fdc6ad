#include "prefix/fetch_order.hpp"

#include <algorithm>

namespace cairn {
bool may_be_fetched(const DatasetRecord& record) {
  return record.info.is_checkpoint() && record.failed_us == 0 && !record.quarantined;
}

const DatasetRecord* find_named(const Listing& listing, const std::string& name) {
  const auto found = std::find_if(listing.begin(), listing.end(),
                                  [&](const auto& record) { return record.info.name == name; });
  return name.empty() || found == listing.end() ? nullptr : &*found;
}

const DatasetRecord* next_to_fetch(const Listing& listing, const std::string& asked_for,
                                   const std::string& current, const std::set<Uuid>& tried) {
  if (tried.empty()) {
    const DatasetRecord* first = find_named(listing, asked_for);
    if (first != nullptr && first->info.is_checkpoint()) return first;
    first = find_named(listing, current);
    if (first != nullptr && may_be_fetched(*first)) return first;
  }
  const auto next = std::find_if(listing.begin(), listing.end(), [&](const auto& record) {
    return may_be_fetched(record) && !tried.contains(record.info.uuid);
  });
  return next == listing.end() ? nullptr : &*next;
}

bool has_right_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings) {
  return settings.elastic || record.info.ranks == ranks;
}

FetchStep step_for(const DatasetRecord* next, const Uuid& newest_cached, std::uint32_t ranks,
                   const Settings& settings) {
  if (next == nullptr || next->info.uuid <= newest_cached) return FetchStep::none;
  if (has_right_ranks(*next, ranks, settings)) return FetchStep::take;
  return settings.on_mismatch == OnMismatch::refuse ? FetchStep::refuse : FetchStep::pass_over;
}

Error wrong_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings) {
  return Error{
      Code::wrong_ranks,
      fmt::format("{} in {} was written by {} ranks, and this run has {}: start with {} "
                  "ranks to restart from it, set CAIRN_ELASTIC=1 to restart with any, or "
                  "CAIRN_ON_MISMATCH=fresh to pass it over",
                  record.label(), settings.prefix, record.info.ranks, ranks, record.info.ranks)};
}

KnownInPrefix known_in_prefix(const Uuid& uuid, const Listing& listing, const Listing& dropped,
                              const Listing& attempts, const Listing& deleted) {
  const DatasetRecord* there = find_in(listing, uuid);
  if (there == nullptr && find_in(deleted, uuid) != nullptr) return {true, false, true};
  if (there == nullptr) there = find_in(dropped, uuid);
  const DatasetRecord* counted = find_in(attempts, uuid);
  const bool held_back = counted != nullptr && counted->quarantined;
  if (there == nullptr) return {false, held_back, false};
  const bool sound = there->failed_us == 0 || there->quarantined;
  return {sound, held_back || there->quarantined, false};
}

}  // namespace cairn
