// Which files of a dataset in the prefix directory ranks may ask for that did not write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// The records of all ranks, once dealt out to be read, tell every rank so much: eight bytes for
/// each name. So a record is read by one rank, and has() needs no file.
class KnownNames {
 public:
  /// None.
  KnownNames() = default;
  /// Collective. The names of the files in all ranks' `records`.
  KnownNames(Communicator& comm, const std::vector<RankRecord>& records);

  /// Local, thread-safe. By a hash of 64 bits; who opens the file finds out whether it is there.
  bool has(const std::string& name) const;

 private:
  std::vector<std::uint64_t> hashes_;  ///< ascending
};

}  // namespace cairn
