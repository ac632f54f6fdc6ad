#include "session/dataset_safety.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "session/losses.hpp"

namespace cairn {

WaitEnd WaitEnd::in(double seconds, std::int64_t now_us) {
  constexpr double longest_s = 1e9;
  if (seconds < 0 || seconds > longest_s) return {std::numeric_limits<std::int64_t>::max(), false};
  return {now_us + static_cast<std::int64_t>(seconds * 1e6), seconds == 0};
}

std::string_view name_of(Safety safety) {
  static constexpr std::array<std::string_view, 5> names = {"none", "writing", "written",
                                                            "protected", "flushed"};
  return names[static_cast<std::size_t>(safety)];
}

const CachedDataset* DatasetSafety::find_cached(const std::string& name) const {
  const auto& all = cached_.all();
  const auto newest = std::find_if(all.begin(), all.end(), [&](const CachedDataset& dataset) {
    return dataset.info.name == name;
  });
  return newest == all.end() ? nullptr : &*newest;
}

Safety DatasetSafety::of(const std::string& name) const {
  if (calls_.is_writing() && writer_.current().info.name == name) return Safety::writing;
  const CachedDataset* cached = find_cached(name);
  const DatasetInfo* copy = flushing_.copies().find_uncached(name);
  if (copy != nullptr && (cached == nullptr || cached->info.uuid < copy->uuid))
    return Safety::flushed;
  return cached != nullptr ? of(*cached) : Safety::none;
}

Safety DatasetSafety::of_completed() const {
  const CachedDataset* completed = cached_.find(writer_.current().info.uuid);
  return completed != nullptr ? of(*completed) : Safety::none;
}

Safety DatasetSafety::of(const CachedDataset& dataset) const {
  const bool is_there = dataset.in_prefix() || may_restart_from(dataset.there) ||
                        flushing_.async().is_published(dataset.info.uuid);
  if (is_there && !flushing_.copies().is_doubtful(dataset.info.uuid)) return Safety::flushed;
  if (late_.may_have_removed(dataset.info.uuid)) return Safety::none;
  if (dataset.state == CacheState::written)
    return late_.is_protected(dataset.info.uuid) ? Safety::protected_ : Safety::written;
  if (dataset.in_prefix() || !dataset.usable() || is_held_back(dataset.there)) return Safety::none;
  return dataset.survives_nodes ? Safety::protected_ : Safety::written;
}

/// The ranks have the same datasets, but see one after the other that a copy is published.
DatasetSafety::Found DatasetSafety::look(Communicator& comm, const std::string& name) const {
  Found found;
  found.now =
      static_cast<Safety>(allreduce(comm, static_cast<std::int64_t>(of(name)), Reduce::min));
  const CachedDataset* cached = find_cached(name);
  if (cached == nullptr) return found;
  found.dataset = cached->info;
  const bool is_doubtful = flushing_.copies().is_doubtful(found.dataset.uuid);
  found.is_in_flight = cached->is_in_flight && !is_doubtful;
  found.is_due = flushing_.due().has(*cached) && !is_doubtful;
  return found;
}

Status DatasetSafety::refuse_hopeless(const std::string& name, const Found& found,
                                      Safety wanted) const {
  const CachedDataset* cached = find_cached(name);
  if (found.now == Safety::none && cached != nullptr && cached->is_given_up())
    return fail(Code::lost, "{} is lost: {}", cached->label(), cached->reason);
  const bool is_damaged = cached != nullptr && is_lost(cached->state);
  if (is_damaged && wanted == Safety::flushed && run_.settings.flush)
    return fail(Code::not_copied, "{}", not_copied(*cached, run_.settings.prefix));
  if (found.now == Safety::none)
    return fail(Code::not_found,
                "this run knows no dataset {} that can be restored; it was never complete, or is "
                "deleted, lost or replaced",
                name);
  if (found.is_in_flight || found.is_due) return {};
  if (wanted == Safety::protected_ && cached != nullptr && cached->weaker)
    return fail(cached->weaker->code,
                "dataset {} could not be protected when this run began, and the next run tries "
                "again: {}",
                name, cached->weaker->text);
  const bool is_without_copies = wanted == Safety::flushed && !run_.settings.flush;
  return fail(Code::bad_argument,
              "dataset {} is {}, and does not become {} before SCR_Finalize: {}", name,
              name_of(found.now), name_of(wanted),
              is_without_copies ? "this run copies nothing to the prefix directory"
              : wanted == Safety::flushed
                  ? "it is no output, and SCR_FLUSH does not copy it, or a newer dataset takes its "
                    "place. Write it with SCR_FLAG_OUTPUT, or set SCR_FLUSH=1"
                  : "its scheme is SINGLE, or a rank has no partner on another node. Set "
                    "SCR_COPY_TYPE, or run on more nodes");
}

Result<bool> DatasetSafety::wait(const std::string& name, Safety wanted, double seconds) {
  CAIRN_TRY(calls_.enter(
      "Cairn_Wait", Phase::idle,
      fmt::format("name \"{}\", state {}, seconds {}", name, static_cast<int>(wanted), seconds)));
  if (name.empty()) return fail(Code::bad_argument, "Cairn_Wait: the name is NULL or empty");
  if (wanted < Safety::writing || wanted > Safety::flushed)
    return fail(Code::bad_argument,
                "Cairn_Wait: the state {} is none of CAIRN_STATE_WRITING to CAIRN_STATE_FLUSHED",
                static_cast<int>(wanted));
  if (std::isnan(seconds)) return fail(Code::bad_argument, "Cairn_Wait: seconds is not a number");
  Communicator& comm = calls_.comm();
  const WaitEnd end = WaitEnd::in(seconds, run_.clock.steady_us());
  const bool depends_on_protection = (wanted >= Safety::protected_ && late_.is_about(name)) ||
                                     (wanted == Safety::flushed && late_.supersedes(name));
  if (depends_on_protection) {
    if (end.only_looks) CAIRN_TRY(late_.why_it_waits());
    if (!late_.wait_until(comm, end.steady_us)) return false;
    calls_.finish_protection(Calls::Waits::for_protection);
    CAIRN_TRY(late_.why_it_waits());
  } else if (wanted > Safety::written && late_.is_busy()) {
    // A copy that begins now could be one of what the job removes.
    const auto is_reached = wait_for_copies(comm, name, wanted, WaitEnd::at_once());
    if (!is_reached || *is_reached) return is_reached;
    if (!late_.wait_until(comm, end.steady_us))
      return wait_for_copies(comm, name, wanted, WaitEnd::at_once());
    calls_.finish_protection(Calls::Waits::for_protection);
  }
  return wait_for_copies(comm, name, wanted, end);
}

void DatasetSafety::protect_at_end() {
  calls_.go_to(Phase::ended);
  (void)late_.take_in(calls_.comm(), true, true);  // the log says what has become of it
}

Result<bool> DatasetSafety::wait_for_copies(Communicator& comm, const std::string& name,
                                            Safety wanted, const WaitEnd& end) {
  const AsyncFlushing::Limited limited(flushing_.async(), end.steady_us);
  bool is_retried = false;
  while (true) {
    const Status trouble = flushing_.take_news(comm);
    const Found found = look(comm, name);
    if (found.now >= wanted) return true;
    if (found.now == Safety::none) CAIRN_TRY(trouble);
    CAIRN_TRY(refuse_hopeless(name, found, wanted));
    if (end.only_looks) return false;
    if (!found.is_in_flight) {
      if (std::exchange(is_retried, true)) return flushing_.not_copied(found.dataset.uuid, trouble);
      CAIRN_ASSIGN(const bool is_in_time, flushing_.copy_due(comm, found.dataset.uuid));
      if (!is_in_time) return false;
      continue;
    }
    is_retried = true;
    CAIRN_ASSIGN(const bool has_ended, flushing_.wait_until_published(comm, found.dataset));
    if (!has_ended) return false;
  }
}

}  // namespace cairn
