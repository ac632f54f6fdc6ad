#include "session/rank_in_names.hpp"

#include <charconv>
#include <limits>
#include <string_view>

namespace cairn {
namespace {

constexpr std::int64_t no_files = std::numeric_limits<std::int64_t>::min();
/// No evidence can be the negative of this, as a code and its negative are.
constexpr std::int64_t unclear = 1000;

/// Two bits for each of the last numbers in a name, the last first: it is the rank, or one more.
std::uint32_t places_of(int rank, std::string_view name) {
  constexpr std::string_view digits = "0123456789";
  constexpr unsigned most_places = 16;
  std::uint32_t places = 0;
  for (unsigned place = 0; place < most_places; ++place) {
    const std::size_t last = name.find_last_of(digits);
    if (last == std::string_view::npos) break;
    const std::size_t begin = name.find_last_not_of(digits, last) + 1;  // npos + 1 is 0
    std::int64_t number = -1;
    std::from_chars(name.data() + begin, name.data() + last + 1, number);
    if (number == rank) places |= 1U << (2 * place);
    if (number == rank + 1) places |= 2U << (2 * place);
    name = name.substr(0, begin);
  }
  return places;
}

}  // namespace

NameEvidence evidence_of(const std::map<std::string, std::string>& files, int rank) {
  if (files.empty()) return {no_files, no_files};
  std::uint32_t places = ~0U;
  for (const auto& [name, path] : files) places &= places_of(rank, name);
  for (std::int64_t code = 0; places != 0; ++code, places >>= 1U)
    if ((places & 1U) != 0) return {code, -code};
  return {unclear, unclear};
}

bool says_no_files(const NameEvidence& of_all) { return of_all[0] == no_files; }

bool says_distinct(const NameEvidence& of_all) {
  return says_no_files(of_all) || of_all[0] == -of_all[1];
}

}  // namespace cairn
