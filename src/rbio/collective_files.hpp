// How many ranks write one file together: the seam over MPI-IO, of which this room knows nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "files/files.hpp"

namespace cairn::rbio {

/// Bytes of a file, and where they begin in it.
struct FilePiece {
  std::uint64_t offset = 0;
  Bytes data;
};

/// Of one series. The communicators passed are equal in all calls.
class CollectiveFiles {
 public:
  virtual ~CollectiveFiles() = default;

  /// Over all ranks of the series, once, before write(): those with the same `part` write together.
  virtual void join(Communicator& comm, int part) = 0;

  /// Over the ranks of one part, which pass the same `path`, of a file that exists, and equally
  /// many pieces. Each has pieces of its own, some of them empty; no two overlap. If all ranks
  /// return success, the bytes of all of them are durable. The errors may differ between ranks.
  virtual Status write(Communicator& part, const std::string& path,
                       const std::vector<FilePiece>& pieces) = 0;
};

/// Each rank writes and syncs what it has through `files`, without MPI.
std::unique_ptr<CollectiveFiles> make_collective_files(std::shared_ptr<Files> files);

}  // namespace cairn::rbio
