#include "tools/job_settings.hpp"

#include <algorithm>
#include <array>

#include "cache/prefix_id_file.hpp"
#include "prefix/app_settings_file.hpp"
#include "prefix/last_run_file.hpp"

namespace cairn {
namespace {

constexpr std::string_view without_allocation = "local";  // python/cairn/resources/local.py

bool is_set(const ProcessFacts& process, const char* key) {
  const auto found = process.environment.find(key);
  return found != process.environment.end() && !found->second.empty();
}

void set_unless_set(ProcessFacts& process, const char* key, const std::string& value) {
  if (!value.empty() && !is_set(process, key)) process.environment[key] = value;
}

bool is_in(const std::vector<StoreSettings>& stores, const StoreOfRun& store) {
  return std::any_of(stores.begin(), stores.end(),
                     [&](const StoreSettings& one) { return one.path == store.path; });
}

/// Settings files may name further stores, and the command may not see the file that the run saw.
void add_stores(const LastRunRecord& run, Settings& settings) {
  for (const StoreOfRun& store : run.stores) {
    if (is_in(settings.stores, store)) continue;
    StoreSettings added;
    added.path = store.path;
    added.view = store.shared ? StoreView::global : StoreView::private_;
    settings.stores.push_back(std::move(added));
  }
}

void take_places(const LastRunRecord& run, ProcessFacts& process) {
  set_unless_set(process, "SCR_JOB_ID", run.job_id);
  set_unless_set(process, "SCR_USER_NAME", run.user);
  set_unless_set(process, "SCR_CACHE_BASE", run.cache_base);
  set_unless_set(process, "SCR_CNTL_BASE", run.control_base);
}

bool has_default_id(const ResolvedSettings& resolved) {
  return resolved.find("SCR_JOB_ID")->source == "default";
}

std::string id_source_of(const ResolvedSettings& resolved, bool is_from_run) {
  if (is_from_run && resolved.settings.job_id == without_allocation)
    return "as its last run wrote down: cairn run calls a job so outside an allocation";
  if (is_from_run) return "as its last run wrote down";
  if (has_default_id(resolved)) return "the id of jobs that have none";
  return fmt::format("by {}", resolved.find("SCR_JOB_ID")->source);
}

/// The record of the last run at `original` is not valid for a copy of that directory.
bool is_copy_of(Files& files, const std::string& prefix, const std::string& original) {
  if (prefix == original) return false;
  const RecordedId here = read_prefix_id(files, prefix);
  return here.state == RecordedId::State::copied ||
         is_id_of_another(files, here.id, prefix, original);
}

}  // namespace

Result<ResolvedSettings> read_job_settings(const JobSettingsSource& source, Files& files,
                                           ProcessFacts process, const Log& log) {
  if (!source.prefix.empty())
    process.environment["SCR_PREFIX"] = normalise(source.prefix, process.working_folder);
  const auto resolve_with = [&](const std::vector<Entry>& app) -> Result<ResolvedSettings> {
    const auto sources = gather_sources(files, process, app, source.system_path);
    if (!sources && sources.error().code == Code::io)
      return fail(Code::io,
                  "{}; the prefix directory (SCR_PREFIX, --prefix) and all files of "
                  "settings must be readable",
                  sources.error().text);
    CAIRN_TRY(sources);
    return resolve(*sources);
  };
  CAIRN_ASSIGN(ResolvedSettings resolved, resolve_with({}));
  auto with_kept =
      read_app_settings(files, PrefixFolder{resolved.settings.prefix}).and_then(resolve_with);
  if (with_kept)
    resolved = *std::move(with_kept);
  else
    log.warning("settings that the program made with SCR_Config are ignored: {}",
                with_kept.error().text);
  for (const std::string& warning : resolved.warnings) log.warning("{}", warning);
  return resolved;
}

std::string FoundJob::text() const {
  const std::string other =
      job_of_last_run.empty() ? "" : fmt::format("; the last run was of job {}", job_of_last_run);
  return fmt::format("job {} of {} ({}{})", settings.job_id, settings.user, id_source, other);
}

bool FoundJob::was_on(const std::string& node) const {
  return last_run && std::any_of(last_run->nodes.begin(), last_run->nodes.end(),
                                 [&](const NodeOfRun& one) { return one.name == node; });
}

bool FoundJob::was_simulated_on(const std::string& host) const {
  if (!last_run || last_run->nodes.empty() || last_run->user != settings.user) return false;
  const auto is_simulated = [&](const NodeOfRun& node) {
    return node.host == host && node.name != host;
  };
  // Simulated nodes of one host need stores with their names; and a host may have a second name.
  const auto is_of_nodes_here = [&](const StoreOfRun& store) {
    const bool has_name = store.path.find("%n") != std::string::npos;
    return (store.shared || has_name) && is_in(settings.stores, store);
  };
  return std::all_of(last_run->nodes.begin(), last_run->nodes.end(), is_simulated) &&
         std::all_of(last_run->stores.begin(), last_run->stores.end(), is_of_nodes_here);
}

Result<std::optional<LastRunRecord>> last_run_of(Files& files, const std::string& prefix) {
  CAIRN_ASSIGN(auto run, read_last_run(files, PrefixFolder{prefix}));
  if (!run || !is_copy_of(files, prefix, run->prefix)) return run;
  return fail(
      Code::not_found,
      "{} is a copy of {}, where job {} ran: what it has of that run is ignored. Name {} to "
      "find the job, or set SCR_JOB_ID for a job of the copy",
      prefix, run->prefix, run->job_id, run->prefix);
}

Result<FoundJob> find_job(const JobSettingsSource& source, Files& files, ProcessFacts process,
                          const Log& log) {
  FoundJob job;
  CAIRN_ASSIGN(ResolvedSettings resolved, read_job_settings(source, files, process, log));
  auto last_run = last_run_of(files, resolved.settings.prefix);
  if (!last_run) job.trouble = last_run.error().text;
  if (!last_run) log.warning("{}", job.trouble);
  job.last_run = std::move(last_run).value_or(std::nullopt);
  const bool is_id_given = is_set(process, "SCR_JOB_ID");
  if (job.last_run && is_id_given && resolved.settings.job_id != job.last_run->job_id) {
    job.job_of_last_run = job.last_run->job_id;
    job.last_run.reset();
  }
  const bool is_from_run = job.last_run && !is_id_given;
  if (is_from_run && !has_default_id(resolved) && resolved.settings.job_id != job.last_run->job_id)
    job.other_job = resolved.settings.job_id;
  if (job.last_run) {
    const bool are_stores_given = is_set(process, "SCR_CACHE_BASE");
    take_places(*job.last_run, process);
    CAIRN_ASSIGN(resolved, read_job_settings(source, files, process, Log()));
    if (!are_stores_given) add_stores(*job.last_run, resolved.settings);
  }
  job.id_source = id_source_of(resolved, is_from_run);
  job.is_id_default = !is_from_run && has_default_id(resolved);
  job.settings = std::move(resolved.settings);
  return job;
}

Status check_prefix_folder(Files& files, const std::string& prefix) {
  // With "/.", so that a link to the directory is accepted.
  const auto info = files.info(prefix + "/.");
  if (info && info->kind == Kind::folder) return {};
  if (!info && info.error().code != Code::not_found) return tl::unexpected(info.error());
  return fail(
      Code::not_found,
      "{} is not a directory; name the prefix directory of the job by --prefix or SCR_PREFIX",
      prefix);
}

}  // namespace cairn
