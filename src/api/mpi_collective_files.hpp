// Mode collective of rbIO over MPI-IO. Built once per MPI.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "comm/mpi.hpp"
#include "rbio/collective_files.hpp"

namespace cairn {

/// All ranks of a part take part in each write. Errors of MPI-IO are returned, whatever handlers
/// the program has set.
class MpiCollectiveFiles final : public rbio::CollectiveFiles {
 public:
  /// A count of MPI is an int.
  static constexpr std::size_t default_bytes_at_once = std::size_t{1} << 30;

  /// `comm` is that of the series. So many bytes of a piece go into one call of MPI; at most 2^31
  /// - 1.
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
