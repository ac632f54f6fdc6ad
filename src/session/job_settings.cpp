#include "session/job_settings.hpp"

#include "config/gather.hpp"

namespace cairn {

Result<ResolvedSettings> resolve_job_settings(Communicator& comm, Files& files,
                                              const std::vector<Entry>& app_entries) {
  Blob blob;
  Status gathered;
  if (comm.rank() == 0) {
    auto sources = gather_sources(files, current_process(), app_entries, system_settings_path());
    if (sources)
      blob = to_blob(*sources);
    else
      gathered = tl::unexpected(std::move(sources).error());
  }
  CAIRN_TRY(agree(comm, std::move(gathered)));
  bcast_blob(comm, blob, 0);
  CAIRN_ASSIGN(SettingSources sources, sources_from_blob(blob));
  auto resolved =
      take_own_facts(sources, current_process()).and_then([&] { return resolve(sources); });
  CAIRN_TRY(agree(comm, resolved ? Status{} : Status(tl::unexpected(resolved.error()))));
  return resolved;
}

}  // namespace cairn
