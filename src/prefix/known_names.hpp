// The files of a dataset in the prefix directory that a rank may request although it did not write
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// Each rank reads its share of the records, and then all ranks get eight bytes for each name. So
/// one rank reads each record, and has() needs no file.
class KnownNames {
 public:
  /// Has no names.
  KnownNames() = default;
  /// Collective. The names of the files in all ranks' `records`.
  KnownNames(Communicator& comm, const std::vector<RankRecord>& records);

  /// Local, thread-safe. Compares a hash of 64 bits; opening the file shows whether it exists.
  bool has(const std::string& name) const;

 private:
  std::vector<std::uint64_t> hashes_;  ///< ascending
};

}  // namespace cairn
