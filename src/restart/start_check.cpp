#include "restart/start_check.hpp"

#include "prefix/fetch_order.hpp"
#include "restart/restart_choice.hpp"

namespace cairn {

Status check_start(const StartFacts& facts, const Settings& settings) {
  if (facts.has_gone_back) return {};
  if (const CachedDataset* others = refused_for_its_ranks(facts.cached, settings))
    return tl::unexpected(wrong_ranks(*others, facts.ranks));
  if (settings.on_mismatch == OnMismatch::fresh || facts.is_answered || !facts.first) return {};
  const CachedDataset* cached =
      restart_choice(facts.cached, settings.global_restart, facts.asked_for);
  const bool is_older = cached != nullptr && facts.first->info.uuid <= cached->info.uuid;
  if (is_older || has_right_ranks(*facts.first, facts.ranks, settings)) return {};
  return tl::unexpected(wrong_ranks(*facts.first, facts.ranks, settings));
}

}  // namespace cairn
