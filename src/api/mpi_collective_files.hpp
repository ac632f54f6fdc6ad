// Mode collective of rbIO over MPI-IO. Built once per MPI.
#pragma once

#include <cstddef>

#include "comm/mpi.hpp"
#include "rbio/collective_files.hpp"

namespace cairn {

/// All ranks of a part take part in each write. Returns errors of MPI-IO, whatever error handlers
/// the program has set.
class MpiCollectiveFiles final : public rbio::CollectiveFiles {
 public:
  /// Counts of MPI are of the type int.
  static constexpr std::size_t default_bytes_at_once = std::size_t{1} << 30;

  /// `comm`: the communicator of the series. `bytes_at_once`: the most bytes of a piece in one call
  /// of MPI, up to 2^31 - 1.
  MpiCollectiveFiles(const MpiCommunicator& comm, std::shared_ptr<Files> files,
                     std::size_t bytes_at_once = default_bytes_at_once)
      : comm_(comm.handle()), files_(std::move(files)), bytes_at_once_(bytes_at_once) {}
  /// Over the ranks of a part; does nothing after MPI_Finalize.
  ~MpiCollectiveFiles() override;
  MpiCollectiveFiles(const MpiCollectiveFiles&) = delete;
  MpiCollectiveFiles& operator=(const MpiCollectiveFiles&) = delete;

  void join(Communicator& comm, int part) override;
  Status write(Communicator& part, const std::string& path,
               const std::vector<rbio::FilePiece>& pieces) override;

 private:
  const MPI_Comm comm_;
  const std::shared_ptr<Files> files_;
  const std::size_t bytes_at_once_;
  MPI_Comm part_ = MPI_COMM_NULL;
};

}  // namespace cairn
