#include "tools/explain/explain_findings.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "prefix/fetch_order.hpp"
#include "prefix/unread.hpp"
#include "records/state_words.hpp"
#include "restart/passed_over.hpp"
#include "scavenge/publish.hpp"
#include "tools/record_json.hpp"

namespace cairn {
namespace {

constexpr std::size_t most_lines = 3;
/// For each of these all files are looked for; there may be very many datasets.
constexpr std::size_t looked_at_closely = 8;
constexpr std::string_view made_whole_by =
    "cairn rebuild repairs and publishes it, and cairn run does so before its first launch; until "
    "then no restart can use it";

/// The first few, and how many more.
std::string first_of(const std::vector<std::string>& lines) {
  const auto shown = static_cast<std::ptrdiff_t>(std::min(lines.size(), most_lines));
  std::string text = fmt::format("{}", fmt::join(lines.begin(), lines.begin() + shown, "; "));
  if (lines.size() > most_lines) text += fmt::format("; and {} more", lines.size() - most_lines);
  return text;
}

std::vector<std::string> how_to_fit(const Finding& finding) {
  return {fmt::format("start with {} ranks", finding.ranks),
          "or set CAIRN_ELASTIC=1 to restart with any number",
          "or set CAIRN_ON_MISMATCH=fresh to ignore it"};
}

std::string text_of_parts(const CacheReport& state) {
  if (state.is_only_written)
    return fmt::format("{}; the next run on these nodes protects it",
                       words_of(CacheState::written).sentence);
  if (state.is_whole()) return "whole";
  const std::string by = state.scheme.empty() ? "the records that others keep" : state.scheme;
  return fmt::format("{}; {} {} back", first_of(state.bad), by,
                     state.scheme.empty() ? "bring that" : "brings that");
}

std::string text_of_files(const DatasetRecord& record, bool looked) {
  if (!looked) return "its files were not checked, because there are so many datasets";
  return record.settled ? "all files exist with their recorded sizes"
                        : "some files still have temporary names, which the next run replaces";
}

/// "it cannot be made whole: " and why.
std::string text_of_loss(const std::vector<std::string>& reasons) {
  return fmt::format("{}: {}", words_of(CacheState::lost).reason, first_of(reasons));
}

/// "it was dropped by cairn index drop"
std::string text_of(PrefixState state) { return fmt::format("it {}", words_of(state).sentence); }

/// The record is copied last.
void explain_cut_off(const Remains& saved, Finding& finding) {
  std::vector<std::string> parts;
  for (const HeldPart& part : saved.parts)
    if (!part.has_record()) parts.push_back(part.folder.path);
  if (parts.empty()) return;
  finding.text += fmt::format("; {} has no record: the copy was interrupted, or the cache had none",
                              first_of(parts));
}

class Explainer {
 public:
  Explainer(const JobFacts& facts, const Settings& settings, const Forecast& forecast,
            const Advice& advice, const LookAtFiles& look, const CountChanged& count_changed)
      : facts_(facts),
        settings_(settings),
        forecast_(forecast),
        advice_(advice),
        look_(look),
        count_changed_(count_changed) {}

  std::vector<Finding> run() {
    for (const CachedFacts& cached : facts_.cached) add_cached(cached);
    for (const DatasetRecord& record : facts_.prefix.listing) add_fetchable(record);
    for (const UnfinishedFlush& flush : facts_.prefix.unfinished) add_unfinished(flush);
    for (const DatasetRecord& record : facts_.prefix.dropped.listing) add_dropped(record);
    for (const CachedFacts& scavenged : facts_.scavenged) add_scavenged(scavenged);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Finding& a, const Finding& b) { return a.uuid > b.uuid; });
    return std::move(found_);
  }

 private:
  Finding& add(std::string place, const DatasetInfo& info) {
    Finding& finding = found_.emplace_back();
    finding.place = std::move(place);
    finding.number = info.number;
    finding.name = info.name;
    finding.uuid = text_of(info.uuid);
    finding.ranks = info.ranks;
    return finding;
  }

  bool is_taken(Forecast::Outcome from, const DatasetInfo& info) const {
    return forecast_.outcome == from && forecast_.dataset.uuid == info.uuid;
  }

  /// Nothing is wrong with it; is it the one?
  void explain_place_in_order(Finding& finding, bool taken, const std::string& state) const {
    finding.usable = true;
    finding.taken = taken;
    finding.text = taken ? "a restart takes it: " + state : state;
    if (taken) return;
    const bool cached = forecast_.outcome == Forecast::Outcome::cache &&
                        text_of(forecast_.dataset.uuid) == finding.uuid;
    if (cached)
      finding.text += "; a restart takes it from the cache";
    else if (forecast_.outcome == Forecast::Outcome::refused)
      finding.text += "; but the run would fail";
    else if (forecast_.outcome == Forecast::Outcome::scratch)
      finding.text += "; but the run would start from scratch";
    else
      finding.text +=
          fmt::format("; not needed: a restart takes dataset {}", forecast_.dataset.number);
  }

  /// What is in the prefix directory where nothing can be done with it, or it is to be deleted.
  /// `is_dropped`: the purge keeps its files.
  bool explain_out_of_use(Finding& finding, const std::string& before = {},
                          bool is_dropped = false) const {
    if (!facts_.prefix.trouble.empty()) {
      finding.text = before + "no run can use the prefix directory now";
      finding.to_do = {"ask again later"};
      return true;
    }
    if (!purges_prefix(settings_)) return false;
    finding.text = fmt::format("{}SCR_PREFIX_PURGE=1: the next run {}", before,
                               is_dropped ? "drops it; its files stay" : "deletes it");
    finding.to_do = {"start without SCR_PREFIX_PURGE=1"};
    return true;
  }

  // --- caches ---

  void add_cached(const CachedFacts& cached) {
    const DatasetInfo& info = cached.dataset.info;
    Finding& finding = add("cache", info);
    const std::string reason = reason_of(cached.state.state, cached.state.summary);
    finding.only_written = cached.state.is_only_written;
    switch (cached.state.state) {
      case CacheState::newer_format:
        finding.text = reason + "; it is left alone";
        finding.to_do = {"start with the version of Cairn that wrote it"};
        return;
      case CacheState::incomplete:
        finding.text = reason + "; a restart removes what is left";
        return;
      case CacheState::maybe_incomplete:
        finding.text = reason + "; other runs keep its parts until a newer checkpoint is complete";
        finding.to_do = {fmt::format("start with {} ranks", finding.ranks)};
        return;
      case CacheState::unreadable:
        finding.text = reason;
        if (!facts_.sees_all_nodes)
          finding.to_do = {"if the nodes it was written on are still there, start again with them"};
        return;
      case CacheState::left_alone:
        finding.text = reason;
        finding.to_do = {"start without SCR_DISTRIBUTE=0"};
        return;
      case CacheState::other_ranks:
        return explain_other_ranks(cached, finding);
      default:
        return explain_restorable(cached, finding);
    }
  }

  void explain_other_ranks(const CachedFacts& cached, Finding& finding) const {
    finding.text = text_of_other_ranks(finding.ranks, facts_.ranks);
    if (finding.only_written)
      finding.text += fmt::format("; it is {}", words_of(CacheState::written).sentence);
    if (is_taken(Forecast::Outcome::prefix, cached.dataset.info)) {
      finding.taken = finding.usable = true;
      finding.text += "; with CAIRN_ELASTIC=1 it is copied to the prefix directory and taken there";
      return;
    }
    if (!cached.state.can_be_whole()) finding.text += "; and " + text_of_loss(cached.state.reasons);
    finding.to_do = how_to_fit(finding);
  }

  void explain_restorable(const CachedFacts& cached, Finding& finding) const {
    const DatasetInfo& info = cached.dataset.info;
    if (!cached.state.can_be_whole()) {
      finding.text = text_of_loss(cached.state.reasons);
      if (finding.only_written)
        finding.text += fmt::format("; it was {}", words_of(CacheState::written).sentence);
      if (facts_.sees_all_nodes) return;
      finding.to_do = {"start again with the nodes it was written on"};
      if (!facts_.caches.empty())
        finding.to_do.push_back("or name their caches, or copies of them, by --cache");
      finding.to_do.push_back("or " + advice_.scavenge_nodes());
      return;
    }
    if (settings_.cache_purge) {
      finding.text = "SCR_CACHE_PURGE=1: a restart removes it";
      finding.to_do = {"start without SCR_CACHE_PURGE=1"};
      return;
    }
    if (facts_.is_deleted(cached.dataset)) {
      finding.text = text_of(PrefixState::deleted) + "; a restart removes it here too";
      return;
    }
    if (!info.is_checkpoint()) {
      finding.text = "it is no checkpoint, so nothing restarts from it";
      if (!cached.dataset.flushed() && settings_.flush && facts_.prefix.trouble.empty())
        finding.text += "; the next run copies it to the prefix directory";
      return;
    }
    if (is_held_back(cached.dataset.there)) {
      const DatasetRecord* counted = find_in(facts_.prefix.attempts, info.uuid);
      if (counted == nullptr) counted = find_in(facts_.prefix.listing, info.uuid);
      finding.text = text_of(cached.dataset.there);
      if (counted != nullptr) finding.text += ", " + why_in_quarantine(*counted);
      finding.to_do = {advice_.index("quarantine --lift", info)};
      return;
    }
    explain_place_in_order(finding,
                           is_taken(Forecast::Outcome::cache, info) ||
                               (settings_.global_restart && !cached.dataset.flushed() &&
                                is_taken(Forecast::Outcome::prefix, info)),
                           text_of_parts(cached.state));
  }

  // --- the prefix directory ---

  void add_fetchable(const DatasetRecord& record) {
    Finding& finding = add("prefix", record.info);
    const bool taken = is_taken(Forecast::Outcome::prefix, record.info);
    if (!record.info.is_checkpoint()) {
      finding.text = "it is no checkpoint, so nothing restarts from it";
      return;
    }
    finding.text = why_marked(record);
    finding.to_do = how_to_bring_back(record);
    if (finding.text.empty() || taken) explain_files(record, finding, taken);
  }

  bool has_copy(const DatasetInfo& info) const {
    const auto is_same = [&info](const CachedFacts& copy) {
      return copy.remains.uuid == info.uuid;
    };
    return std::any_of(facts_.cached.begin(), facts_.cached.end(), is_same) ||
           std::any_of(facts_.scavenged.begin(), facts_.scavenged.end(), is_same);
  }

  /// A repair needs a copy: without one it fails each time.
  std::vector<std::string> how_to_repair(const DatasetInfo& info) const {
    if (has_copy(info)) return {advice_.verify_and_repair(info)};
    return {"no cache that is seen here has a copy of it; if another one has, " +
                advice_.verify_and_repair(info) + " --cache DIRECTORY",
            "or delete it: " + advice_.index_delete(info)};
  }

  /// For one that is marked.
  std::vector<std::string> how_to_bring_back(const DatasetRecord& record) const {
    const std::string lift = advice_.index("quarantine --lift", record.info);
    const PrefixState state = state_of(record);
    if (state == PrefixState::quarantined) return {lift};
    if (state != PrefixState::failed) return {};
    auto to_do = how_to_repair(record.info);
    to_do.insert(to_do.begin() + 1, "then " + lift);
    return to_do;
  }

  void explain_files(const DatasetRecord& record, Finding& finding, bool taken) {
    const bool looked = taken || looked_at_++ < looked_at_closely;
    if (const auto found = looked ? look_(record) : FilesTrouble{}; !found.lines.empty())
      return explain_trouble(found, record.info, finding);
    if (!taken && explain_passed_over(record, finding)) return;
    const std::string before =
        finding.text.empty() ? "" : "SCR_CURRENT names it, although " + finding.text + "; ";
    explain_place_in_order(finding, taken, before + text_of_files(record, looked));
    if (looked) explain_changed(record, finding);
  }

  void explain_trouble(const FilesTrouble& found, const DatasetInfo& info, Finding& finding) const {
    if (found.may_pass) {
      finding.text = "its files cannot be read now: " + first_of(found.lines);
      finding.to_do = {"ask again later"};
      return;
    }
    finding.text = "it is not as it was written: " + first_of(found.lines) +
                   "; a restart would mark it as failed and take the next older";
    finding.to_do = how_to_repair(info);
  }

  bool explain_passed_over(const DatasetRecord& record, Finding& finding) const {
    if (explain_out_of_use(finding, {}, is_dropped_by_purge(record))) return true;
    finding.text = why_unfit(record, facts_.ranks, settings_);
    if (finding.text.empty()) return false;
    finding.to_do = {"start without SCR_FETCH=0"};
    if (settings_.fetch) finding.to_do = how_to_fit(finding);
    return true;
  }

  /// A program that writes the same names again ends what was there under these.
  void explain_changed(const DatasetRecord& record, Finding& finding) const {
    const std::size_t changed = record.info.in_place() ? 0 : count_changed_(record);
    if (changed == 0) return;
    finding.text += fmt::format(
        "; but {} of them have changed since, so they may have other contents", changed);
    finding.to_do.push_back(advice_.verify(record.info));
  }

  void add_unfinished(const UnfinishedFlush& flush) {
    Finding& finding = add("unfinished flush", flush.plan.info);
    const std::string done =
        fmt::format("{}: {} of {} parts are there", text_of(PrefixState::planned),
                    flush.done.size(), flush.plan.info.ranks);
    if (explain_out_of_use(finding, done + "; ")) return;
    if (facts_.prefix.owner && !facts_.running.empty()) {
      finding.text = done + ", and a running job or command may finish it";
      finding.to_do = {"ask again when that has ended"};
    } else if (const Status free = check_unread(UnreadMatters::give_names, facts_.prefix.unread,
                                                {flush.plan.info.uuid});
               !free) {
      finding.text = done + "; no run can finish it now: " + free.error().text;
      finding.to_do = {"ask again later"};
    } else if (can_be_ended(flush, facts_.cached)) {
      finding.usable = flush.plan.info.is_checkpoint();
      finding.taken = is_taken(Forecast::Outcome::prefix, flush.plan.info);
      finding.text = done + ", and the caches have the rest; the next run finishes it";
    } else if (const CachedFacts* saved = scavenged_of(flush.plan.info.uuid)) {
      explain_scavenged(flush, *saved, finding, done);
    } else if (facts_.sees_all_nodes) {
      finding.text = done + ", and the rest is lost; the next run removes the copies";
    } else {
      finding.text = done +
                     ", and the caches visible here do not have the rest; the next run finishes it "
                     "if its nodes have the rest, else it removes the copies";
      finding.to_do = {"start again with the nodes it was written on"};
    }
  }

  const CachedFacts* scavenged_of(const Uuid& uuid) const {
    const auto found =
        std::find_if(facts_.scavenged.begin(), facts_.scavenged.end(),
                     [&](const CachedFacts& saved) { return saved.remains.uuid == uuid; });
    return found == facts_.scavenged.end() ? nullptr : &*found;
  }

  /// No run removes what was copied then.
  void explain_scavenged(const UnfinishedFlush& flush, const CachedFacts& saved, Finding& finding,
                         const std::string& done) const {
    if (flush_is_ended_by_rebuild(saved)) {
      finding.text = done + ", and the scavenged parts have the rest";
      explain_rebuild(saved, finding);
    } else if (!saved.failure.lost.empty()) {
      finding.text = fmt::format("{}, and the scavenged parts cannot be made whole: {}", done,
                                 saved.failure.lost);
      finding.to_do = scavenge_again();
    } else if (can_be_ended(flush, facts_.scavenged, facts_.cached)) {
      finding.text = done +
                     ", and the scavenged parts and the caches together have the rest; until they "
                     "are rebuilt no restart can use it";
      finding.to_do = {advice_.scavenge(), "then " + advice_.rebuild()};
    } else {
      finding.text = done +
                     ", and neither the visible caches nor the scavenged parts have the rest; the "
                     "copies stay, and no restart can use them";
      finding.to_do = scavenge_again();
      if (!finding.to_do.empty()) finding.to_do.push_back("then " + advice_.rebuild());
    }
  }

  /// Empty if it could copy nothing more.
  std::vector<std::string> scavenge_again() const {
    if (!facts_.sees_all_nodes)
      return {advice_.scavenge() + ", if a node is back, or was not copied completely"};
    if (facts_.caches.empty()) return {};
    return {advice_.scavenge() + ", if a node was not copied completely"};
  }

  void add_dropped(const DatasetRecord& record) {
    Finding& finding = add("dropped", record.info);
    finding.text = text_of(PrefixState::dropped) + "; no restart takes it";
    finding.to_do = {advice_.index("add", record.info)};
  }

  void add_scavenged(const CachedFacts& scavenged) {
    const Uuid& uuid = scavenged.remains.uuid;
    if (find_in(facts_.prefix.listing, uuid) != nullptr) return;
    Finding& finding = add("scavenged", scavenged.dataset.info);
    const std::string to_be_rid = advice_.index_delete(scavenged.dataset.info);
    const bool dropped = facts_.prefix.dropped.has(uuid);
    if (dropped || find_in(facts_.prefix.deleted, uuid) != nullptr) {
      finding.text =
          fmt::format("it was scavenged, and later {}; cairn rebuild ignores it",
                      words_of(dropped ? PrefixState::dropped : PrefixState::deleted).sentence);
      if (dropped) finding.to_do = {advice_.index("add", scavenged.dataset.info)};
      finding.to_do.push_back("to delete all that is left of it, " + to_be_rid);
      return;
    }
    explain_saved(scavenged, finding, to_be_rid);
  }

  void explain_saved(const CachedFacts& scavenged, Finding& finding,
                     const std::string& to_be_rid) const {
    if (scavenged.state.can_be_whole() && !scavenged.failure.refused.empty())
      return explain_refused(scavenged, finding, to_be_rid);
    if (scavenged.state.can_be_whole()) {
      finding.text = "it was scavenged, and can be made whole, according to its records";
      explain_rebuild(scavenged, finding);
    } else if (flush_is_ended_by_rebuild(scavenged)) {
      finding.text = "it was scavenged, and its unfinished flush has the rest";
      return explain_rebuild(scavenged, finding);
    } else if (!scavenged.state.committed && was_never_complete(scavenged.remains)) {
      finding.text = fmt::format("it was scavenged, though {}", never_complete);
      finding.to_do = {"to delete the saved copy, " + to_be_rid};
      return;
    } else {
      finding.text =
          "it was scavenged, and " +
          (scavenged.state.committed ? text_of_loss(scavenged.state.reasons)
                                     : reason_of(scavenged.state.state, scavenged.state.summary));
      finding.to_do = scavenge_again();
      finding.to_do.push_back("to delete the saved copy, " + to_be_rid);
    }
    explain_cut_off(scavenged.remains, finding);
  }

  void explain_refused(const CachedFacts& scavenged, Finding& finding,
                       const std::string& to_be_rid) const {
    finding.text = "it was scavenged, and the last cairn rebuild did not publish it: " +
                   scavenged.failure.refused;
    finding.to_do = {"when you have corrected that, " + advice_.rebuild(scavenged.dataset.info),
                     "or, to delete the saved copy, " + to_be_rid};
  }

  /// Which cairn run gives too, but for what is outlived.
  void explain_rebuild(const CachedFacts& scavenged, Finding& finding) const {
    if (explain_out_of_use(finding, finding.text + "; ")) return;
    const DatasetInfo& info = scavenged.dataset.info;
    const bool outlived = is_outlived(info, facts_.prefix.listing);
    finding.published_by_run = info.is_checkpoint() && !outlived;
    finding.text += outlived
                        ? "; no restart takes it, as a newer checkpoint is in the prefix directory"
                        : fmt::format(": {}", made_whole_by);
    finding.to_do = {outlived ? advice_.rebuild(info) : advice_.rebuild()};
  }

  bool flush_is_ended_by_rebuild(const CachedFacts& scavenged) const {
    const auto& flushes = facts_.prefix.unfinished;
    return scavenged.failure.lost.empty() &&
           std::any_of(flushes.begin(), flushes.end(), [&](const UnfinishedFlush& flush) {
             return flush.plan.info.uuid == scavenged.remains.uuid &&
                    can_be_ended(flush, facts_.scavenged);
           });
  }

  const JobFacts& facts_;
  const Settings& settings_;
  const Forecast& forecast_;
  const Advice& advice_;
  const LookAtFiles& look_;
  const CountChanged& count_changed_;
  std::size_t looked_at_ = 0;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> find_all(const JobFacts& facts, const Settings& settings,
                              const Forecast& forecast, const Advice& advice,
                              const LookAtFiles& look, const CountChanged& count_changed) {
  return Explainer(facts, settings, forecast, advice, look, count_changed).run();
}

}  // namespace cairn
