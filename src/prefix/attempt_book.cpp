#include "prefix/attempt_book.hpp"

#include <algorithm>

namespace cairn {

std::string text_of_lifting(const DatasetRecord& record, bool is_listed, const Settings& settings) {
  return fmt::format(
      "\"cairn index quarantine --lift {}\" lets restarts use it again, {}", record.info.name,
      !is_listed
          ? "as long as the prefix directory has it; if only the caches have it, until a newer "
            "checkpoint is complete"
      : settings.prefix_size > 0 && record.info.counts_in_window()
          ? "until SCR_PREFIX_SIZE deletes it, before all others"
          : "as long as it is in the prefix directory");
}

template <class Change>
void AttemptBook::change_record(Keeper* keeper, const Uuid& dataset, Change change) const {
  const DatasetRecord* known =
      keeper != nullptr ? find_in(keeper->known().listing, dataset) : nullptr;
  if (known == nullptr) return;
  DatasetRecord record = *known;
  change(record);
  Status kept = keeper->update(record);
  if (kept) kept = keeper->save_listing();
  if (!kept) log_.warning("{}: {}", record.label(), kept.error().text);
}

/// Changes the record of a dataset that only the caches have. `change` returns true to keep the
/// record.
template <class Change>
void AttemptBook::change_attempts(Keeper& keeper, const DatasetInfo& dataset, Change change) const {
  Listing attempts = keeper.known().attempts;
  const auto known = std::find_if(attempts.begin(), attempts.end(), [&](const auto& record) {
    return record.info.uuid == dataset.uuid;
  });
  DatasetRecord record;
  record.info = dataset;
  record.job_id = settings_.job_id;
  if (known != attempts.end()) {
    record = *known;
    attempts.erase(known);
  }
  if (change(record)) attempts.push_back(record);
  if (attempts == keeper.known().attempts) return;
  const Status kept = keeper.set_attempts(std::move(attempts));
  if (!kept) log_.warning("{}: {}", record.label(), kept.error().text);
}

void AttemptBook::note_fetched(Keeper* keeper, const Uuid& dataset) const {
  change_record(keeper, dataset,
                [&](DatasetRecord& record) { record.fetched_us = clock_.now_us(); });
}

void AttemptBook::note_failed(Keeper* keeper, const Uuid& dataset,
                              const std::string& reason) const {
  change_record(keeper, dataset, [&](DatasetRecord& record) {
    record.failed_us = clock_.now_us();
    record.failure = reason;
  });
}

void AttemptBook::count(DatasetRecord& record, bool is_listed) const {
  ++record.attempts;
  if (settings_.restart_attempts == 0 ||
      record.attempts < static_cast<std::uint32_t>(settings_.restart_attempts))
    return;
  record.quarantined = true;
  log_.warning(
      "{}: attempt {} to restart from it is the last (CAIRN_RESTART_ATTEMPTS): if this run dies "
      "too, the next one uses an older checkpoint. {}",
      record.label(), record.attempts, text_of_lifting(record, is_listed, settings_));
}

void AttemptBook::note_attempt(Keeper* keeper, const DatasetInfo& dataset) const {
  if (keeper == nullptr) return;
  if (find_in(keeper->known().listing, dataset.uuid) != nullptr)
    return change_record(keeper, dataset.uuid,
                         [this](DatasetRecord& record) { count(record, true); });
  change_attempts(*keeper, dataset, [this](DatasetRecord& record) {
    count(record, false);
    return true;
  });
}

/// The dataset may have reached the prefix directory meanwhile, so this changes both records.
void AttemptBook::take_back_attempt(Keeper* keeper, const DatasetInfo& dataset) const {
  if (keeper == nullptr) return;
  const auto take_back = [](DatasetRecord& record) {
    if (record.attempts > 0) --record.attempts;
    record.quarantined = false;
    return record.attempts > 0;
  };
  change_record(keeper, dataset.uuid, take_back);
  change_attempts(*keeper, dataset, take_back);
}

void AttemptBook::note_restarted(Keeper* keeper, const DatasetInfo& dataset) const {
  if (keeper == nullptr) return;
  change_record(keeper, dataset.uuid, [](DatasetRecord& record) {
    record.attempts = 0;
    record.quarantined = false;
  });
  change_attempts(*keeper, dataset, [](DatasetRecord&) { return false; });
}

void AttemptBook::carry_over(Keeper* keeper, const DatasetInfo& dataset) const {
  if (keeper == nullptr) return;
  change_attempts(*keeper, dataset, [&](const DatasetRecord& counted) {
    if (counted.attempts > 0)
      change_record(keeper, dataset.uuid, [&](DatasetRecord& record) {
        record.attempts = counted.attempts;
        record.quarantined = counted.quarantined;
      });
    return false;
  });
}

void AttemptBook::forget_all_but(Keeper& keeper, const std::set<Uuid>& cached) const {
  Listing kept = keeper.known().attempts;
  std::erase_if(kept,
                [&](const DatasetRecord& record) { return !cached.contains(record.info.uuid); });
  if (kept != keeper.known().attempts) (void)keeper.set_attempts(std::move(kept));
}

}  // namespace cairn
