#include "crfs/write_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/units.hpp"

namespace cairn {
namespace {

struct SizeClass {
  const char* name;
  std::uint64_t to_bytes;  ///< exclusive
};

constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

constexpr std::array<SizeClass, WriteProfile::classes> size_classes = {{
    {"below 64 B", 64},
    {"64 B - 256 B", 256},
    {"256 B - 1 KiB", 1 << 10},
    {"1 - 4 KiB", 4 << 10},
    {"4 - 16 KiB", 16 << 10},
    {"16 - 64 KiB", 64 << 10},
    {"64 - 256 KiB", 256 << 10},
    {"256 KiB - 1 MiB", (1 << 20) + 1},
    {"above 1 MiB", endless},
}};

std::size_t class_of(std::uint64_t bytes) {
  const auto found = std::find_if(size_classes.begin(), size_classes.end(),
                                  [&](const SizeClass& one) { return bytes < one.to_bytes; });
  return static_cast<std::size_t>(found - size_classes.begin());
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

void WriteProfile::add(std::uint64_t bytes, std::int64_t ns) {
  Class& to = classes_[class_of(bytes)];
  ++to.writes;
  to.bytes += bytes;
  to.ns += ns;
}

void WriteProfile::extend(const Write& before, std::uint64_t bytes, std::int64_t ns) {
  Class& from = classes_[class_of(before.bytes)];
  --from.writes;
  from.bytes -= before.bytes;
  from.ns -= before.ns;
  add(before.bytes + bytes, before.ns + ns);
}

WriteProfile::Row WriteProfile::row(std::size_t index) const {
  const Class& one = classes_[index];
  return {one.writes, one.bytes, static_cast<double>(one.ns) * 1e-9};
}

WriteProfile::Row WriteProfile::sum() const {
  Row sum;
  for (std::size_t i = 0; i < classes; ++i) {
    const Row one = row(i);
    sum.writes += one.writes;
    sum.bytes += one.bytes;
    sum.seconds += one.seconds;
  }
  return sum;
}

std::string WriteProfile::text() const {
  const Row all = sum();
  std::string text = fmt::format("{:16}{:>12}{:>12}{:>12}{:>12}\n", "size of write", "writes",
                                 "% of writes", "% of data", "% of time");
  for (std::size_t i = 0; i < classes; ++i) {
    const Row one = row(i);
    text +=
        fmt::format("{:16}{:>12}{:>12.2f}{:>12.2f}{:>12.2f}\n", size_classes[i].name, one.writes,
                    percent(static_cast<double>(one.writes), static_cast<double>(all.writes)),
                    percent(static_cast<double>(one.bytes), static_cast<double>(all.bytes)),
                    percent(one.seconds, all.seconds));
  }
  return text + fmt::format("{} writes of {} took {}\n", all.writes, format_bytes(all.bytes),
                            format_seconds(all.seconds));
}

std::string WriteProfile::json() const {
  const Row all = sum();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::uint64_t from_bytes = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    const Row one = row(i);
    const std::uint64_t to_bytes = size_classes[i].to_bytes;
    nlohmann::ordered_json to;  // null
    if (to_bytes != endless) to = to_bytes;
    rows.push_back({{"from_bytes", from_bytes},
                    {"to_bytes", to},
                    {"writes", one.writes},
                    {"bytes", one.bytes},
                    {"seconds", one.seconds}});
    from_bytes = to_bytes;
  }
  return nlohmann::ordered_json{{"writes", all.writes},
                                {"bytes", all.bytes},
                                {"seconds", all.seconds},
                                {"classes", rows}}
             .dump() +
         "\n";
}

}  // namespace cairn
