// A series of steps that a program writes and restores: what rbio.h gives to programs.
//
// The ranks of a group hand their data to one of them, the writer. It writes large contiguous
// pieces to the file of its part. A step is restored only once all parts are durable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "rbio/field.hpp"
#include "rbio/restore.hpp"
#include "rbio/roles.hpp"
#include "rbio/series_directory.hpp"
#include "rbio/write_part.hpp"
#include "topology/placement.hpp"

namespace cairn::rbio {

enum class Mode : int {
  sync = 2,  ///< the writer writes before begin() returns on it
};

struct SeriesOptions {
  Mode mode = Mode::sync;
  int group_size = 0;    ///< ranks; 0: those of a node
  int files = 0;         ///< per step; 0: one per group
  std::size_t keep = 0;  ///< newest steps that are kept; 0: all
};

class Series {
 public:
  /// Takes the directory for writing; busy while another run has it. Fails alike on all ranks.
  static Result<std::unique_ptr<Series>> open(Communicator& comm, Files& files, const Log& log,
                                              const Placement& placement, std::string directory,
                                              const SeriesOptions& options);

  /// Local. All ranks add the same fields in the same order; returns the index. The data must stay
  /// until the field is set anew.
  Result<std::size_t> add_field(const FieldShape& shape, std::byte* data, std::uint64_t count);
  /// Local.
  Status set_field(std::size_t field, std::byte* data, std::uint64_t count);

  /// On return the data of the fields may be changed. Fails alike on all ranks; the step then is
  /// not begun.
  Status begin(Communicator& comm, std::uint64_t step);
  /// Waits until the step begun last is published, or returns why it is not.
  Status wait(Communicator& comm);

  /// Fills the fields from `step`, or from the newest one that is whole; returns which it was.
  /// not_found if there is none.
  Result<std::uint64_t> restore(Communicator& comm, std::optional<std::uint64_t> step);
  Result<StepIndex> index_of(Communicator& comm, std::uint64_t step);
  /// In the order in which they were written.
  Result<std::vector<std::uint64_t>> steps(Communicator& comm);

 private:
  Series(Files& files, const Log& log, std::string directory, const SeriesOptions& options);
  Status check_begin(Communicator& comm, std::uint64_t step);
  Status hand_over(Communicator& comm, std::uint64_t step);
  Status write();
  Status restore_one(Communicator& comm, std::uint64_t step);

  Files& files_;
  const Log& log_;
  const SeriesOptions options_;
  SeriesDirectory directory_;
  Roles roles_;
  std::vector<Field> fields_;
  Attempt last_;                        ///< the step begun last
  std::optional<std::uint64_t> begun_;  ///< its number

  // On a writer:
  PartTask task_;
  Blob buffer_;
  Status written_;  ///< the step begun last
};

}  // namespace cairn::rbio
