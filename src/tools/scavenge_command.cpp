#include "tools/scavenge_command.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/count.hpp"
#include "base/units.hpp"
#include "files/background.hpp"
#include "prefix/event_log.hpp"
#include "recovery/dead_caches.hpp"
#include "scavenge/scavenge.hpp"
#include "tools/node_copies.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Holding& holding) {
  return {{"number", holding.info.number},
          {"uuid", text_of(holding.info.uuid)},
          {"name", holding.info.name}};
}

Json described(const Holding& holding, bool shared) {
  Json json = json_of(holding);
  json.update({{"checkpoint", holding.info.is_checkpoint()},
               {"output", holding.info.is_output()},
               {"ranks", holding.info.ranks},
               {"bytes", holding.bytes},
               {"parts", holding.ranks()},
               {"committed", holding.committed},
               {"in_prefix", holding.in_prefix},
               {"outlived", holding.outlived},
               {"shared", shared}});
  return json;
}

class ScavengeNode {
 public:
  ScavengeNode(const ScavengeCommand& command, Files& files, Clock& clock, const FoundJob& job,
               std::ostream& out, const Log& log)
      : command_(command),
        files_(files),
        clock_(clock),
        job_(job),
        settings_(job.settings),
        folder_{settings_.prefix},
        out_(out),
        log_(log) {}

  Result<Report> run() {
    const std::string& node = settings_.node_name;
    if (node.find('/') != std::string::npos || node.starts_with("."))
      return fail(Code::bad_setting, "SCR_NODE_NAME is {}: it cannot be the name of a directory",
                  node);
    CAIRN_TRY(check_prefix_folder(files_, settings_.prefix));
    JobCaches caches = caches_on_node(files_, settings_);
    note_lost_stores(caches.unreadable);
    CacheLocks locks;
    if (!command_.list) {
      CAIRN_ASSIGN(locks, lock_caches(files_, clock_, caches.used));
    }
    CAIRN_ASSIGN(std::vector<Holding> holdings,
                 find_holdings(files_, caches.used, folder_, caches.unreadable, log_));
    for (const auto* texts : {&caches.unreadable, &caches.ignored})
      for (const std::string& text : *texts) log_.warning("{}", text);
    CAIRN_TRY(check_named(holdings));
    const bool holds_nothing = holdings.empty();
    std::erase_if(holdings, [&](const Holding& holding) {
      return !is_wanted(command_.datasets, holding.info.uuid, holding.info.number,
                        holding.info.name);
    });
    Report report;
    if (command_.list)
      list(report, holdings, caches);
    else
      CAIRN_TRY(save(report, std::move(holdings), caches.unreadable));
    const Status is_complete = check_all_seen(caches);
    report.add_failure(is_complete && holds_nothing ? check_job_known() : is_complete);
    return report;
  }

 private:
  /// That nothing is here of a job proves nothing if it may not be the job that was meant.
  Status check_job_known() const {
    if (!job_.job_of_last_run.empty() && !command_.list)
      return fail(Code::not_found,
                  "{}, but the last run in {} was of job {}. Unset SCR_JOB_ID, or set "
                  "SCR_JOB_ID={}, to save that job's data",
                  nothing_here(), settings_.prefix, job_.job_of_last_run, job_.job_of_last_run);
    if (!job_.is_id_default) return {};
    return fail(
        Code::not_found,
        "which job ran in {} is not known: {}. Name its prefix directory (--prefix), or set "
        "SCR_JOB_ID, and SCR_CACHE_BASE if the job had it set",
        settings_.prefix, job_.trouble.empty() ? "no run is recorded there" : job_.trouble);
  }

  /// Success means that this node holds nothing else of the job. A user who names datasets does not
  /// ask about others.
  Status check_all_seen(const JobCaches& caches) const {
    const std::string& node = settings_.node_name;
    if (!caches.unreadable.empty())
      return fail(Code::io, "not all that {} holds could be read: {}", node,
                  caches.unreadable.front());
    if (!caches.left.empty() && command_.datasets.empty())
      return fail(Code::not_found, "not all that {} holds was looked at: {}", node,
                  fmt::join(caches.left, "; "));
    for (const std::string& text : caches.left) log_.warning("{}", text);
    return {};
  }

  Status check_named(const std::vector<Holding>& holdings) const {
    for (const std::string& word : command_.datasets)
      if (std::none_of(holdings.begin(), holdings.end(), [&](const Holding& holding) {
            return is_named(word, holding.info.uuid, holding.info.number, holding.info.name);
          }))
        return fail(Code::not_found, "{}", nothing_here("no part of dataset " + word));
    return {};
  }

  /// That a node holds nothing says something only where it can hold something.
  void note_lost_stores(std::vector<std::string>& unreadable) const {
    if (!job_.was_on(settings_.node_name)) return;
    for (const StoreSettings& store : settings_.stores) {
      const std::string path = expand_node(store.path, settings_.node_name);
      const auto info = files_.info(path + "/.");
      if (store.enabled && !info && info.error().code == Code::not_found)
        unreadable.push_back(fmt::format(
            "the last run of job {} had its cache in {}, which is gone", settings_.job_id, path));
    }
  }

  /// Where it was looked for: what is wrong is mostly one of these.
  std::string nothing_here(const std::string& what = "nothing") const {
    std::vector<std::string> stores;
    for (const StoreSettings& store : settings_.stores)
      stores.push_back(expand_node(store.path, settings_.node_name));
    return fmt::format("{} has {} of {} in {}", settings_.node_name, what, job_.text(),
                       fmt::join(stores, ", "));
  }

  /// Every node of the job sees the same of it.
  bool is_shared(const Holding& holding) const {
    const auto& parts = holding.remains.parts;
    return std::all_of(parts.begin(), parts.end(), [this](const HeldPart& part) {
      return is_in_shared_store(part.folder.path);
    });
  }

  /// The store of a node may lie below the path of one that all share: the longest path decides.
  bool is_in_shared_store(const std::string& path) const {
    std::size_t longest = 0;
    bool shared = false;
    for (const StoreSettings& store : settings_.stores) {
      const std::string root = expand_node(store.path, settings_.node_name);
      if (root.size() <= longest || !lies_below(path, root, nullptr)) continue;
      longest = root.size();
      shared = store.shared();
    }
    return shared;
  }

  void list(Report& report, const std::vector<Holding>& holdings, const JobCaches& caches) const {
    report.facts = facts_of_node(settings_.node_name, caches);
    for (const Holding& holding : holdings) {
      report.facts["datasets"].push_back(described(holding, is_shared(holding)));
      report.line("{}: {} of {}, {}{}", dataset_label(holding.info.number, holding.info.name),
                  holding.ranks().size(), count_text(holding.info.ranks, "rank"),
                  format_bytes(holding.bytes),
                  holding.in_prefix ? "; in the prefix directory" : "");
    }
    if (holdings.empty()) report.line("{}", nothing_here());
  }

  Status save(Report& report, std::vector<Holding> holdings, std::vector<std::string>& unreadable) {
    if (command_.datasets.empty())
      std::erase_if(holdings,
                    [](const Holding& holding) { return holding.in_prefix || holding.outlived; });
    if (holdings.empty()) {
      report.line("{} that the prefix directory lacks", nothing_here());
      add_facts(report, holdings, {}, unreadable);
      return {};
    }
    std::stable_sort(holdings.begin(), holdings.end(), [](const Holding& a, const Holding& b) {
      return is_saved_before(a.info, b.info);
    });
    NodeProgress shown(out_, clock_, "scavenging " + settings_.node_name, command_.bar,
                       command_.progress);
    const auto background = make_background_thread();
    const auto saved = scavenge(
        files_, clock_, folder_, settings_.node_name, holdings, limits_of(settings_, *background),
        [&](ScavengeProgress progress) { shown.show(progress); }, log_);
    shown.end_bar();
    if (!saved) return tl::unexpected(saved.error());
    shown.end(saved->bytes);
    log_transfer(holdings, *saved, shown.seconds());
    if (!saved->unreadable.empty()) unreadable.push_back(saved->unreadable);
    add_facts(report, holdings, *saved, unreadable);
    report.line("{}: {} of {} saved below {}, {} of it now; took {}", settings_.node_name,
                format_bytes(saved->bytes), count_text(holdings.size(), "dataset"),
                folder_.saved().of_node(settings_.node_name), format_bytes(saved->saved_bytes),
                format_seconds(shown.seconds()));
    return {};
  }

  /// Without a dataset where there are several.
  void log_transfer(const std::vector<Holding>& holdings, const ScavengeAccount& saved,
                    double seconds) {
    EventLog(files_, clock_, settings_, log_, EventLog::Part::writer)
        .moved("SCAVENGE", "", folder_.saved().of_node(settings_.node_name),
               holdings.size() == 1 ? holdings.front().info : DatasetInfo{}, seconds,
               saved.saved_bytes, saved.files);
  }

  void add_facts(Report& report, const std::vector<Holding>& holdings, const ScavengeAccount& saved,
                 const std::vector<std::string>& unreadable) const {
    report.facts = {{"node", settings_.node_name},
                    {"datasets", Json::array()},
                    {"below", folder_.saved().of_node(settings_.node_name)},
                    {"bytes", saved.bytes},
                    {"saved_bytes", saved.saved_bytes},
                    {"bad_blocks", saved.bad_blocks},
                    {"unreadable", unreadable}};
    for (const Holding& holding : holdings) report.facts["datasets"].push_back(json_of(holding));
  }

  const ScavengeCommand& command_;
  Files& files_;
  Clock& clock_;
  const FoundJob& job_;
  const Settings& settings_;
  const PrefixFolder folder_;
  std::ostream& out_;
  const Log& log_;
};

}  // namespace

int run_scavenge_command(const ScavengeCommand& command, Files& files, Clock& clock,
                         const ProcessFacts& process, std::ostream& out, const Log& log) {
  auto report = find_job(command.source, files, process, log).and_then([&](const FoundJob& job) {
    return ScavengeNode(command, files, clock, job, out, log).run();
  });
  return print_report(std::move(report), command.json, out, log, {Code::busy, exit_try_again});
}

}  // namespace cairn
