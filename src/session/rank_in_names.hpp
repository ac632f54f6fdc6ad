// A proof, for the price of two numbers, that no two ranks have a file of one name.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace cairn {

/// What one rank says of the names of its files, or, once the largest of each number over all ranks
/// is taken, what all of them say together.
///
/// Programs put the rank into the names of files: ckpt.7/rank.0012. If a number that stands at one
/// place in all names of a rank is that rank, or one more, and the place is the same for all ranks,
/// two ranks with one name would be one rank.
using NameEvidence = std::array<std::int64_t, 2>;

/// Local. `files`: by name.
NameEvidence evidence_of(const std::map<std::string, std::string>& files, int rank);

/// No rank has any file.
bool says_no_files(const NameEvidence& of_all);
/// No name is on two ranks. False where that is not known.
bool says_distinct(const NameEvidence& of_all);

}  // namespace cairn
