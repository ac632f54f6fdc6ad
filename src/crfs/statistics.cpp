#include "crfs/statistics.hpp"

#include <nlohmann/json.hpp>

#include "base/units.hpp"

namespace cairn {
namespace {

/// Writes of programs per write to the backing directory; 0 without any.
double merge_factor(const AggregateStatistics& statistics) {
  if (statistics.writes_out == 0) return 0;
  return static_cast<double>(statistics.writes_in) / static_cast<double>(statistics.writes_out);
}

}  // namespace

std::string json_of(const MountStatistics& all) {
  const AggregateStatistics& statistics = all.gathered;
  const nlohmann::ordered_json json = {{"writes_in", statistics.writes_in},
                                       {"bytes_in", statistics.bytes_in},
                                       {"writes_out", statistics.writes_out},
                                       {"bytes_out", statistics.bytes_out},
                                       {"merge_factor", merge_factor(statistics)},
                                       {"waits", statistics.waits},
                                       {"errors", statistics.errors},
                                       {"pool_used_bytes", statistics.pool_used_bytes},
                                       {"pool_most_bytes", statistics.pool_most_bytes},
                                       {"passed_through", all.passed_through},
                                       {"mode", name_of(all.mode)}};
  return json.dump() + "\n";
}

std::string text_of(const MountStatistics& all) {
  const AggregateStatistics& statistics = all.gathered;
  return fmt::format(
      "{} writes of {} became {} writes of {}: {:.1f} in one\n"
      "at most {} of memory were in use; writers waited {} times for memory\n"
      "{} writes failed\n"
      "the kernel read and wrote {} files by itself\n",
      statistics.writes_in, format_bytes(statistics.bytes_in), statistics.writes_out,
      format_bytes(statistics.bytes_out), merge_factor(statistics),
      format_bytes(statistics.pool_most_bytes), statistics.waits, statistics.errors,
      all.passed_through);
}

}  // namespace cairn
