// Cairn's records as JSON, for the commands that show them. Each field has its name in docs/format;
// a time "..._us" has a twin without that, in local time or null.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "records/dataset_record.hpp"
#include "records/halt_record.hpp"
#include "records/last_run_record.hpp"
#include "records/owner_record.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// "published"; or why a restart passes it over: "failed", "quarantined".
std::string_view word_for(const DatasetRecord& record);
/// "checkpoint", "output", "both" or "neither".
std::string_view kind_of(const DatasetInfo& info);

nlohmann::ordered_json json_of(const DatasetRecord& record);
nlohmann::ordered_json json_of(const OwnerRecord& record);
nlohmann::ordered_json json_of(const HaltRecord& record);
nlohmann::ordered_json json_of(const LastRunRecord& record);
nlohmann::ordered_json json_of(const RankRecord& record);
nlohmann::ordered_json json_of(const FileEntry& file);

/// Local time, or "never" for 0 and what no calendar has.
std::string time_text(std::int64_t time_us);

/// Writes `head` with one more member `key`: the datasets, a line each, as there may be many.
void write_json(std::ostream& out, const nlohmann::ordered_json& head, std::string_view key,
                const std::vector<DatasetRecord>& datasets);

/// As text. JSON is UTF-8, and a name or path need not be.
std::string text_of_json(const nlohmann::ordered_json& json);

/// What a terminal would take for a command is replaced by "?".
std::string printable(std::string text);

}  // namespace cairn
