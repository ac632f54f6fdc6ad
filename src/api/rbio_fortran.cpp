// The calls of the module rbio. The symbols are those of Fortran compilers on Linux, and lengths of
// texts come after the other arguments.
#include <cstddef>
#include <cstdint>

#include "api/fortran_text.hpp"
#include "rbio.h"

namespace {

using cairn::trimmed;

/// The Fortran type rbio_series.
struct FortranSeries {
  std::int64_t handle;
};

rbio_series* series_of(const FortranSeries* series) {
  return reinterpret_cast<rbio_series*>(static_cast<std::intptr_t>(series->handle));
}

FortranSeries fortran_series(rbio_series* series) {
  return {reinterpret_cast<std::intptr_t>(series)};
}

}  // namespace

#define CAIRN_FORTRAN extern "C" CAIRN_EXPORT void

CAIRN_FORTRAN rbio_open_(const MPI_Fint* comm, const char* directory, const char* options,
                         FortranSeries* series, int* error, std::size_t directory_length,
                         std::size_t options_length) {
  rbio_series* opened = nullptr;
  *error = rbio_open(MPI_Comm_f2c(*comm), trimmed(directory, directory_length).c_str(),
                     trimmed(options, options_length).c_str(), &opened);
  *series = fortran_series(opened);
}

CAIRN_FORTRAN rbio_close_(FortranSeries* series, int* error) {
  rbio_series* open = series_of(series);
  *error = rbio_close(&open);
  *series = fortran_series(open);
}

CAIRN_FORTRAN rbio_add_field_(const FortranSeries* series, const char* name, const int* type,
                              const int* components, void* const* data, const std::int64_t* count,
                              int* field, int* error, std::size_t name_length) {
  *error = rbio_add_field(series_of(series), trimmed(name, name_length).c_str(), *type, *components,
                          *data, *count, field);
}

CAIRN_FORTRAN rbio_set_field_(const FortranSeries* series, const int* field, void* const* data,
                              const std::int64_t* count, int* error) {
  *error = rbio_set_field(series_of(series), *field, *data, *count);
}

CAIRN_FORTRAN rbio_begin_(const FortranSeries* series, const std::int64_t* step,
                          std::int64_t* ticket, int* error) {
  *error = rbio_begin(series_of(series), *step, ticket);
}

CAIRN_FORTRAN rbio_test_(const FortranSeries* series, const std::int64_t* ticket, int* finished,
                         int* error) {
  *error = rbio_test(series_of(series), *ticket, finished);
}

CAIRN_FORTRAN rbio_wait_(const FortranSeries* series, const std::int64_t* ticket, int* error) {
  *error = rbio_wait(series_of(series), *ticket);
}

CAIRN_FORTRAN rbio_progress_(const FortranSeries* series, int* error) {
  *error = rbio_progress(series_of(series));
}

CAIRN_FORTRAN rbio_restore_(const FortranSeries* series, const std::int64_t* step,
                            std::int64_t* restored, int* error) {
  *error = rbio_restore(series_of(series), *step, restored);
}

CAIRN_FORTRAN rbio_steps_(const FortranSeries* series, std::int64_t* steps, const int* capacity,
                          int* count, int* error) {
  *error = rbio_steps(series_of(series), steps, *capacity, count);
}

CAIRN_FORTRAN rbio_stored_count_(const FortranSeries* series, const std::int64_t* step,
                                 const char* field, const int* rank, std::int64_t* count,
                                 int* error, std::size_t field_length) {
  *error = rbio_stored_count(series_of(series), *step, trimmed(field, field_length).c_str(), *rank,
                             count);
}

CAIRN_FORTRAN rbio_stored_ranks_(const FortranSeries* series, const std::int64_t* step, int* ranks,
                                 int* error) {
  *error = rbio_stored_ranks(series_of(series), *step, ranks);
}

CAIRN_FORTRAN rbio_statistics_(const FortranSeries* series, rbio_statistics_t* statistics,
                               int* error) {
  *error = rbio_statistics(series_of(series), statistics);
}

CAIRN_FORTRAN rbio_error_text_(const FortranSeries* series, char* text, int* error,
                               std::size_t length) {
  *error = cairn::fill(text, length, rbio_error_text(series_of(series)));
}
