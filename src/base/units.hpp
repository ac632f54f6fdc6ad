// Sizes, durations and lists as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace cairn {

/// "64MB", "1 GiB", "4096" -> bytes. Units are powers of 1024, with or without "i" and "B", in
/// upper or lower case, as in SCR. Fails with bad_argument on any other text, and on negative or
/// too large sizes.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// 67108864 -> "64 MiB"; three significant digits.
std::string format_bytes(std::uint64_t bytes);

/// 0.0123 -> "12.3 ms".
std::string format_seconds(double seconds);

/// The most names in a message, for lists that grow with the number of ranks.
inline constexpr std::size_t most_named = 16;

/// {"a", "b"} of 5 -> "a, b and 3 more". Contains at most most_named names.
std::string format_first(const std::vector<std::string>& names, std::size_t of_all);

/// {0, 1, 2, 5} -> "ranks 0-2, 5"; {3} -> "rank 3". `ranks` are in ascending order. A long list has
/// the first pieces, and the number of all ranks.
std::string format_ranks(const std::vector<int>& ranks);

}  // namespace cairn
