#include "tools/rbio/rbio_extract.hpp"

#include <unistd.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <span>

#include "base/units.hpp"
#include "rbio/field_stream.hpp"
#include "tools/rbio/rbio_facts.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t open_mode = 0666;

/// The step that was named, or else the newest whole one.
Result<StepFacts> choose_step(const SeriesFacts& series, std::optional<std::uint64_t> wanted,
                              const Log& log) {
  const StepFacts* chosen = nullptr;
  for (const StepFacts& one : series.steps)
    if (wanted ? one.step == *wanted : one.state == StepState::whole) chosen = &one;
  if (wanted && chosen == nullptr)
    return fail(Code::not_found, "{} has no step {}; it has {}", series.directory, *wanted,
                text_of_steps(series.steps));
  if (chosen == nullptr)
    return fail(Code::not_found,
                "{} has no whole step; \"cairn rbio list\" says what is wrong with each",
                series.directory);
  for (const StepFacts& one : series.steps)
    if (!wanted && one.state != StepState::whole)
      log.warning("step {} is passed over: {}", one.step, one.reason);
  return *chosen;
}

std::string names_of_fields(const rbio::StepIndex& index) {
  std::vector<std::string> names;
  for (const auto& field : index.parts()[0].header.fields) names.push_back(field.shape.name);
  return names.empty() ? "no field" : format_first(names, names.size());
}

/// Fails before reading if the file may not be written.
Status check_output(Files& files, const RbioCommand& command) {
  const auto info = files.info(command.output);
  if (!info && info.error().code == Code::not_found) return {};
  if (!info) return tl::unexpected(info.error());
  if (info->kind != Kind::file)
    return fail(Code::bad_argument,
                "{} is no regular file; give another name, or -o - for the standard output",
                command.output);
  if (!command.force)
    return fail(Code::bad_argument, "{} exists; give another name, or --force to replace it",
                command.output);
  return {};
}

/// Of this process alone, beside the file that it becomes.
std::string temporary_name(const std::string& path) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), now);
}

using Write = std::function<Status(Bytes)>;
using Copy = std::function<Status(const Write&)>;

Status copy_to_stream(std::ostream& out, const Copy& copy) {
  return copy([&](Bytes content) -> Status {
    out.write(reinterpret_cast<const char*>(content.data()),
              static_cast<std::streamsize>(content.size()));
    if (out) return {};
    return fail(Code::io, "the standard output cannot be written; is its reader gone?");
  });
}

Status write_and_sync(Files& files, const std::string& path, const Copy& copy) {
  CAIRN_ASSIGN(const auto file, files.create(path, open_mode));
  std::uint64_t at = 0;
  const auto append = [&](Bytes content) {
    const Status written = file->write_at(at, content);
    at += content.size();
    return written;
  };
  CAIRN_TRY(copy(append));
  return file->sync();
}

Status copy_to_file(Files& files, const RbioCommand& command, const Copy& copy) {
  const std::string temporary = temporary_name(command.output);
  Status done = write_and_sync(files, temporary, copy);
  if (done) done = check_output(files, command);  // another process may have made it meanwhile
  if (done) done = files.rename(temporary, command.output);
  if (done) return files.sync_folder(folder_of(command.output));
  const Status removed = files.remove_file(temporary);
  if (!removed) done.error().text += "; also, " + removed.error().text;
  return done;
}

/// Adds to an error about damage what else may be extracted.
Error with_way_out(Error error, const SeriesFacts& series, std::uint64_t step) {
  if (error.code != Code::corrupt) return error;
  std::vector<StepFacts> others;
  for (const StepFacts& one : series.steps)
    if (one.state == StepState::whole && one.step != step) others.push_back(one);
  if (!others.empty())
    error.text += "; --step chooses another one; whole are: " + text_of_steps(others);
  return error;
}

ExtractedFacts facts_of_field(const rbio::StepIndex& index, std::size_t field) {
  const rbio::FieldShape& shape = index.shape(field);
  const std::vector<std::uint64_t> counts = index.counts(field);
  ExtractedFacts facts;
  facts.field = shape.name;
  facts.dtype = dtype_of(shape.type);
  facts.shape.push_back(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  if (shape.components > 1) facts.shape.push_back(shape.components);
  facts.bytes = facts.shape[0] * shape.element_bytes();
  return facts;
}

}  // namespace

std::string npy_header(std::string_view dtype, const std::vector<std::uint64_t>& shape) {
  constexpr std::size_t alignment = 64;
  constexpr std::size_t before_text = 10;
  const std::string dimensions =
      shape.size() == 1 ? fmt::format("{},", shape[0]) : fmt::format("{}", fmt::join(shape, ", "));
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", dtype, dimensions);
  const std::size_t used = before_text + text.size() + 1;
  text.append((alignment - used % alignment) % alignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() % 256);
  header += static_cast<char>(text.size() / 256);
  return header + text;
}

namespace {

/// `store` puts what the Copy gives it where it belongs.
Result<ExtractedFacts> extract(const RbioCommand& command, Files& files, const Log& log,
                               const std::function<Status(const Copy&)>& store) {
  CAIRN_ASSIGN(const SeriesFacts series, facts_of_series(files, command.path));
  CAIRN_ASSIGN(const StepFacts step, choose_step(series, command.step, log));
  const auto index = rbio::read_step_index(files, step.path);
  if (!index) return tl::unexpected(with_way_out(index.error(), series, step.step));
  const auto field = index->find(command.field);
  if (!field)
    return fail(Code::not_found, "{} has no field {}; it has {}", step.path, command.field,
                names_of_fields(*index));
  ExtractedFacts facts = facts_of_field(*index, *field);
  facts.step = step.step;
  const std::string header = command.raw ? "" : npy_header(facts.dtype, facts.shape);
  const Copy copy = [&](const Write& write) -> Status {
    CAIRN_TRY(write(std::as_bytes(std::span(header))));
    return rbio::stream_field(files, step.path, *index, *field, write);
  };
  const Status copied = store(copy);
  if (!copied) return tl::unexpected(with_way_out(copied.error(), series, step.step));
  return facts;
}

}  // namespace

Result<ExtractedFacts> extract_to_file(const RbioCommand& command, Files& files, const Log& log) {
  CAIRN_TRY(check_output(files, command));
  const auto to_file = [&](const Copy& copy) { return copy_to_file(files, command, copy); };
  CAIRN_ASSIGN(ExtractedFacts facts, extract(command, files, log, to_file));
  facts.file = command.output;
  return facts;
}

Status extract_to_stream(const RbioCommand& command, Files& files, std::ostream& out,
                         const Log& log) {
  const auto to_stream = [&](const Copy& copy) { return copy_to_stream(out, copy); };
  return extract(command, files, log, to_stream).map([](const ExtractedFacts&) {});
}

}  // namespace cairn
