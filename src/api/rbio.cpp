// rbio.h: each call translates its arguments, calls the Series, and translates the result.

#include "rbio.h"

#include <cstdio>
#include <exception>
#include <limits>
#include <optional>

#include "api/open_series.hpp"

namespace {

using cairn::Code;
using cairn::fail;
using cairn::open_series;
using cairn::OpenSeries;
using cairn::Result;
using cairn::Status;
using cairn::rbio::ElementType;
using cairn::rbio::Ticket;

static_assert(RBIO_INT8 == static_cast<int>(ElementType::int8));
static_assert(RBIO_COMPLEX128 == static_cast<int>(ElementType::complex128));

enum class Kind { collective, local };

/// The call and its rank, for messages.
struct Call {
  const char* name;
  Kind kind;
  const rbio_series* handle = nullptr;
  int rank = 0;
};

/// What a user can do about an error of the file system.
std::string_view remedy_for(const cairn::Error& error) {
  if (error.text.find("cannot ") == std::string::npos) return "";
  if (error.code == Code::no_space)
    return "; free space there, ask for a larger quota, or keep fewer steps (option keep)";
  if (error.code == Code::io)
    return "; check that you may write there, and that the file system works on all nodes";
  return "";
}

std::string line_of(const cairn::Error& error, const Call& call) {
  // These texts contain the calls that the ranks made, which may be other ones.
  const bool names_call = error.code == Code::differs || error.text.starts_with(call.name);
  return fmt::format(
      "{}{}{}{}", call.kind == Kind::local ? fmt::format("rank {}: ", call.rank) : "",
      names_call ? "" : fmt::format("{}: ", call.name), error.text, remedy_for(error));
}

int report(const cairn::Error& error, const Call& call) {
  const std::string line = line_of(error, call);
  OpenSeries* series = open_series().find(call.handle);
  (series == nullptr ? open_series().error_text : series->error_text) = line;
  if (!error.is_reported && (call.kind == Kind::local || call.rank == 0))
    open_series().log().error("{}", line);
  return static_cast<int>(error.code);
}

/// The ranks have not agreed on it, so each prints its own. Takes no memory if there is none left.
int report_exception(const std::exception& error, const Call& call) noexcept {
  try {
    const cairn::Error found{Code::io, error.what(), -1};
    report(found, {call.name, Kind::local, call.handle, call.rank});
  } catch (const std::exception&) {
    static_cast<void>(
        std::fprintf(stderr, "cairn: error: rank %d: %s: out of memory\n", call.rank, call.name));
  }
  return CAIRN_E_IO;
}

/// Runs a call, and converts exceptions of the standard library, such as out of memory, to error
/// codes.
template <class Action>
int guarded(Call& call, Action action) noexcept {
  try {
    const Status status = action();
    return status ? RBIO_SUCCESS : report(status.error(), call);
  } catch (const std::exception& error) {
    return report_exception(error, call);
  }
}

Result<OpenSeries*> find(Call& call) {
  call.rank = open_series().world_rank();
  CAIRN_TRY(open_series().check_mpi());
  OpenSeries* series = open_series().find(call.handle);
  if (series == nullptr) {
    call.kind = Kind::local;  // the other ranks may have an open series
    return fail(Code::wrong_state, "{}: {}; rbio_open gives one", call.name,
                call.handle == nullptr ? "the series is NULL" : "this series is not open any more");
  }
  call.rank = series->comm().rank();
  return series;
}

/// Makes a call on an open series. A collective one begins with enter(), which checks that all
/// ranks make the same call.
template <class Action>
int with_series(const char* name, Kind kind, const rbio_series* handle, Action action) noexcept {
  Call call{name, kind, handle};
  return guarded(call, [&]() -> Status {
    CAIRN_ASSIGN(OpenSeries * series, find(call));
    return action(*series);
  });
}

Status fail_on_null(const void* argument, const char* name) {
  if (argument != nullptr) return {};
  return fail(Code::bad_argument, "{} is NULL", name);
}

Status check_step(std::int64_t step, bool may_be_newest) {
  if (step >= 0 || (may_be_newest && step == RBIO_NEWEST)) return {};
  return fail(Code::bad_argument, "the step {} is negative; steps are numbers from 0{}", step,
              may_be_newest ? ", or RBIO_NEWEST" : "");
}

Result<cairn::rbio::FieldShape> shape_of(const char* name, int type, int components) {
  CAIRN_TRY(fail_on_null(name, "the name of the field"));
  const auto known =
      type > 0 ? cairn::rbio::element_type(static_cast<std::uint32_t>(type)) : std::nullopt;
  if (!known)
    return fail(Code::bad_argument, "field {}: the type {} is none of RBIO_INT8 to RBIO_COMPLEX128",
                name, type);
  if (components < 1)
    return fail(Code::bad_argument, "field {}: {} components; give 1 or more", name, components);
  return cairn::rbio::FieldShape{name, *known, static_cast<std::uint32_t>(components)};
}

Result<std::uint64_t> checked_count(int64_t count) {
  if (count >= 0) return static_cast<std::uint64_t>(count);
  return fail(Code::bad_argument, "the count {} is negative", count);
}

/// The elements of `field` that `rank` wrote. Local.
Result<std::int64_t> count_in(const cairn::rbio::StepIndex& index, const char* field, int rank) {
  const auto found = index.find(field);
  if (!found) return fail(Code::bad_argument, "step {} has no field {}", index.step(), field);
  const std::vector<std::uint64_t> counts = index.counts(*found);
  std::uint64_t sum = 0;
  if (rank == RBIO_ALL_RANKS) {
    for (const std::uint64_t count : counts) sum += count;
  } else if (rank >= 0 && static_cast<std::size_t>(rank) < counts.size()) {
    sum = counts[static_cast<std::size_t>(rank)];
  } else {
    return fail(Code::bad_argument, "{} ranks wrote step {}, so there is no rank {}", counts.size(),
                index.step(), rank);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace

int rbio_open(MPI_Comm comm, const char* directory, const char* options, rbio_series** series) {
  if (series != nullptr) *series = nullptr;
  Call call{"rbio_open", Kind::collective};
  return guarded(call, [&]() -> Status {
    CAIRN_ASSIGN(rbio_series * opened,
                 open_series().open(comm, {directory, options, series != nullptr}, call.rank));
    *series = opened;
    return {};
  });
}

int rbio_close(rbio_series** series) {
  constexpr const char* name = "rbio_close";
  rbio_series* const handle = series == nullptr ? nullptr : *series;
  return with_series(name, Kind::collective, handle, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(open.enter(name));
    Status closed = open.series().close(open.comm());
    open_series().remove(handle);
    *series = nullptr;
    return closed;
  });
}

int rbio_add_field(rbio_series* series, const char* name, int type, int components, void* data,
                   int64_t count, int* field) {
  return with_series("rbio_add_field", Kind::local, series, [&](OpenSeries& open) -> Status {
    CAIRN_ASSIGN(const auto shape, shape_of(name, type, components));
    CAIRN_ASSIGN(const std::uint64_t elements, checked_count(count));
    CAIRN_ASSIGN(const std::size_t added,
                 open.series().add_field(shape, static_cast<std::byte*>(data), elements));
    if (field != nullptr) *field = static_cast<int>(added);
    return {};
  });
}

int rbio_set_field(rbio_series* series, int field, void* data, int64_t count) {
  return with_series("rbio_set_field", Kind::local, series, [&](OpenSeries& open) -> Status {
    CAIRN_ASSIGN(const std::uint64_t elements, checked_count(count));
    if (field < 0) return fail(Code::bad_argument, "the field number {} is negative", field);
    return open.series().set_field(static_cast<std::size_t>(field), static_cast<std::byte*>(data),
                                   elements);
  });
}

int rbio_begin(rbio_series* series, int64_t step, rbio_ticket* ticket) {
  constexpr const char* name = "rbio_begin";
  if (ticket != nullptr) *ticket = RBIO_NO_TICKET;
  return with_series(name, Kind::collective, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(open.enter(name, fmt::format("step {}", step)));
    CAIRN_TRY(check_step(step, false));
    CAIRN_ASSIGN(const Ticket begun,
                 open.series().begin(open.comm(), static_cast<std::uint64_t>(step)));
    if (ticket != nullptr) *ticket = begun;
    return {};
  });
}

int rbio_test(rbio_series* series, rbio_ticket ticket, int* finished) {
  if (finished != nullptr) *finished = 0;
  return with_series("rbio_test", Kind::local, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(fail_on_null(finished, "finished"));
    if (ticket == RBIO_NO_TICKET) {
      *finished = 1;
      return open.series().progress();
    }
    CAIRN_ASSIGN(const bool is_finished, open.series().is_finished(ticket));
    *finished = is_finished ? 1 : 0;
    return is_finished ? open.series().failure_of(ticket) : Status{};
  });
}

int rbio_wait(rbio_series* series, rbio_ticket ticket) {
  constexpr const char* name = "rbio_wait";
  return with_series(name, Kind::collective, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(open.enter(name, fmt::format("ticket {}", ticket)));
    if (ticket == RBIO_NO_TICKET) return {};
    return open.series().wait(open.comm(), ticket);
  });
}

int rbio_progress(rbio_series* series) {
  return with_series("rbio_progress", Kind::local, series,
                     [](OpenSeries& open) { return open.series().progress(); });
}

int rbio_restore(rbio_series* series, int64_t step, int64_t* restored) {
  constexpr const char* name = "rbio_restore";
  return with_series(name, Kind::collective, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(open.enter(name, fmt::format("step {}", step)));
    CAIRN_TRY(check_step(step, true));
    const auto wanted = step == RBIO_NEWEST
                            ? std::nullopt
                            : std::optional<std::uint64_t>(static_cast<std::uint64_t>(step));
    auto found = open.series().restore(open.comm(), wanted);
    if (!found) {
      // No error worth a message: the first run of every program finds no step.
      found.error().is_reported = step == RBIO_NEWEST && found.error().code == Code::not_found;
      return tl::unexpected(std::move(found).error());
    }
    if (restored != nullptr) *restored = static_cast<std::int64_t>(*found);
    return {};
  });
}

int rbio_steps(rbio_series* series, int64_t* steps, int capacity, int* count) {
  constexpr const char* name = "rbio_steps";
  return with_series(name, Kind::collective, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(open.enter(name));
    Status mine = fail_on_null(count, "count");
    if (mine && capacity < 0)
      mine = fail(Code::bad_argument, "the capacity {} is negative", capacity);
    if (mine && capacity > 0) mine = fail_on_null(steps, "steps");
    CAIRN_TRY(open.agree(std::move(mine)));
    CAIRN_ASSIGN(const auto found, open.series().steps(open.comm()));
    *count = static_cast<int>(found.size());
    const auto stored = std::min(found.size(), static_cast<std::size_t>(capacity));
    std::copy_n(found.rbegin(), stored, steps);
    return {};
  });
}

int rbio_stored_count(rbio_series* series, int64_t step, const char* field, int rank,
                      int64_t* count) {
  constexpr const char* name = "rbio_stored_count";
  return with_series(name, Kind::collective, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(open.enter(
        name, fmt::format("step {} and field {}", step, field == nullptr ? "NULL" : field)));
    CAIRN_TRY(check_step(step, true));
    CAIRN_TRY(fail_on_null(field, "field"));
    CAIRN_TRY(open.agree(fail_on_null(count, "count")));
    CAIRN_ASSIGN(const auto index, open.index_of(step));
    const auto found = count_in(index, field, rank);
    CAIRN_TRY(open.agree(found ? Status{} : Status(tl::unexpected(found.error()))));
    *count = *found;
    return {};
  });
}

int rbio_stored_ranks(rbio_series* series, int64_t step, int* ranks) {
  constexpr const char* name = "rbio_stored_ranks";
  return with_series(name, Kind::collective, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(open.enter(name, fmt::format("step {}", step)));
    CAIRN_TRY(check_step(step, true));
    CAIRN_TRY(open.agree(fail_on_null(ranks, "ranks")));
    CAIRN_ASSIGN(const auto index, open.index_of(step));
    *ranks = static_cast<int>(index.ranks());
    return {};
  });
}

int rbio_statistics(rbio_series* series, rbio_statistics_t* statistics) {
  return with_series("rbio_statistics", Kind::local, series, [&](OpenSeries& open) -> Status {
    CAIRN_TRY(fail_on_null(statistics, "statistics"));
    const cairn::rbio::Statistics now = open.series().statistics();
    *statistics = {};
    statistics->steps_begun = static_cast<std::int64_t>(now.steps);
    statistics->steps_published = static_cast<std::int64_t>(now.published);
    statistics->steps_failed = static_cast<std::int64_t>(now.failed);
    statistics->bytes = static_cast<std::int64_t>(now.bytes);
    statistics->begin_s = now.begin_s;
    statistics->buffer_wait_s = now.wait_s;
    statistics->written_bytes = static_cast<std::int64_t>(now.written_bytes);
    statistics->write_s = now.write_s;
    statistics->peak_buffer_bytes = static_cast<std::int64_t>(now.peak_buffer_bytes);
    return {};
  });
}

const char* rbio_error_text(rbio_series* series) {
  const OpenSeries* open = open_series().find(series);
  return open == nullptr ? open_series().error_text.c_str() : open->error_text.c_str();
}
