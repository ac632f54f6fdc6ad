#include "tools/drain_command.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/count.hpp"
#include "base/units.hpp"
#include "files/background.hpp"
#include "prefix/event_log.hpp"
#include "recovery/dead_caches.hpp"
#include "scavenge/drain.hpp"
#include "tools/as_owner.hpp"
#include "tools/node_copies.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;
using DrainOutcome = DrainedDataset::Outcome;

std::string_view name_of(DrainOutcome outcome) {
  constexpr std::array<std::string_view, 3> names = {"published", "incomplete", "failed"};
  return names.at(static_cast<std::size_t>(outcome));
}

Json json_of(const DatasetInfo& dataset) {
  return {{"number", dataset.number}, {"uuid", text_of(dataset.uuid)}, {"name", dataset.name}};
}

Json json_of(const DrainedDataset& drained) {
  Json json = json_of(drained.dataset);
  json.update({{"ranks", drained.ranks},
               {"missing", drained.missing},
               {"outcome", name_of(drained.outcome)},
               {"reason", drained.failure ? "" : drained.failure.error().text}});
  return json;
}

/// A job may have thousands of ranks.
std::string text_of_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t most = 8;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(most, ranks.size()));
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(ranks.begin(), ranks.begin() + shown, ", "),
                     ranks.size() > most ? fmt::format(" and {} more", ranks.size() - most) : "");
}

class DrainNode {
 public:
  DrainNode(const DrainCommand& command, Files& files, Clock& clock, const Settings& settings,
            std::ostream& out, const Log& log)
      : command_(command),
        files_(files),
        clock_(clock),
        settings_(settings),
        folder_{settings.prefix},
        out_(out),
        log_(log) {}

  Result<Report> run() {
    CAIRN_TRY(check_prefix_folder(files_, settings_.prefix));
    CAIRN_ASSIGN(const auto plans, plans_to_drain(files_, folder_));
    if (command_.list) return list(plans);
    // Without a plan no cache is locked, and no cache is read.
    return plans.empty() ? Result<Report>(report_of({}, {})) : copy(plans);
  }

 private:
  Report list(const std::vector<UnfinishedFlush>& plans) const {
    Report report;
    report.facts = {{"datasets", Json::array()}};
    for (const UnfinishedFlush& flush : plans) {
      Json json = json_of(flush.plan.info);
      json.update({{"output", flush.plan.info.is_output()},
                   {"ranks", flush.plan.info.ranks},
                   {"copied", flush.done.size()}});
      report.facts["datasets"].push_back(std::move(json));
      report.line("{}: {} of {} copied to {}",
                  dataset_label(flush.plan.info.number, flush.plan.info.name), flush.done.size(),
                  count_text(flush.plan.info.ranks, "part"), settings_.prefix);
    }
    if (plans.empty()) report.line("{} has no unfinished copies", settings_.prefix);
    return report;
  }

  Result<Report> copy(const std::vector<UnfinishedFlush>& plans) {
    CAIRN_TRY(wait_for_owner({"cairn drain", false, false, command_.run_ended}, files_, clock_,
                             settings_, log_));
    JobCaches caches = caches_on_node(files_, settings_);
    const std::vector<std::string> in_use = caches_with(plans, caches);
    CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files_, clock_, in_use));
    std::vector<std::string> seen_before;  // caches_with() has reported them
    CAIRN_ASSIGN(const std::vector<Remains> held,
                 find_remains(files_, in_use, RecordDetail::outline, &seen_before));
    for (const auto* texts : {&caches.unreadable, &caches.left})
      for (const std::string& text : *texts) log_.warning("{}", text);
    NodeProgress shown(out_, clock_, "copying from " + settings_.node_name, command_.bar,
                       command_.progress);
    const auto background = make_background_thread();
    const DrainOptions options{limits_of(settings_, *background), settings_.copy_metadata};
    std::uint64_t done = 0;
    const auto drained =
        drain(files_, clock_, folder_, held, options, [&](ScavengeProgress progress) {
          done = progress.bytes;
          shown.show(progress);
        });
    shown.end_bar();
    if (!drained) return tl::unexpected(drained.error());
    shown.end(done);
    for (const DrainedDataset& one : *drained) log_event(one);
    return report_of(*drained, caches);
  }

  /// Those that hold something of these: only they are locked, and other nodes use the others.
  std::vector<std::string> caches_with(const std::vector<UnfinishedFlush>& plans,
                                       JobCaches& caches) const {
    std::vector<std::string> found;
    for (const std::string& cache : caches.used) {
      const auto all = find_remains(files_, {cache}, RecordDetail::outline, &caches.unreadable);
      const bool is_needed =
          all && std::any_of(all->begin(), all->end(), [&](const Remains& remains) {
            return std::any_of(plans.begin(), plans.end(), [&](const UnfinishedFlush& flush) {
              return flush.plan.info.uuid == remains.uuid;
            });
          });
      if (is_needed) found.push_back(cache);
    }
    return found;
  }

  void log_event(const DrainedDataset& one) {
    if (one.ranks.empty() && one.outcome != DrainOutcome::published) return;
    EventLog(files_, clock_, settings_, log_, EventLog::Part::writer)
        .happened(one.outcome == DrainOutcome::published ? "DRAIN_SUCCESS" : "DRAIN", one.dataset,
                  {}, text_of(one));
  }

  Report report_of(const std::vector<DrainedDataset>& drained, const JobCaches& caches) const {
    Report report;
    report.facts = facts_of_node(settings_.node_name, caches);
    for (const DrainedDataset& one : drained) {
      report.facts["datasets"].push_back(json_of(one));
      report.line("{}: {}", dataset_label(one.dataset.number, one.dataset.name), text_of(one));
      if (one.outcome == DrainOutcome::failed) report.add_failure(one.failure);
    }
    if (!caches.unreadable.empty())
      report.add_failure(fail(Code::io, "not all that {} holds could be read: {}",
                              settings_.node_name, caches.unreadable.front()));
    if (drained.empty()) report.line("{} has no unfinished copies", settings_.prefix);
    return report;
  }

  std::string text_of(const DrainedDataset& one) const {
    switch (one.outcome) {
      case DrainOutcome::published:
        return fmt::format("all of it is in {} now", settings_.prefix);
      case DrainOutcome::incomplete:
        return one.ranks.empty() ? fmt::format("{} holds no part of it", settings_.node_name)
                                 : fmt::format("the {} of {} copied; {} not copied yet",
                                               count_text(one.ranks.size(), "part"),
                                               settings_.node_name, text_of_ranks(one.missing));
      case DrainOutcome::failed:
        return fmt::format("not finished: {}", one.failure.error().text);
    }
    return {};
  }

  const DrainCommand& command_;
  Files& files_;
  Clock& clock_;
  const Settings& settings_;
  const PrefixFolder folder_;
  std::ostream& out_;
  const Log& log_;
};

}  // namespace

int run_drain_command(const DrainCommand& command, Files& files, Clock& clock,
                      const ProcessFacts& process, std::ostream& out, const Log& log) {
  auto report = find_job(command.source, files, process, log).and_then([&](const FoundJob& job) {
    return DrainNode(command, files, clock, job.settings, out, log).run();
  });
  return print_report(std::move(report), command.json, out, log, {Code::busy, exit_try_again});
}

}  // namespace cairn
