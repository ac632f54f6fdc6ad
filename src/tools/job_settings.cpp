#include "tools/job_settings.hpp"

#include "prefix/app_settings_file.hpp"

namespace cairn {

Result<ResolvedSettings> read_job_settings(const JobSettingsSource& source, Files& files,
                                           ProcessFacts process, const Log& log) {
  if (!source.prefix.empty())
    process.environment["SCR_PREFIX"] = normalise(source.prefix, process.working_folder);
  const auto resolve_with = [&](const std::vector<Entry>& app) -> Result<ResolvedSettings> {
    CAIRN_ASSIGN(const SettingSources sources,
                 gather_sources(files, process, app, source.system_path));
    return resolve(sources);
  };
  CAIRN_ASSIGN(ResolvedSettings resolved, resolve_with({}));
  auto with_kept =
      read_app_settings(files, PrefixFolder{resolved.settings.prefix}).and_then(resolve_with);
  if (with_kept)
    resolved = *std::move(with_kept);
  else
    log.warning("what the program has set by SCR_Config is left out: {}", with_kept.error().text);
  for (const std::string& warning : resolved.warnings) log.warning("{}", warning);
  return resolved;
}

Status check_prefix_folder(Files& files, const std::string& prefix) {
  // Through "/.", so that a link to the folder will do.
  const auto info = files.info(prefix + "/.");
  if (info && info->kind == Kind::folder) return {};
  if (!info && info.error().code != Code::not_found) return tl::unexpected(info.error());
  return fail(Code::not_found, "{} is no folder; name the prefix directory of the job (SCR_PREFIX)",
              prefix);
}

}  // namespace cairn
