#include "config/sources.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "config/options.hpp"

namespace cairn {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Pair, key, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Entry, key, value, children, line)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SettingsFile, name, entries)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessFacts, environment, host_name, working_folder, user_id)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SettingSources, process, user_file, app_entries, system_file)

bool concerns_settings(const std::string& variable) {
  static constexpr std::array<std::string_view, 7> others = {
      "USER",      "FLUX_JOB_ID", "SLURM_JOBID",  "SLURM_JOB_ID",
      "PBS_JOBID", "LSB_JOBID",   "REDSET_ENCODE"};
  return variable.starts_with("SCR_") || variable.starts_with("CAIRN_") ||
         std::find(others.begin(), others.end(), variable) != others.end();
}

// CBOR and not JSON text: a path need not be UTF-8.
Blob to_blob(const SettingSources& sources) {
  const auto cbor = nlohmann::json::to_cbor(nlohmann::json(sources));
  const auto bytes = std::as_bytes(std::span(cbor));
  return Blob(bytes.begin(), bytes.end());
}

Result<SettingSources> sources_from_blob(Bytes blob) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(blob.data());
  try {
    return nlohmann::json::from_cbor(begin, begin + blob.size()).get<SettingSources>();
  } catch (const nlohmann::json::exception& wrong) {
    return fail(Code::corrupt, "the settings sent by rank 0 cannot be read: {}", wrong.what());
  }
}

void take_own_facts(SettingSources& sources, const ProcessFacts& own) {
  sources.process.host_name = own.host_name;
  for (const Option& option : options()) {
    if (!option.flags.per_rank) continue;
    const std::string key(option.key);
    sources.process.environment.erase(key);
    if (const auto mine = own.environment.find(key); mine != own.environment.end())
      sources.process.environment.insert(*mine);
  }
}

}  // namespace cairn
