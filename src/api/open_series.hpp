// The series that this process has open through rbio.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "comm/mpi.hpp"
#include "rbio.h"
#include "rbio/series.hpp"

namespace cairn {

/// What a program passes to rbio_open.
struct OpenArguments {
  const char* directory = nullptr;
  const char* options = nullptr;
  bool has_place_for_series = false;
};

/// One series, and the communicator that it uses.
class OpenSeries {
 public:
  /// Collective over `comm`, which it takes over. `log` must outlive the series.
  static Result<std::unique_ptr<OpenSeries>> open(std::unique_ptr<MpiCommunicator> comm,
                                                  const Log& log, const OpenArguments& arguments);

  MpiCommunicator& comm() { return *comm_; }
  rbio::Series& series() { return *series_; }

  /// Collective. The first statement of each collective call. Fails with differs if the ranks make
  /// different calls, or pass different arguments. Until all ranks are here, moves the messages of
  /// steps on: another rank may test whether a step is done before it makes this call.
  Status enter(std::string_view call, std::string_view arguments = "");
  /// Collective.
  Status agree(Status mine) { return cairn::agree(*comm_, std::move(mine)); }
  /// Collective. RBIO_NEWEST selects the newest readable step; not_found if there is none.
  Result<rbio::StepIndex> index_of(std::int64_t step);

  std::string error_text;  ///< of the last failed call

 private:
  explicit OpenSeries(std::unique_ptr<MpiCommunicator> comm) : comm_(std::move(comm)) {}
  Status open_directory(const Log& log, const OpenArguments& arguments);

  std::unique_ptr<MpiCommunicator> comm_;
  std::unique_ptr<rbio::Series> series_;  ///< destroyed first
};

/// The process-wide object behind rbio.h. A handle is a number that is never used again, so that
/// the handle of a closed series is detected.
class OpenSeriesTable {
 public:
  OpenSeriesTable();

  /// Local. The error if this process cannot use rbIO.
  Status check_mpi() const;
  /// Collective over `parent`. Sets `rank` to the rank of this process in it, as soon as it is
  /// known.
  Result<rbio_series*> open(MPI_Comm parent, const OpenArguments& arguments, int& rank);
  /// Null if it is not open.
  OpenSeries* find(const rbio_series* handle);
  void remove(const rbio_series* handle);

  /// The rank in MPI_COMM_WORLD, or as the launcher counts, for messages.
  int world_rank() const;
  const Log& log() const { return log_; }

  std::string error_text;  ///< of the last failed call without an open series

 private:
  Status check_launch(int& rank);
  std::shared_ptr<NeighbourWatch> neighbour_in(MPI_Comm parent) const;
  void keep_neighbour(const MpiCommunicator& comm);

  const Log log_;
  const Status library_;
  bool has_judged_launch_ = false;
  std::map<std::uintptr_t, std::unique_ptr<OpenSeries>> series_;
  std::uintptr_t last_handle_ = 0;
  /// Of the series opened last: a rank may end before it opens the next one.
  MPI_Group last_ranks_ = MPI_GROUP_NULL;
  std::shared_ptr<NeighbourWatch> last_neighbour_;
};

/// Made on first use, and never destroyed: at the end of the process MPI has been finalized, and a
/// hanging file system must not prevent the end.
OpenSeriesTable& open_series();

}  // namespace cairn
