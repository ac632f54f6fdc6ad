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

}  // namespace cairn
