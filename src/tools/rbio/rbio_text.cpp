#include "tools/rbio/rbio_text.hpp"

#include <algorithm>
#include <array>

#include "base/count.hpp"
#include "base/units.hpp"
#include "tools/record_json.hpp"

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

void print(std::ostream& out, const PartFacts& part, bool with_ranks) {
  if (!part.index) {
    out << printable(fmt::format("{}: CANNOT BE SHOWN: {}", part.path, part.reason)) << "\n";
    return;
  }
  const rbio::PartHeader& header = part.index->header;
  out << printable(fmt::format("{}: step {}, attempt {}, part {} of {}, {} of {}, {} bytes",
                               part.path, header.step, text_of(header.attempt), header.part,
                               header.parts, part.index->entries.size(),
                               count_text(header.ranks, "rank"), header.file_bytes))
      << "\n";
  for (const rbio::FieldRegion& field : header.fields)
    out << fmt::format("  {}: {}, {}, {}, {} bytes from byte {}\n", field.shape.name,
                       dtype_of(field.shape.type), count_text(field.shape.components, "component"),
                       count_text(field.elements, "element"), field.bytes(), field.offset);
  if (!with_ranks) return;
  for (const rbio::RankEntry& entry : part.index->entries) {
    out << fmt::format("  rank {}:", entry.rank);
    for (std::size_t field = 0; field < entry.pieces.size(); ++field)
      out << fmt::format("{} {} of {}", field == 0 ? "" : ",", count_in(header, entry, field),
                         header.fields[field].shape.name);
    out << "\n";
  }
}

void print(std::ostream& out, const StepFacts& step) {
  const std::string ranks = step.ranks ? count_text(*step.ranks, "rank") + ", " : "";
  const std::string attempt = step.attempt ? ", attempt " + text_of(*step.attempt) : "";
  out << fmt::format("step {}: {}, {}{} in {}{}\n", step.step,
                     step.state == StepState::whole ? "whole" : "NOT WHOLE", ranks,
                     format_bytes(step.bytes), count_text(step.parts, "part"), attempt);
  if (step.state != StepState::whole)
    out << printable(fmt::format("  {}: {}", cairn::name_of(step.state), step.reason)) << "\n";
}

void print(std::ostream& out, const UnpublishedStep& one) {
  const std::string writers = one.writers == 0 ? ""
                                               : fmt::format(", {} of {} done", one.done,
                                                             count_text(one.writers, "writer"));
  const std::string attempt =
      one.state == UnpublishedStep::State::removed ? "" : ", attempt " + text_of(one.attempt);
  out << fmt::format("not published: step {}: {}, {} in {}{}{}: {}\n", one.step, name_of(one.state),
                     format_bytes(one.bytes), count_text(one.parts, "part"), attempt, writers,
                     meaning_of(one.state))
      << "  " << printable(one.path) << "\n";
}

std::string_view headline_of(StepState state) {
  return state == StepState::damaged ? "DAMAGED" : cairn::name_of(state);
}

}  // namespace

Json json_of(const SeriesFacts& facts) {
  Json steps = Json::array(), unpublished = Json::array();
  for (const StepFacts& one : facts.steps) steps.push_back(json_of(one));
  for (const UnpublishedStep& one : facts.unpublished) unpublished.push_back(json_of(one));
  return {{"directory", facts.directory},
          {"steps", std::move(steps)},
          {"unpublished", std::move(unpublished)}};
}

Json json_of(const ShownFacts& facts, bool with_ranks) {
  Json parts = Json::array();
  for (const PartFacts& part : facts.parts) parts.push_back(json_of(part, with_ranks));
  return {{"path", facts.path},
          {"state", name_of(facts.state)},
          {"reason", facts.reason},
          {"parts", std::move(parts)}};
}

Json json_of(const CheckedFacts& facts) {
  Json steps = Json::array();
  for (const CheckedStep& one : facts.steps) {
    Json troubles = Json::array();
    for (const rbio::Trouble& trouble : one.check.troubles) troubles.push_back(json_of(trouble));
    steps.push_back({{"step", one.step},
                     {"path", one.path},
                     {"state", name_of(one.state)},
                     {"bytes", one.check.bytes},
                     {"parts", one.check.parts},
                     {"damage", std::move(troubles)}});
  }
  return {{"directory", facts.directory}, {"steps", std::move(steps)}};
}

void print(std::ostream& out, const SeriesFacts& facts) {
  for (const StepFacts& one : facts.steps) print(out, one);
  for (const UnpublishedStep& one : facts.unpublished) print(out, one);
  if (facts.steps.empty())
    out << printable(facts.directory + ": no step has been published yet") << "\n";
}

void print(std::ostream& out, const ShownFacts& facts, bool with_ranks) {
  for (const PartFacts& part : facts.parts) print(out, part, with_ranks);
  out << printable(facts.state == StepState::whole
                       ? facts.path +
                             ": header and table are whole; \"cairn rbio verify\" reads "
                             "the data too"
                       : fmt::format("{}: {}: {}", facts.path, name_of(facts.state), facts.reason))
      << "\n";
}

void print(std::ostream& out, const CheckedFacts& facts) {
  constexpr std::size_t most_lines = 20;
  for (const CheckedStep& one : facts.steps) {
    const auto& troubles = one.check.troubles;
    out << fmt::format("step {}: {}: {} in {}\n", one.step, headline_of(one.state),
                       format_bytes(one.check.bytes), count_text(one.check.parts, "part"));
    for (std::size_t i = 0; i < std::min(troubles.size(), most_lines); ++i)
      out << "  " << printable(troubles[i].error.text) << "\n";
    if (troubles.size() > most_lines)
      out << fmt::format("  and {} more; --json shows all\n", troubles.size() - most_lines);
  }
  if (facts.steps.empty())
    out << printable(facts.directory + ": there is no step to verify") << "\n";
}

}  // namespace cairn
