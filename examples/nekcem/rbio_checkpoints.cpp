#include "rbio_checkpoints.hpp"

#include <stdexcept>

namespace nekcem {
namespace {

void check(int code, rbio_series* series) {
  if (code != RBIO_SUCCESS) throw std::runtime_error(rbio_error_text(series));
}

}  // namespace

RbioCheckpoints::RbioCheckpoints(MPI_Comm comm, const std::string& directory,
                                 const std::string& options, Maxwell& solver) {
  check(rbio_open(comm, directory.c_str(), options.c_str(), &series_), nullptr);
  for (int c = 0; c < components; ++c)
    check(rbio_add_field(series_, component_names[c], RBIO_FLOAT64, 1, solver.field(c).data(),
                         solver.nodes(), nullptr),
          series_);
}

RbioCheckpoints::~RbioCheckpoints() {
  if (series_ != nullptr) rbio_close(&series_);
}

// An error may be that of an earlier step, and then nothing has begun; rank 0 has printed it.
void RbioCheckpoints::begin(std::int64_t step) {
  const int code = rbio_begin(series_, step, nullptr);
  if (code == RBIO_SUCCESS) return;
  const std::string error = rbio_error_text(series_);
  check(rbio_begin(series_, step, nullptr), series_);
  throw std::runtime_error("an earlier one: " + error);
}

std::optional<std::int64_t> RbioCheckpoints::restore_newest() {
  std::int64_t step = 0;
  const int code = rbio_restore(series_, RBIO_NEWEST, &step);
  if (code == CAIRN_E_NOT_FOUND) return std::nullopt;
  check(code, series_);
  return step;
}

void RbioCheckpoints::close() { check(rbio_close(&series_), nullptr); }

}  // namespace nekcem
