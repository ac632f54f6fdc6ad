// Sizes, durations and lists as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace cairn {

/// "64MB", "1 GiB", "4096" -> bytes. Units are powers of 1024 with or without the "i" and the "B",
/// in any case, as SCR reads them. Fails with bad_argument on anything else, negative or too large.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// 67108864 -> "64 MiB"; three significant digits.
std::string format_bytes(std::uint64_t bytes);

/// 0.0123 -> "12.3 ms".
std::string format_seconds(double seconds);

/// Of as many as a job has ranks, people are told so many names.
inline constexpr std::size_t most_named = 16;

/// {"a", "b"} of 5 -> "a, b and 3 more". No more than most_named are named.
std::string format_first(const std::vector<std::string>& names, std::size_t of_all);

/// {0, 1, 2, 5} -> "ranks 0-2, 5"; {3} -> "rank 3". `ranks` are in ascending order. Of many pieces
/// the first are named, and the number of all ranks.
std::string format_ranks(const std::vector<int>& ranks);

}  // namespace cairn
