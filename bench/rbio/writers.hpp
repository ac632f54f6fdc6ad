// The ways to write a checkpoint that are compared: rbIO, and what a program does without it.
#pragma once

#include <mpi.h>
#include <rbio.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cairn::bench {

/// What one rank has of a field.
struct FieldData {
  double* data = nullptr;
  std::int64_t count = 0;

  std::int64_t bytes() const { return count * static_cast<std::int64_t>(sizeof(double)); }
};

/// All calls are collective but for is_writing() and statistics(). An error ends the program.
class Writer {
 public:
  virtual ~Writer() = default;

  /// When it returns, the program may change its data.
  virtual void begin(std::int64_t step) = 0;
  /// Whether what was begun is still being written, as far as this rank knows.
  virtual bool is_writing() { return false; }
  /// Returns when all that was begun is stored.
  virtual void wait() {}
  /// Returns when no older checkpoint is being removed: by this call, or by the thread of rbIO,
  /// which does it while the program computes. Its time is not charged.
  virtual void remove_older() {}
  virtual rbio_statistics_t statistics() const { return {}; }
};

struct WriterOptions {
  std::string kind;       ///< "none", "coio", or options of rbio_open()
  std::string directory;  ///< for the files
  int files = 1;          ///< of coio
  bool syncs = false;     ///< coio, before it returns; rbIO always does
};

std::unique_ptr<Writer> make_writer(MPI_Comm comm, const WriterOptions& options,
                                    const std::vector<FieldData>& fields);

}  // namespace cairn::bench
