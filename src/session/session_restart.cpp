// The calls of a Session that begin and end a restart.

#include <algorithm>

#include "recovery/restore.hpp"
#include "session/session.hpp"

namespace cairn {

CachedDataset* Session::restart_candidate() {
  const auto found =
      std::find_if(datasets_.begin(), datasets_.end(), [this](const CachedDataset& dataset) {
        return dataset.restorable() && (dataset.in_prefix() || !settings_.global_restart);
      });
  return restart_done_ || found == datasets_.end() ? nullptr : &*found;
}

/// The newest dataset, if it was written by another number of ranks.
const CachedDataset* Session::mismatched() const {
  const auto newest =
      std::find_if(datasets_.begin(), datasets_.end(), [](const CachedDataset& dataset) {
        return dataset.state != CachedDataset::State::left_alone &&
               dataset.state != CachedDataset::State::unusable;
      });
  return newest != datasets_.end() && newest->state == CachedDataset::State::other_ranks ? &*newest
                                                                                         : nullptr;
}

/// Nothing may be begun in the place of what another number of ranks has written.
Status Session::check_ranks() {
  if (settings_.on_mismatch == OnMismatch::fresh) return {};
  const CachedDataset* other = mismatched();
  if (other == nullptr) return restart_done_ ? Status{} : prefix_.check_ranks(newest_restorable());
  return fail(Code::wrong_ranks,
              "dataset {} in the cache was written by {} ranks, and this run has {}: start with {} "
              "ranks to "
              "restart from it, or set CAIRN_ON_MISMATCH=fresh to begin anew in its place",
              other->info.number, other->info.ranks, comm_.size(), other->info.ranks);
}

/// Zeros if there is none.
Uuid Session::newest_restorable() {
  const CachedDataset* candidate = restart_candidate();
  return candidate == nullptr ? Uuid{} : candidate->info.uuid;
}

Result<std::optional<std::string>> Session::have_restart() {
  CAIRN_TRY(enter("SCR_Have_restart", Phase::idle));
  CAIRN_TRY(check_ranks());
  CAIRN_TRY(fetch_checkpoint());
  if (!restart_done_) prefix_.tell_quarantined(newest_restorable());
  const CachedDataset* candidate = restart_candidate();
  if (candidate == nullptr) return std::nullopt;
  return candidate->info.name;
}

Result<std::string> Session::start_restart() {
  CAIRN_TRY(enter("SCR_Start_restart", Phase::idle));
  CAIRN_TRY(check_ranks());
  CachedDataset* candidate = restart_candidate();
  if (candidate == nullptr)
    return fail(Code::not_found,
                "SCR_Start_restart: there is no checkpoint to restart from; ask "
                "SCR_Have_restart first");
  if (!candidate->in_prefix())
    CAIRN_TRY(check_and_heal(comm_, files_, stores_, settings_, *candidate, log_));
  prefix_.note_attempt(candidate->info.uuid);
  events_.happened("RESTART_START", candidate->info);
  phase_ = Phase::restart;
  return candidate->info.name;
}

Status Session::complete_restart(bool valid) {
  CAIRN_TRY(enter("SCR_Complete_restart", Phase::restart));
  phase_ = Phase::idle;
  const std::string label = restart_candidate()->label();
  Status verdict =
      agree(comm_, valid ? Status{}
                         : Status(fail(Code::invalid, "{}: rank {} could not restart from it",
                                       label, comm_.rank())));
  const CachedDataset dataset = *restart_candidate();
  events_.happened(verdict ? "RESTART_SUCCESS" : "RESTART_FAIL", dataset.info, {},
                   verdict ? "" : verdict.error().text);
  if (!verdict) {
    datasets_.erase(datasets_.begin() + (restart_candidate() - datasets_.data()));
    remove_everywhere(dataset);
    prefix_.note_failed(dataset.info.uuid, verdict.error().text);
    fetch_done_ = false;  // an older one may be there
    return verdict;
  }
  prefix_.note_restarted(dataset.info.uuid);
  restart_done_ = true;
  // Which level the next checkpoint takes goes on from here; numbers of datasets that are still
  // there are not given again.
  last_checkpoint_ = dataset.info.checkpoint;
  tell("restarted from {}", label);
  return {};
}

}  // namespace cairn
