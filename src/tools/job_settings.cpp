#include "tools/job_settings.hpp"

namespace cairn {

Result<ResolvedSettings> read_job_settings(const JobSettingsSource& source, Files& files,
                                           ProcessFacts process, const Log& log) {
  if (!source.prefix.empty())
    process.environment["SCR_PREFIX"] = normalise(source.prefix, process.working_folder);
  CAIRN_ASSIGN(const SettingSources sources,
               gather_sources(files, process, {}, source.system_path));
  CAIRN_ASSIGN(ResolvedSettings resolved, resolve(sources));
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
