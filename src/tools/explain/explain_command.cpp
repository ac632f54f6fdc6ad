#include "tools/explain/explain_command.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/units.hpp"
#include "prefix/check.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/scr_import.hpp"
#include "tools/as_owner.hpp"
#include "tools/explain/explain_findings.hpp"
#include "tools/report.hpp"
#include "tools/verify/verify_command.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Forecast::Outcome outcome) {
  constexpr std::array<std::string_view, 4> names = {"scratch", "cache", "prefix", "refused"};
  return names.at(static_cast<std::size_t>(outcome));
}

/// The damage of files in the prefix directory, without reading their data; each dataset once.
class FilesSeen {
 public:
  FilesSeen(Files& files, const Settings& settings, const ScrIndex& scr)
      : files_(files),
        scr_(scr),
        folder_{settings.prefix},
        copy_metadata_(settings.copy_metadata),
        background_(make_foreground()) {}

  FilesTrouble operator()(const DatasetRecord& record) {
    const auto [seen, is_new] = seen_.try_emplace(record.info.uuid);
    if (is_new) seen->second = look(record);
    return seen->second;
  }

  /// Unknown if SCR_COPY_METADATA=0 does not keep the times.
  std::size_t changed(const DatasetRecord& record) const {
    std::size_t count = 0;
    std::vector<std::string> unread;
    if (!copy_metadata_) return 0;
    (void)visit_ranks(files_, folder_.dataset(record.info), record, unread,
                      [&](const RankRecord& rank) { count += changed(record, rank); });
    return count;
  }

 private:
  FilesTrouble look(const DatasetRecord& record) const {
    for (const ScrDataset& left : scr_.datasets)
      if (is_to_import(record) && left.uuid() == record.info.uuid) {
        const auto missing = first_missing(files_, folder_.prefix, left);
        return missing ? FilesTrouble{{*missing}} : FilesTrouble{};
      }
    const auto account = check_dataset(files_, {*background_, 1}, folder_,
                                       folder_.dataset(record.info), record, CheckDepth::sizes);
    if (!account) return {{account.error().text}, !is_damage(account.error().code)};
    return {account->troubles, !account->troubles.empty() && !is_damage(account->code)};
  }

  /// The forecast has made its record.
  static bool is_to_import(const DatasetRecord& record) {
    return record.info.was_found() && record.flushed_us == 0;
  }

  std::size_t changed(const DatasetRecord& record, const RankRecord& rank) const {
    std::size_t count = 0;
    const auto paths = places_of_files(files_, folder_, record, rank);
    for (std::size_t i = 0; paths && i < paths->size(); ++i) {
      const auto info = files_.info((*paths)[i]);
      const bool same = info && has_time_of(*info, rank.files[i]);
      count += rank.files[i].begins_here() && !same ? 1 : 0;
    }
    return count;
  }

  Files& files_;
  const ScrIndex& scr_;
  const PrefixFolder folder_;
  const bool copy_metadata_;
  const std::unique_ptr<Background> background_;
  std::map<Uuid, FilesTrouble> seen_;
};

class Explanation {
 public:
  Explanation(const ExplainCommand& command, const JobFacts& facts, const FoundJob& job,
              Clock& clock, const LookAtFiles& look, const CountChanged& count_changed)
      : facts_(facts),
        job_(job),
        settings_(job.settings),
        are_caches_given_(!command.caches.empty()),
        advice_(settings_.prefix, command.caches, facts.prefix.listing),
        forecast_(forecast(facts, settings_, look)),
        findings_(find_all(facts, settings_, forecast_, advice_, look, count_changed)),
        has_any_(!findings_.empty()),
        run_publishes_first_(is_newer_for_run()) {
    std::erase_if(findings_, [&](const Finding& finding) {
      return !is_wanted(command.datasets, finding.uuid, finding.number, finding.name);
    });
    add_notes(clock);
  }

  bool has_findings() const { return !findings_.empty(); }

  /// True also if the note concerns a dataset that the user did not request.
  bool knows_nothing() const {
    return !has_any_ && facts_.caches.empty() && facts_.left_caches.empty() &&
           facts_.unreadable.empty() && !are_caches_given_ && job_.is_id_default;
  }

  Report report() const {
    Report report;
    const std::string summary =
        what_restart_takes() +
        (run_publishes_first_ ? "; cairn run first rebuilds what was scavenged" : "");
    report.facts = {{"summary", summary},
                    {"job", settings_.job_id},
                    {"where", where()},
                    {"caches", facts_.caches},
                    {"ranks", facts_.ranks},
                    {"outcome", name_of(forecast_.outcome)},
                    {"dataset", takes_any() ? Json(text_of(forecast_.dataset.uuid)) : Json()},
                    {"notes", notes_},
                    {"datasets", Json::array()}};
    report.line("{}", summary);
    report.line("{}", where());
    for (const std::string& note : notes_) report.line("note: {}", note);
    for (const Finding& finding : findings_) add(report, finding);
    return report;
  }

 private:
  static void add(Report& report, const Finding& finding) {
    report.facts["datasets"].push_back({{"place", finding.place},
                                        {"number", finding.number},
                                        {"name", finding.name},
                                        {"uuid", finding.uuid},
                                        {"ranks", finding.ranks},
                                        {"taken", finding.taken},
                                        {"usable", finding.usable},
                                        {"only_written", finding.only_written},
                                        {"text", finding.text},
                                        {"to_do", finding.to_do}});
    report.line("");
    report.line("{}, {}: {}", dataset_label(finding.number, finding.name), place_of(finding),
                finding.text);
    for (const std::string& to_do : finding.to_do) report.line("  -> {}", to_do);
  }

  /// The job and the caches.
  std::string where() const {
    const std::string whose = are_caches_given_ ? "--cache" : job_.text();
    if (!facts_.caches.empty())
      return fmt::format("looked at the caches of {}: {}", whose, shortened(facts_.caches));
    if (!facts_.left_caches.empty())
      return fmt::format("looked for the caches of {}: those found are not used", whose);
    if (are_caches_given_) return "looked at the directories of --cache: there is no cache in them";
    std::vector<std::string> stores;
    for (const StoreSettings& store : settings_.stores)
      if (store.enabled) stores.push_back(store.path);
    return fmt::format("looked for the caches of {} in {}: none is here", whose, shortened(stores));
  }

  static std::string shortened(const std::vector<std::string>& paths) {
    constexpr std::size_t most = 4;
    const auto end = paths.begin() + static_cast<std::ptrdiff_t>(std::min(most, paths.size()));
    const std::string all = fmt::format("{}", fmt::join(paths.begin(), end, ", "));
    return paths.size() <= most ? all : fmt::format("{} and {} more", all, paths.size() - most);
  }

  std::string what_restart_takes() const {
    const std::string run = fmt::format("a restart with {} ranks would", facts_.ranks);
    const std::string label =
        fmt::format("dataset {} ({})", forecast_.dataset.number, forecast_.dataset.name);
    switch (forecast_.outcome) {
      case Forecast::Outcome::cache:
        return fmt::format("{} take {} from the cache", run, label);
      case Forecast::Outcome::prefix:
        return fmt::format("{} take {} from the prefix directory{}{}", run, label,
                           forecast_.before.empty() ? "" : "; ", forecast_.before);
      case Forecast::Outcome::refused:
        return fmt::format("{} fail: {}", run, forecast_.reason);
      case Forecast::Outcome::scratch:
        break;
    }
    if (!has_any_ && !facts_.prefix.trouble.empty())
      return fmt::format(
          "a restart would START FROM SCRATCH; whether {} has a checkpoint is not known",
          settings_.prefix);
    if (!has_any_ && !facts_.left_caches.empty())
      return fmt::format(
          "a restart would START FROM SCRATCH, although there are caches with datasets: runs in {} "
          "do not use them",
          settings_.prefix);
    if (!has_any_) return "a restart would start from scratch: there is no dataset";
    if (!forecast_.reason.empty())
      return fmt::format("{} START FROM SCRATCH: {}", run, forecast_.reason);
    return fmt::format("{} START FROM SCRATCH, although there are datasets", run);
  }

  /// Than what is taken as it is now.
  bool is_newer_for_run() const {
    return forecast_.outcome != Forecast::Outcome::refused &&
           std::any_of(findings_.begin(), findings_.end(), [this](const Finding& finding) {
             return finding.published_by_run && finding.uuid > text_of(forecast_.dataset.uuid);
           });
  }

  bool takes_any() const {
    return forecast_.outcome == Forecast::Outcome::cache ||
           forecast_.outcome == Forecast::Outcome::prefix;
  }

  static std::string place_of(const Finding& finding) {
    if (finding.place == "cache") return "in the cache";
    return finding.place == "prefix" ? "in the prefix directory" : finding.place;
  }

  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    notes_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void add_notes(Clock& clock) {
    if (!settings_.enable) note("SCR_ENABLE=0: no run asks for a checkpoint");
    for (const std::string& cache : facts_.running)
      note("a job or a command is using the cache {}: another run fails until it has ended", cache);
    for (const std::string& folder : facts_.in_work)
      note("a command is copying to {}, or rebuilding there: ask again when it has ended", folder);
    if (!job_.other_job.empty())
      note(
          "this allocation is job {}: a run in it looks for caches of that job only, unless "
          "SCR_JOB_ID={} is set",
          job_.other_job, settings_.job_id);
    for (const auto* texts : {&facts_.left_caches, &facts_.ignored})
      for (const std::string& text : *texts) note("{}", text);
    if (facts_.caches.empty() && facts_.left_caches.empty()) note_no_cache();
    for (const std::string& trouble : facts_.unreadable) note("it counts as missing: {}", trouble);
    note_absent_nodes();
    note_prefix(clock);
    for (const std::string& label : forecast_.failed)
      note("{} is tried first, and found damaged", label);
    note_unread_bytes();
  }

  /// A run that came to its end has copied its newest checkpoint, unless it did not flush.
  void note_no_cache() {
    const bool has_ended = job_.last_run && job_.last_run->ended_us != 0;
    if (has_ended && settings_.flush_interval != 0 &&
        forecast_.outcome == Forecast::Outcome::prefix)
      note(
          "no cache of job {} of {} is visible here: its last run came to its end, and a restart "
          "needs no cache",
          settings_.job_id, settings_.user);
    else if (facts_.sees_all_nodes)
      note(
          "no cache of job {} of {} is left: the nodes of its last run were simulated on this "
          "machine, and what only their caches had is lost",
          settings_.job_id, settings_.user);
    else
      note(
          "no cache of job {} of {} is visible here: name directories that hold caches by --cache, "
          "or {}",
          settings_.job_id, settings_.user, advice_.scavenge_nodes());
  }

  /// Its parts in the caches have no checksums.
  bool is_only_written(const Uuid& uuid) const {
    return std::any_of(facts_.cached.begin(), facts_.cached.end(), [&](const CachedFacts& cached) {
      return cached.remains.uuid == uuid && cached.state.is_only_written;
    });
  }

  /// Of what is to be copied to the prefix directory first they are still in the caches.
  void note_unread_bytes() {
    if (!takes_any()) return;
    const DatasetInfo& dataset = forecast_.dataset;
    const bool in_prefix = find_in(facts_.prefix.listing, dataset.uuid) != nullptr;
    const bool in_cache = forecast_.outcome == Forecast::Outcome::cache || !in_prefix;
    if (in_cache && is_only_written(dataset.uuid))
      return note(
          "bytes were not verified: the dataset has no checksums before it is protected; the sizes "
          "and times of its files are those with which they were written");
    note("bytes were not compared with their checksums; {} reads all of them",
         in_cache ? advice_.verify_caches(facts_.caches, dataset) : advice_.verify(dataset));
  }

  void note_absent_nodes() {
    std::vector<std::string> nodes;
    for (const CachedFacts& cached : facts_.cached)
      for (const std::string& node : cached.state.absent_nodes)
        if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    if (!nodes.empty() && facts_.sees_all_nodes)
      note("data written on {} are lost: these nodes were simulated on this machine",
           fmt::join(nodes, ", "));
    else if (!nodes.empty())
      note(
          "data written on {} are not visible from here: start a run on these nodes, which uses "
          "what they still hold, or {}",
          fmt::join(nodes, ", "), advice_.scavenge_nodes());
  }

  /// The owner is certainly dead, even before it has been silent long enough.
  bool is_gone(const OwnerRecord& owner) const {
    return job_.last_run && job_.last_run->process.process == owner.process &&
           life_of(job_.last_run->process) == Life::gone;
  }

  void note_prefix(Clock& clock) {
    const PrefixFacts& prefix = facts_.prefix;
    if (!prefix.trouble.empty())
      note("nothing can be fetched from {}: {}", settings_.prefix, prefix.trouble);
    if (!prefix.not_mine.empty())
      note("this is the forecast for a run of the owner of {}; your own run could not use it: {}",
           settings_.prefix, prefix.not_mine);
    for (const std::string& record : prefix.unreadable)
      note("a dataset in the prefix directory cannot be used: {}", record);
    for (const UnreadDataset& dataset : prefix.unread)
      note("a dataset in the prefix directory cannot be read now: {}", dataset.why);
    for (const std::string& damage : {prefix.current_damage, prefix.deleted_damage})
      if (!damage.empty()) note("{}", damage);
    if (!prefix.of_scr.empty())
      note(
          "SCR 3 has left {} datasets in {} that were not imported: a run imports the one that it "
          "restarts from, and {} imports all",
          prefix.of_scr.size(), settings_.prefix, advice_.index_import());
    if (!prefix.scr_trouble.text.empty())
      note("what SCR 3 has left in {} is not known: {}", settings_.prefix, prefix.scr_trouble.text);
    const std::string useless = text_of_useless_current(prefix.listing, prefix.unread, settings_);
    if (!useless.empty()) note("{}", useless);
    if (prefix.owner) note_owner(clock, *prefix.owner);
  }

  void note_owner(Clock& clock, const OwnerRecord& owner) {
    const std::int64_t silent_us = clock.now_us() - owner.beat_us;
    const std::string who = fmt::format("job {} of {} on {} (process {})", owner.job_id, owner.user,
                                        owner.host, owner.process);
    const bool is_rival = facts_.prefix.owner_is_rival;
    if (silent_us < silence_us && !is_gone(owner))
      note("{} may be running in {}: its last sign of life is {:.0f} s old{}", who,
           settings_.prefix, std::max(0.0, static_cast<double>(silent_us) * 1e-6),
           is_rival ? "; another job fails until it has ended" : "");
    else if (is_rival)
      note("{} did not record its end in {}: a run waits {} for a sign of life", who,
           settings_.prefix, format_seconds(static_cast<double>(silence_us) * 1e-6));
  }

  const JobFacts& facts_;
  const FoundJob& job_;
  const Settings& settings_;
  const bool are_caches_given_;
  const Advice advice_;
  const Forecast forecast_;
  std::vector<Finding> findings_;
  const bool has_any_;
  const bool run_publishes_first_;
  std::vector<std::string> notes_;
};

Result<Report> explain(const ExplainCommand& command, Files& files, Clock& clock,
                       const ProcessFacts& process, const Log& log) {
  CAIRN_ASSIGN(const FoundJob job, find_job(command.source, files, process, log));
  const Settings& settings = job.settings;
  CAIRN_ASSIGN(JobFacts facts,
               gather_facts(files, clock, settings, command.caches, command.ranks, log));
  facts.sees_all_nodes =
      command.caches.empty() && facts.unreadable.empty() && job.was_simulated_on(process.host_name);
  FilesSeen seen(files, settings, facts.prefix.scr);
  const Explanation found(
      command, facts, job, clock, [&](const DatasetRecord& record) { return seen(record); },
      [&](const DatasetRecord& record) { return seen.changed(record); });
  const bool is_absent = !facts.prefix.is_there && facts.prefix.trouble.empty();
  const Status is_there = is_absent ? check_prefix_folder(files, settings.prefix) : Status{};
  // If there are caches, this explains them all the same.
  if (!is_there && !found.has_findings()) return tl::unexpected(is_there.error());
  const auto root = files.info(PrefixFolder{settings.prefix}.root());
  if (found.knows_nothing() && !root && root.error().code == Code::not_found)
    return fail(Code::not_found,
                "no job has worked in {}: name the prefix directory of the job by --prefix or "
                "SCR_PREFIX{}",
                settings.prefix, text_of_directory(files, process, command.datasets));
  Report report = found.report();
  report.add_failure(is_there);
  if (!found.has_findings() && !command.datasets.empty())
    report.add_failure(fail(Code::not_found, "there is no such dataset: {}{}",
                            fmt::join(command.datasets, ", "),
                            text_of_directory(files, process, command.datasets)));
  return report;
}

}  // namespace

int run_explain_command(const ExplainCommand& command, Files& files, Clock& clock,
                        const ProcessFacts& process, std::ostream& out, const Log& log) {
  return print_report(explain(command, files, clock, process, log), command.json, out, log);
}

}  // namespace cairn
