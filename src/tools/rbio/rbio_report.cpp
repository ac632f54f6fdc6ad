#include "tools/rbio/rbio_report.hpp"

#include <array>

#include "base/count.hpp"
#include "base/units.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;
using rbio::UnpublishedStep;

std::string_view name_of(UnpublishedStep::State state) {
  constexpr std::array<std::string_view, 3> names = {"complete", "unfinished", "removed"};
  return names.at(static_cast<std::size_t>(state));
}

std::string_view meaning_of(UnpublishedStep::State state) {
  constexpr std::array<std::string_view, 3> meanings = {
      "the next run that opens the series publishes it",
      "a run is writing it, or died and left it; the next run deletes it",
      "the next run that opens the series deletes it"};
  return meanings.at(static_cast<std::size_t>(state));
}

Json json_of(const StepFacts& facts) {
  return {{"step", facts.step},
          {"path", facts.path},
          {"state", name_of(facts.state)},
          {"reason", facts.reason},
          {"bytes", facts.bytes},
          {"parts", facts.parts},
          {"ranks", facts.ranks ? Json(*facts.ranks) : Json()},
          {"attempt", facts.attempt ? Json(text_of(*facts.attempt)) : Json()}};
}

Json json_of(const UnpublishedStep& one) {
  const bool has_attempt = one.state != UnpublishedStep::State::removed;
  return {{"step", one.step},
          {"path", one.path},
          {"state", name_of(one.state)},
          {"meaning", meaning_of(one.state)},
          {"bytes", one.bytes},
          {"parts", one.parts},
          {"attempt", has_attempt ? Json(text_of(one.attempt)) : Json()},
          {"writers_done", one.done},
          {"writers", one.writers == 0 ? Json() : Json(one.writers)}};
}

Json json_of_fields(const rbio::PartHeader& header) {
  Json fields = Json::array();
  for (const rbio::FieldRegion& field : header.fields)
    fields.push_back({{"name", field.shape.name},
                      {"dtype", dtype_of(field.shape.type)},
                      {"components", field.shape.components},
                      {"elements", field.elements},
                      {"offset", field.offset},
                      {"bytes", field.bytes()}});
  return fields;
}

std::uint64_t count_in(const rbio::PartHeader& header, const rbio::RankEntry& entry,
                       std::size_t field) {
  return entry.pieces[field].bytes / header.fields[field].shape.element_bytes();
}

Json json_of_ranks(const rbio::PartIndex& index) {
  Json ranks = Json::array();
  for (const rbio::RankEntry& entry : index.entries) {
    Json counts = Json::object();
    for (std::size_t field = 0; field < entry.pieces.size(); ++field)
      counts[index.header.fields[field].shape.name] = count_in(index.header, entry, field);
    ranks.push_back({{"rank", entry.rank}, {"elements", std::move(counts)}});
  }
  return ranks;
}

Json json_of(const PartFacts& part, bool with_ranks) {
  if (!part.index) return {{"path", part.path}, {"reason", part.reason}};
  const rbio::PartHeader& header = part.index->header;
  Json json = {{"path", part.path},
               {"step", header.step},
               {"attempt", text_of(header.attempt)},
               {"part", header.part},
               {"parts", header.parts},
               {"ranks", header.ranks},
               {"ranks_here", part.index->entries.size()},
               {"bytes", header.file_bytes},
               {"fields", json_of_fields(header)}};
  if (with_ranks) json["counts"] = json_of_ranks(*part.index);
  return json;
}

Json json_of(const rbio::Trouble& trouble) {
  return {{"file", trouble.file},
          {"first_byte", trouble.bytes ? Json(trouble.bytes->begin) : Json()},
          {"last_byte", trouble.bytes ? Json(trouble.bytes->end - 1) : Json()},
          {"reason", trouble.error.text}};
}

void add_ranks(Report& report, const rbio::PartIndex& index) {
  for (const rbio::RankEntry& entry : index.entries) {
    std::vector<std::string> counts;
    for (std::size_t field = 0; field < entry.pieces.size(); ++field)
      counts.push_back(fmt::format("{} of {}", count_in(index.header, entry, field),
                                   index.header.fields[field].shape.name));
    report.line("  rank {}: {}", entry.rank, fmt::join(counts, ", "));
  }
}

void add(Report& report, const PartFacts& part, bool with_ranks) {
  report.facts["parts"].push_back(json_of(part, with_ranks));
  if (!part.index) {
    report.line("{}: CANNOT BE SHOWN: {}", part.path, part.reason);
    return;
  }
  const rbio::PartHeader& header = part.index->header;
  report.line("{}: step {}, attempt {}, part {} of {}, {} of {}, {} bytes", part.path, header.step,
              text_of(header.attempt), header.part, header.parts, part.index->entries.size(),
              count_text(header.ranks, "rank"), header.file_bytes);
  for (const rbio::FieldRegion& field : header.fields)
    report.line("  {}: {}, {}, {}, {} bytes from byte {}", field.shape.name,
                dtype_of(field.shape.type), count_text(field.shape.components, "component"),
                count_text(field.elements, "element"), field.bytes(), field.offset);
  if (with_ranks) add_ranks(report, *part.index);
}

void add(Report& report, const StepFacts& step) {
  report.facts["steps"].push_back(json_of(step));
  const std::string ranks = step.ranks ? count_text(*step.ranks, "rank") + ", " : "";
  const std::string attempt = step.attempt ? ", attempt " + text_of(*step.attempt) : "";
  report.line("step {}: {}, {}{} in {}{}", step.step,
              step.state == StepState::whole ? "whole" : "NOT WHOLE", ranks,
              format_bytes(step.bytes), count_text(step.parts, "part"), attempt);
  if (step.state != StepState::whole)
    report.line("  {}: {}", cairn::name_of(step.state), step.reason);
}

void add(Report& report, const UnpublishedStep& one) {
  report.facts["unpublished"].push_back(json_of(one));
  const std::string writers = one.writers == 0 ? ""
                                               : fmt::format(", {} of {} done", one.done,
                                                             count_text(one.writers, "writer"));
  const std::string attempt =
      one.state == UnpublishedStep::State::removed ? "" : ", attempt " + text_of(one.attempt);
  report.line("not published: step {}: {}, {} in {}{}{}: {}", one.step, name_of(one.state),
              format_bytes(one.bytes), count_text(one.parts, "part"), attempt, writers,
              meaning_of(one.state));
  report.line("  {}", one.path);
}

std::string_view headline_of(StepState state) {
  return state == StepState::damaged ? "DAMAGED" : cairn::name_of(state);
}

void add(Report& report, const CheckedStep& one) {
  Json damage = Json::array();
  std::vector<std::string> reasons;
  for (const rbio::Trouble& trouble : one.check.troubles) {
    damage.push_back(json_of(trouble));
    reasons.push_back(trouble.error.text);
  }
  report.facts["steps"].push_back({{"step", one.step},
                                   {"path", one.path},
                                   {"state", cairn::name_of(one.state)},
                                   {"bytes", one.check.bytes},
                                   {"parts", one.check.parts},
                                   {"damage", std::move(damage)}});
  report.line("step {}: {}: {} in {}", one.step, headline_of(one.state),
              format_bytes(one.check.bytes), count_text(one.check.parts, "part"));
  report.some_lines("  ", reasons);
}

void add_note(Report& report, const std::string& note) {
  report.facts["note"] = note;
  if (!note.empty()) report.line("{}", note);
}

int code_of(StepState state) { return state == StepState::whole ? exit_ok : exit_failure; }

}  // namespace

Report report_of(const SeriesFacts& facts) {
  Report report;
  report.facts = {
      {"directory", facts.directory}, {"steps", Json::array()}, {"unpublished", Json::array()}};
  for (const StepFacts& one : facts.steps) {
    add(report, one);
    report.exit_code = worse(report.exit_code, code_of(one.state));
  }
  for (const UnpublishedStep& one : facts.unpublished) add(report, one);
  add_note(report, facts.steps.empty() ? facts.directory + ": no step has been published yet" : "");
  return report;
}

Report report_of(const CheckedFacts& facts) {
  Report report;
  report.facts = {{"directory", facts.directory}, {"steps", Json::array()}};
  for (const CheckedStep& one : facts.steps) {
    add(report, one);
    report.exit_code = worse(report.exit_code, code_of(one.state));
  }
  add_note(report, facts.steps.empty() ? facts.directory + ": there is no step to verify" : "");
  return report;
}

Report report_of(const ShownFacts& facts, bool with_ranks) {
  Report report;
  report.facts = {{"path", facts.path},
                  {"state", name_of(facts.state)},
                  {"reason", facts.reason},
                  {"parts", Json::array()}};
  for (const PartFacts& part : facts.parts) add(report, part, with_ranks);
  if (facts.state != StepState::whole)
    report.line("{}: {}: {}", facts.path, name_of(facts.state), facts.reason);
  add_note(report, facts.state == StepState::whole
                       ? facts.path +
                             ": header and table are whole; \"cairn rbio verify\" reads the data "
                             "too"
                       : "");
  report.exit_code = code_of(facts.state);
  return report;
}

Report report_of(const ExtractedFacts& facts) {
  Report report;
  report.facts = {{"step", facts.step},   {"field", facts.field}, {"dtype", facts.dtype},
                  {"shape", facts.shape}, {"bytes", facts.bytes}, {"file", facts.file}};
  report.line("{}: field {} of step {}, {} of shape ({}), {} bytes", facts.file, facts.field,
              facts.step, facts.dtype, fmt::join(facts.shape, ", "), facts.bytes);
  return report;
}

}  // namespace cairn
