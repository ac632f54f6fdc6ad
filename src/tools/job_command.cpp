#include "tools/job_command.hpp"

#include "prefix/last_run_file.hpp"
#include "recovery/dead_caches.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

/// As they are with %n, which each node replaces by its own name.
Json stores_of(const Settings& settings) {
  Json stores = Json::array();
  for (const StoreSettings& store : settings.stores)
    if (store.enabled) stores.push_back(store.path);
  return stores;
}

Json nodes_of(const LastRunRecord& run) {
  Json nodes = Json::array();
  for (const NodeOfRun& node : run.nodes)
    nodes.push_back({{"name", node.name}, {"host", node.host}, {"ranks", node.ranks}});
  return nodes;
}

Json run_of(const FoundJob& job, Files& files, Clock& clock) {
  if (!job.last_run) return nullptr;
  const LastRunRecord& run = *job.last_run;
  const RunState state = state_of_run(files, clock, {job.settings.prefix}, run);
  constexpr double us_per_s = 1e6;
  return {{"job", run.job_id},
          {"state", name_of(state)},
          {"host", run.host},
          {"process", run.process.process},
          {"started_s", static_cast<double>(run.started_us) / us_per_s},
          {"ended_s", static_cast<double>(run.ended_us) / us_per_s},
          {"by_cairn_run", run.by_cairn_run},
          {"ranks", run.ranks()},
          {"nodes", nodes_of(run)},
          {"version", run.version}};
}

Report report_of(const FoundJob& job, const ProcessFacts& process, Files& files, Clock& clock) {
  const Settings& settings = job.settings;
  const JobCaches caches = caches_of_job(files, settings);
  Report report;
  report.facts = {{"prefix", settings.prefix},
                  {"job", settings.job_id},
                  {"user", settings.user},
                  {"text", job.text()},
                  {"is_default", job.is_id_default},
                  {"other_job", job.other_job},
                  {"job_of_last_run", job.job_of_last_run},
                  {"trouble", job.trouble},
                  {"this_host", process.host_name},
                  {"stores", stores_of(settings)},
                  {"control_base", settings.control_base},
                  {"caches", caches.used},
                  {"left_caches", caches.left},
                  {"last_run", run_of(job, files, clock)}};
  return report;
}

}  // namespace

int run_job_command(const JobSettingsSource& source, Files& files, Clock& clock,
                    const ProcessFacts& process, std::ostream& out, const Log& log) {
  auto report = find_job(source, files, process, log).map([&](const FoundJob& job) {
    return report_of(job, process, files, clock);
  });
  return print_report(std::move(report), true, out, log);
}

}  // namespace cairn
