#include "session/restarting.hpp"

#include <utility>

#include "records/state_words.hpp"
#include "recovery/restore.hpp"
#include "restart/restart_choice.hpp"
#include "restart/start_check.hpp"

namespace cairn {

// --- what the program is offered ---

const CachedDataset* Restarting::candidate() const {
  if (is_over_) return nullptr;
  return restart_choice(cached_.all(), run_.settings.global_restart, asked_for_);
}

CachedDataset* Restarting::candidate() {
  const CachedDataset* found = std::as_const(*this).candidate();
  if (found == nullptr) return nullptr;
  return &cached_.all()[static_cast<std::size_t>(found - cached_.all().data())];
}

/// Zeros if there is none.
Uuid Restarting::newest_restorable() const {
  const CachedDataset* found = candidate();
  return found == nullptr ? Uuid{} : found->info.uuid;
}

Status Restarting::check_ranks() const {
  return check_start({run_.unsigned_ranks(), went_on_from_.has_value(), is_over_ || is_answered_,
                      asked_for_, cached_.all(), prefix_.owner().first()},
                     run_.settings);
}

// --- SCR_Have_restart ---

Status Restarting::find(Communicator& comm) {
  take_current_as_request();
  look_for_prefix_again(comm);
  CAIRN_TRY(refusal_);
  is_answered_ = false;
  while (true) {
    warn_if_current_is_ignored();
    const RestartDecision decision = decide(comm);
    if (decision.is_refusal()) return refuse(decision);
    if (decision.step == RestartStep::start_fresh) warn_from_scratch(decision.why);
    if (decision.is_last()) break;
    carry_out(comm, decision);
  }
  is_answered_ = true;
  if (!is_over_) report_what_is_passed_over();
  return {};
}

/// A program that names a checkpoint by SCR_Current and then asks for one wants that one.
void Restarting::take_current_as_request() {
  if (!went_on_from_) return;
  asked_for_ = std::exchange(went_on_from_, std::nullopt);
  is_over_ = false;
  allow_retries();
}

/// What was refused for a reason that may pass is asked again; and where the directory was away at
/// Init, it may be there now.
void Restarting::look_for_prefix_again(Communicator& comm) {
  if (is_over_) return;
  if (std::exchange(is_refusal_transient_, false)) allow_retries();
  if (!prefix_.owner().open_again(comm)) return;
  flushing_.learn_from_prefix(comm);
  allow_retries();
}

void Restarting::allow_retries() {
  forget_retryable(attempts_);
  prefix_.read_scr_again();
  refusal_ = {};
}

/// By rank 0, which knows what is in the prefix directory.
RestartDecision Restarting::decide(Communicator& comm) {
  RestartDecision decision;
  if (run_.rank == 0) decision = decide_restart(facts(), run_.settings, attempts_);
  share(comm, decision);
  return decision;
}

/// At Init it is too early: what the caches have may turn out to be deleted, or in quarantine.
void Restarting::warn_if_current_is_ignored() {
  if (run_.rank != 0 || run_.settings.current.empty()) return;
  const std::string why = why_current_is_ignored(facts(), run_.settings, attempts_);
  if (!why.empty() && current_ignored_.is_news(why)) run_.shared_log.warning("{}", why);
}

/// On rank 0.
RestartFacts Restarting::facts() {
  RestartFacts facts;
  facts.ranks = run_.unsigned_ranks();
  facts.is_over = is_over_;
  facts.asked_for = asked_for_;
  facts.cached = cached_.all();
  prefix_.add_facts(facts);
  for (const DatasetRecord& record : facts.listing)
    if (run_.levels[choose_level(run_.levels, record.info)].settings.bypass)
      facts.bypassing.push_back(record.info.uuid);
  return facts;
}

void Restarting::carry_out(Communicator& comm, const RestartDecision& decision) {
  const bool is_of_prefix =
      decision.step == RestartStep::fetch || decision.step == RestartStep::read_in_place;
  const Status done = is_of_prefix ? take_from_prefix(comm, decision) : prepare(comm, decision);
  RestartAttempt attempt{decision.step, decision.dataset, {}, {}};
  if (!done) {
    attempt.code = done.error().code;
    attempt.trouble = {done.error().text, decision.step == RestartStep::import_first
                                              ? may_import_later(attempt.code)
                                              : !is_damage(attempt.code)};
  }
  attempts_.push_back(std::move(attempt));
}

/// What makes a dataset ready to be decided about.
Status Restarting::prepare(Communicator& comm, const RestartDecision& decision) {
  if (decision.step == RestartStep::import_first)
    return prefix_.import_from_scr(comm, decision.dataset);
  CachedDataset& dataset = *cached_.find(decision.dataset);
  return decision.step == RestartStep::offer_copy ? offer_copy(comm, dataset)
                                                  : flushing_.flush(comm, dataset);
}

Status Restarting::take_from_prefix(Communicator& comm, const RestartDecision& decision) {
  const auto candidate = prefix_.listed(comm, decision.dataset);
  if (!candidate) return fail(Code::lost, "a dataset is no longer in {}", run_.settings.prefix);
  // The same fetch goes on where the caches had no room.
  const bool is_begun = !attempts_.empty() && attempts_.back().dataset == decision.dataset &&
                        attempts_.back().step == RestartStep::fetch;
  Status taken = fetching_.take(comm, *candidate, decision.step, is_begun);
  if (!taken && is_damage(taken.error().code)) flushing_.copies().doubt(decision.dataset);
  return taken;
}

void Restarting::import_what_comes_next(Communicator& comm) {
  while (prefix_.owner().is_owned() && !purges_prefix(run_.settings)) {
    const RestartDecision decision = decide(comm);
    if (decision.step != RestartStep::import_first) return;
    carry_out(comm, decision);
  }
}

/// Asked again, it says the same: the answer must not be to start from scratch.
Status Restarting::refuse(const RestartDecision& refusal) {
  is_refusal_transient_ = refusal.step == RestartStep::refuse_for_now;
  Status why = fail(refusal.code, "{}", refusal.why);
  refusal_ = why;
  refusal_.error().is_reported = true;
  why.error().is_reported = !refusals_.is_news(refusal.why);
  return why;
}

/// Once in a run: the log, and `cairn run`, show that line and event where a restart was expected.
void Restarting::warn_from_scratch(const std::string& why) {
  if (!from_scratch_.is_first()) return;
  run_.shared_log.warning("THE RUN STARTS FROM SCRATCH: {}", why);
  run_.events.happened("FRESH_START", why);
}

/// After the prefix directory was asked. Rank 0 knows what is passed over there.
void Restarting::report_what_is_passed_over() {
  const std::string passed_over =
      run_.rank == 0 ? prefix_.report_passed_over(facts(), tried_datasets(attempts_),
                                                  newest_restorable(), from_scratch_.has_passed())
                     : "";
  if (candidate() != nullptr) return;
  if (!passed_over.empty())
    warn_from_scratch("there is a checkpoint, but " + passed_over);
  else if (const std::string lost = what_caches_lost(); !lost.empty())
    warn_from_scratch(fmt::format("no checkpoint in the caches can be used, and {} has none: {}",
                                  run_.settings.prefix, lost));
}

/// Of the newest checkpoint that the caches had or have, and that this run cannot restart from.
/// Empty if there is none.
std::string Restarting::what_caches_lost() const {
  if (!given_up_.empty()) return given_up_;
  const auto may_be_checkpoint = [](const CachedDataset& dataset) {
    return dataset.info.is_checkpoint() || dataset.info.ranks == 0;  // no record says what it is
  };
  const auto& all = cached_.all();
  const auto lost = std::find_if(all.begin(), all.end(), may_be_checkpoint);
  if (lost == all.end()) return "";
  const std::string& name = lost->info.name;
  return fmt::format("dataset {}{} cannot be restored: {}", lost->info.number,
                     name.empty() ? "" : fmt::format(" ({})", name),
                     is_held_back(lost->there)
                         ? fmt::format("it {}", words_of(lost->there).sentence)
                         : lost->reason);
}

// --- SCR_Start_restart and SCR_Complete_restart ---

Status Restarting::begin(Communicator& comm) {
  CAIRN_TRY(check_ranks());
  CAIRN_TRY(refusal_);  // the next older one is not what was asked for
  CachedDataset* offered = candidate();
  if (offered == nullptr)
    return fail(
        Code::not_found,
        "SCR_Start_restart: there is no checkpoint to restart from; call SCR_Have_restart first");
  const DatasetInfo info = offered->info;
  // The run may die of what comes now as well.
  const bool is_counted = note_attempt(comm, info);
  Status opened = open(comm, *offered);
  if (!opened && is_counted) prefix_.book().take_back_attempt(prefix_.owner().site().keeper, info);
  if (opened) run_.events.happened("RESTART_START", info);
  return opened;
}

bool Restarting::note_attempt(Communicator& comm, const DatasetInfo& dataset) {
  if (!run_.settings.flush && !run_.settings.fetch) return false;
  if (const Status owned = prefix_.owner().own(comm); !owned) {
    run_.shared_log.warning("cannot count the restarts from {}: {}", dataset.name,
                            owned.error().text);
    return false;
  }
  prefix_.book().note_attempt(prefix_.owner().site().keeper, dataset);
  return true;
}

/// As the directory has last answered: this run may have become its owner since the caches'
/// datasets were looked for there.
bool Restarting::is_there(Communicator& comm, const Uuid& dataset) {
  const auto record = prefix_.listed(comm, dataset);
  return record && is_flushed(state_of(*record));
}

/// Where that fails it is out for this run, or the program would be offered it again for ever.
Status Restarting::open(Communicator& comm, CachedDataset& dataset) {
  if (dataset.state == CacheState::offered) return open_copy(comm, dataset.info.uuid);
  if (dataset.in_prefix()) return {};
  const bool is_due = flushing_.due().has(dataset) && !is_there(comm, dataset.info.uuid);
  const Status healed =
      check_and_heal(comm, run_.files, run_.stores, run_.settings, dataset, run_.own_log);
  // What may be in the prefix directory is noted when that is known.
  if (!healed && is_due && !dataset.may_be_there) run_.losses.note(dataset, run_.settings.prefix);
  CAIRN_TRY(healed);
  const Status placed = files_.place_broadcasts(comm, dataset);
  if (placed) return {};
  return leave_out(
      comm, dataset, CacheState::lost, placed,
      placed.error().code == Code::no_space ? "free space in the store" : "repair the store");
}

/// It is good, but nothing can be begun with it now. Until a newer one is complete the caches keep
/// it, and a later run may have it still.
Status Restarting::leave_out(Communicator& comm, CachedDataset& dataset, CacheState state,
                             const Status& why, const std::string& remedy) {
  dataset.state = state;
  dataset.reason = why.error().text;
  allow_retries();  // where the prefix directory has it too it is read there
  attempts_.push_back(
      {RestartStep::take_cached, dataset.info.uuid, why.error().code, {dataset.reason, true}});
  run_.shared_log.warning(
      "cannot restart from {}, written by {} ranks: {}. Cairn offers an older checkpoint, if there "
      "is one. To use this one instead, end the run now and {}",
      dataset.label(), dataset.info.ranks, dataset.reason, remedy);
  if (run_.settings.on_fetch_fail != OnFetchFail::stop) return why;
  const RestartDecision next = decide(comm);
  return next.is_refusal() ? refuse(next) : why;
}

void Restarting::end(Communicator& comm, const Status& verdict) {
  files_.remove_broadcasts();
  const CachedDataset dataset = *candidate();
  run_.events.happened(verdict ? "RESTART_SUCCESS" : "RESTART_FAIL", dataset.info, {},
                       verdict ? "" : verdict.error().text);
  Keeper* keeper = prefix_.owner().site().keeper;
  if (verdict) {
    prefix_.book().note_restarted(keeper, dataset.info);
    is_over_ = true;
    asked_for_.reset();
    files_.forget_names();
    run_.shared_log.info("restarted from {}", dataset.label());
    return;
  }
  const Uuid uuid = dataset.info.uuid;
  cached_.forget(*candidate());
  cached_.remove(comm, dataset);
  if (given_up_.empty()) given_up_ = verdict.error().text;
  for (CachedDataset& copied : cached_.all())
    if (copied.info.uuid == uuid && copied.state == CacheState::other_ranks)
      copied.state = CacheState::lost;
  prefix_.book().note_failed(keeper, uuid, verdict.error().text);
  flushing_.copies().doubt(uuid);
}

// --- what the program does instead ---

void Restarting::note_checkpoint() {
  is_over_ = true;
  went_on_from_.reset();
}

/// What is newer in the caches would go before it at the next restart. It need not be there itself.
void Restarting::go_back_to(Communicator& comm, const DatasetInfo* named) {
  const bool may_be_request = !std::exchange(is_over_, true);
  refusal_ = {};
  if (named == nullptr) return;
  run_.events.happened("CURRENT", *named);
  cached_.remove_if(comm, [&](const CachedDataset& dataset) {
    return named->uuid < dataset.info.uuid && !is_left_alone(dataset.state) &&
           !dataset.info.is_output();
  });
  if (may_be_request) went_on_from_ = named->uuid;
}

// --- what another number of ranks has written ---

/// All its parts are there, and the prefix directory is this run's. Nothing would be rebuilt, for
/// which all its ranks are needed. Logs once what is missing, however often the program asks.
Status Restarting::offer_copy(Communicator& comm, CachedDataset& dataset) {
  Status found = flushing_.claim(comm);
  if (found && dataset.flushed()) return {};
  if (found) {
    const auto info = find_parts(comm, prefix_.owner().site(), dataset.info,
                                 cached_.recorded_parts(dataset), cached_.read_own_records());
    if (info) {
      dataset.info = *info;
      dataset.state = CacheState::offered;
      return {};
    }
    found = tl::unexpected(info.error());
  }
  if (no_copy_.is_news(text_of(dataset.info.uuid)))
    run_.shared_log.warning(
        "dataset {1} in the cache, written by {0} ranks, cannot be copied to {2}: {3}",
        dataset.info.ranks, dataset.info.number, run_.settings.prefix, found.error().text);
  return found;
}

Status Restarting::open_copy(Communicator& comm, const Uuid& uuid) {
  Status taken = flushing_.flush_others(comm, *cached_.find(uuid));
  cached_.find(uuid)->state = CacheState::other_ranks;
  if (taken) taken = take_copy(comm, uuid);
  if (taken) return {};
  CachedDataset& dataset = *cached_.find(uuid);
  return leave_out(comm, dataset, CacheState::left_alone, taken,
                   fmt::format("start it with {} ranks", dataset.info.ranks));
}

/// It is in the prefix directory now.
Status Restarting::take_copy(Communicator& comm, const Uuid& uuid) {
  const auto record = prefix_.listed(comm, uuid);
  if (!record) return fail(Code::lost, "it is no longer in {}", run_.settings.prefix);
  Status taken = fetching_.check_in_place(comm, *record);
  fetching_.note_damage(uuid, taken);
  if (!taken && is_damage(taken.error().code)) flushing_.copies().doubt(uuid);
  return taken;
}

}  // namespace cairn
