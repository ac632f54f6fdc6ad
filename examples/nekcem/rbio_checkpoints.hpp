// Checkpoints in an rbIO series: one field per component.
#pragma once

#include <mpi.h>
#include <rbio.h>

#include <string>

#include "checkpoints.hpp"
#include "maxwell.hpp"

namespace nekcem {

class RbioCheckpoints : public Checkpoints {
 public:
  // Collective. The fields of the solver are saved and restored.
  RbioCheckpoints(MPI_Comm comm, const std::string& directory, const std::string& options,
                  Maxwell& solver);
  ~RbioCheckpoints() override;
  RbioCheckpoints(const RbioCheckpoints&) = delete;
  RbioCheckpoints& operator=(const RbioCheckpoints&) = delete;

  void begin(std::int64_t step) override;
  std::optional<std::int64_t> restore_newest() override;
  void close() override;

 private:
  rbio_series* series_ = nullptr;
};

}  // namespace nekcem
