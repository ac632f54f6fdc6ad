// What a series reads: its steps, and the fields of one of them.
#include <array>
#include <span>

#include "rbio/series.hpp"

namespace cairn::rbio {
namespace {

struct FoundSteps {
  std::vector<std::uint64_t> readable;
  std::uint64_t damaged = 0;  ///< how many
};

/// Nobody knows whether it is the newest one, so none that is older may take its place.
Error cannot_be_read_now(const PublishedStep& one) {
  Error error = one.readable.error();
  error.text += fmt::format(
      "; step {} may be the newest one, so rbIO takes no other: try again later, or restore a step "
      "by its number",
      one.step);
  return error;
}

/// Those that are damaged are left out, with a warning.
Result<FoundSteps> look_for_steps(SeriesDirectory& directory, const Log& log) {
  const auto all = directory.steps();
  // It was there when the series was opened, so this is no first run.
  if (!all && all.error().code == Code::not_found)
    return fail(Code::io, "{}; the series was removed while it was open", all.error().text);
  if (!all) return tl::unexpected(all.error());
  FoundSteps found;
  for (const PublishedStep& one : *all) {
    if (one.readable) {
      found.readable.push_back(one.step);
      continue;
    }
    if (one.readable.error().code != Code::corrupt) return tl::unexpected(cannot_be_read_now(one));
    ++found.damaged;
    log.warning("{}: step {} cannot be restored", one.readable.error().text, one.step);
  }
  return found;
}

/// Bytes that no field has. Nothing is wrong with the step but that its file has changed.
void warn_of_damaged_gaps(Files& files, const StepIndex& index, const std::string& step_path,
                          const Log& log) {
  for (const PartIndex& part : index.parts()) {
    const std::string path = fmt::format("{}/{}", step_path, part_name(part.header.part));
    const auto file = files.open(path);
    const Status checked =
        file ? check_gaps(**file, path, part.header) : Status(tl::unexpected(file.error()));
    if (!checked)
      log.warning("{}; no field is affected, and the step is restored", checked.error().text);
  }
}

}  // namespace

/// A program that takes this for a first run would replace them.
Error Series::all_are_damaged() const {
  return {Code::corrupt,
          fmt::format("{} has steps, and none of them can be restored; a run that begins anew "
                      "needs another directory",
                      directory_.path()),
          -1};
}

/// A step that was there when the steps were listed. A program that took it for a first run would
/// replace it.
Error Series::removed_meanwhile(std::uint64_t step) const {
  return {Code::io,
          fmt::format("{}: step {} was removed while it was about to be read; try again",
                      directory_.path(), step),
          -1};
}

/// Rank 0 looks; the others learn what it found.
Result<std::vector<std::uint64_t>> Series::steps(Communicator& comm) {
  CAIRN_TRY(check_open());
  settle_until(comm, ticket());
  Result<FoundSteps> all;
  if (comm.rank() == 0) all = look_for_steps(directory_, services_.log);
  CAIRN_TRY(agree(comm, all ? Status{} : Status(tl::unexpected(all.error()))));
  std::array<std::uint64_t, 2> counts = {all->readable.size(), all->damaged};
  comm.bcast(std::as_writable_bytes(std::span(counts)), 0);
  all->readable.resize(counts[0]);
  comm.bcast(std::as_writable_bytes(std::span(all->readable)), 0);
  if (counts[0] == 0 && counts[1] > 0) return tl::unexpected(all_are_damaged());
  return std::move(all->readable);
}

Status Series::check_existence(std::uint64_t step) {
  const auto found = services_.files->info(directory_.step_path(step));
  if (found) return {};
  if (found.error().code != Code::not_found) return tl::unexpected(found.error());
  return fail(Code::not_found, "{} has no step {}; \"cairn rbio list\" shows its steps",
              directory_.path(), step);
}

Result<StepIndex> Series::index_of(Communicator& comm, std::uint64_t step) {
  CAIRN_TRY(check_open());
  settle_until(comm, ticket());
  CAIRN_TRY(agree(comm, comm.rank() == 0 ? check_existence(step) : Status{}));
  auto index = StepIndex::load(comm, *services_.files, directory_.step_path(step));
  if (!index) return tl::unexpected(error_of_reading(comm, step, std::move(index).error()));
  return index;
}

/// While a step is read, the option keep of the series, or a user, may remove it: then it is not
/// damaged.
Error Series::error_of_reading(Communicator& comm, std::uint64_t step, Error error) {
  const Status there = agree(comm, comm.rank() == 0 ? check_existence(step) : Status{});
  return !there && there.error().code == Code::not_found ? there.error() : error;
}

Result<StepIndex> Series::index_of_newest(Communicator& comm) {
  CAIRN_ASSIGN(std::vector<std::uint64_t> there, steps(comm));
  Result<StepIndex> newest = fail(Code::not_found, "{} has no step yet", directory_.path());
  for (; !there.empty(); there.pop_back()) {
    newest = index_of(comm, there.back());
    if (!newest && newest.error().code == Code::not_found)
      return tl::unexpected(removed_meanwhile(there.back()));
    if (newest || newest.error().code != Code::corrupt) break;
  }
  return newest;
}

Status Series::restore_one(Communicator& comm, std::uint64_t step) {
  const std::string path = directory_.step_path(step);
  CAIRN_ASSIGN(const StepIndex index, index_of(comm, step));
  Status restored = restore_step(comm, *services_.files, path, index, fields_);
  if (!restored && restored.error().code != Code::bad_argument)
    return tl::unexpected(error_of_reading(comm, step, std::move(restored).error()));
  CAIRN_TRY(std::move(restored));
  if (comm.rank() == 0) warn_of_damaged_gaps(*services_.files, index, path, services_.log);
  return {};
}

Result<std::uint64_t> Series::restore(Communicator& comm, std::optional<std::uint64_t> step) {
  CAIRN_TRY(check_open());
  CAIRN_TRY(check_same_fields(comm, "rbio_restore"));
  if (step) {
    CAIRN_TRY(restore_one(comm, *step));
    return *step;
  }
  CAIRN_ASSIGN(std::vector<std::uint64_t> there, steps(comm));
  if (there.empty()) return fail(Code::not_found, "{} has no step yet", directory_.path());
  for (; !there.empty(); there.pop_back()) {
    const Status restored = restore_one(comm, there.back());
    if (restored) return there.back();
    if (restored.error().code == Code::not_found)
      return tl::unexpected(removed_meanwhile(there.back()));
    if (restored.error().code != Code::corrupt) return tl::unexpected(restored.error());
    if (comm.rank() == 0)
      services_.log.warning("{}: step {} is not restored, the next older one is tried",
                            restored.error().text, there.back());
  }
  return tl::unexpected(all_are_damaged());
}

}  // namespace cairn::rbio
