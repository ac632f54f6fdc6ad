// The series that this process has open through rbio.h.
#pragma once

#include <mpi.h>

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
  /// Collective over that of `comm`, which it takes over. `log` must outlive the series.
  static Result<std::unique_ptr<OpenSeries>> open(std::unique_ptr<MpiCommunicator> comm,
                                                  const Log& log, const OpenArguments& arguments);

  MpiCommunicator& comm() { return *comm_; }
  rbio::Series& series() { return *series_; }

  /// Collective: first thing in each collective call. differs if the ranks are in other calls, or
  /// passed other arguments.
  Status enter(std::string_view call, std::string_view arguments = "");
  /// Collective.
  Status agree(Status mine) { return cairn::agree(*comm_, std::move(mine)); }
  /// Collective; RBIO_NEWEST is the newest step that can be read. not_found if there is none.
  Result<rbio::StepIndex> index_of(std::int64_t step);

  std::string error_text;  ///< of the last call that failed

 private:
  explicit OpenSeries(std::unique_ptr<MpiCommunicator> comm) : comm_(std::move(comm)) {}
  Status open_directory(const Log& log, const OpenArguments& arguments);

  std::unique_ptr<MpiCommunicator> comm_;
  std::unique_ptr<rbio::Series> series_;  ///< ends first
};

/// The process-wide object behind rbio.h. A handle is a number that is never used again, so that
/// one of a closed series is found out.
class OpenSeriesTable {
 public:
  OpenSeriesTable();

  /// Local. Why this process can make no call of rbIO.
  Status check_mpi() const;
  /// Collective over `parent`. `rank` becomes the rank of this process in it, once it is known.
  Result<rbio_series*> open(MPI_Comm parent, const OpenArguments& arguments, int& rank);
  /// Null if it is not open.
  OpenSeries* find(const rbio_series* handle);
  void remove(const rbio_series* handle);

  /// For messages about this process, in MPI_COMM_WORLD or by the launcher's count.
  int world_rank() const;
  const Log& log() const { return log_; }

  std::string error_text;  ///< of the last call without an open series that failed

 private:
  Status check_launch(int& rank);

  const Log log_;
  const Status library_;
  bool has_judged_launch_ = false;
  std::map<std::uintptr_t, std::unique_ptr<OpenSeries>> series_;
  std::uintptr_t last_handle_ = 0;
};

/// Made on first use, and never destroyed: at the end of the process MPI is over, and a file system
/// that hangs must not keep it.
OpenSeriesTable& open_series();

}  // namespace cairn
