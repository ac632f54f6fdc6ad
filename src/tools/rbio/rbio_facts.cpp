#include "tools/rbio/rbio_facts.hpp"

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "rbio/series_directory.hpp"

namespace cairn {
namespace {

using rbio::SeriesDirectory;

/// Of the first part: another one after a run has written the step again, none after it has
/// deleted the step.
struct Identity {
  FileId id;
  std::int64_t change_ns = 0;

  bool operator==(const Identity&) const = default;
};

std::optional<Identity> identity_of(Files& files, const std::string& step_path) {
  const auto info = files.info(step_path + "/" + rbio::part_name(0));
  if (!info) return std::nullopt;
  return Identity{info->id, info->change_ns};
}

bool is_gone(Files& files, const std::string& step_path) {
  const auto info = files.info(step_path);
  return !info && info.error().code == Code::not_found;
}

/// Calls `look` until no run has replaced the step meanwhile. Nothing if the step is gone.
template <class Look>
auto look_at_step(Files& files, const std::string& step_path, Look look)
    -> std::optional<decltype(look())> {
  constexpr int most_tries = 5;  // a run does not write one step again and again
  for (int tries = 1;; ++tries) {
    const auto before = identity_of(files, step_path);
    auto found = look();
    if (is_gone(files, step_path)) return std::nullopt;
    if (tries == most_tries || identity_of(files, step_path) == before) return found;
  }
}

/// For what headers and tables do not say, of a step that is not whole.
void count_files(Files& files, StepFacts& facts) {
  const auto parts = rbio::parts_in(files, facts.path);
  if (!parts) return;  // facts.reason is about the same directory
  for (const std::uint32_t part : *parts) {
    const auto info = files.info(facts.path + "/" + rbio::part_name(part));
    if (!info) continue;
    ++facts.parts;
    facts.bytes += info->size;
  }
}

StepFacts facts_of(Files& files, std::uint64_t step, const std::string& path) {
  StepFacts facts;
  facts.step = step;
  facts.path = path;
  count_files(files, facts);
  const auto index = rbio::read_step_index(files, path);
  if (!index) {
    facts.state = state_of(index.error());
    facts.reason = index.error().text;
    return facts;
  }
  facts.ranks = index->ranks();
  facts.attempt = index->parts()[0].header.attempt;
  return facts;
}

Status check_is_series(Files& files, const std::string& directory) {
  const auto info = files.info(directory);
  if (!info && info.error().code == Code::not_found)
    return fail(Code::not_found,
                "{} does not exist; give the directory that the program opens with rbio_open",
                directory);
  if (!info) return tl::unexpected(info.error());
  if (info->kind == Kind::link)
    return fail(Code::untrusted,
                "{} is a symbolic link, and rbIO follows none; give the path that it points to",
                directory);
  if (info->kind != Kind::folder)
    return fail(Code::not_found, "{} is no directory; \"cairn rbio show\" shows a single part file",
                directory);
  return {};
}

tl::unexpected<Error> no_series(Files& files, const std::string& directory) {
  const auto parts = rbio::parts_in(files, directory);
  if (parts && !parts->empty())
    return fail(Code::not_found,
                "{} is one step of a series; give the series, {}, or use \"cairn rbio show\"",
                directory, folder_of(directory));
  return fail(Code::not_found,
              "{} is no rbIO series: it has neither a step.NUMBER nor a .rbio; give the directory "
              "that the program opens with rbio_open",
              directory);
}

/// Also where a run has published it since.
bool is_published(const SeriesFacts& facts, const rbio::UnpublishedStep& one) {
  return std::any_of(facts.steps.begin(), facts.steps.end(), [&](const StepFacts& step) {
    return step.step == one.step && step.attempt == one.attempt;
  });
}

StepState state_of(const rbio::StepCheck& check) {
  StepState state = StepState::whole;
  for (const rbio::Trouble& trouble : check.troubles) {
    const StepState one = state_of(trouble.error);
    if (one == StepState::damaged || state == StepState::whole) state = one;
  }
  return state;
}

PartFacts facts_of_part(Files& files, const std::string& path, ShownFacts& shown) {
  PartFacts facts{path, {}, {}};
  auto index = rbio::read_part_index(files, path);
  if (index) {
    facts.index = *std::move(index);
    return facts;
  }
  facts.reason = index.error().text;
  if (shown.state == StepState::whole) {
    shown.state = state_of(index.error());
    shown.reason = facts.reason;
  }
  return facts;
}

Result<ShownFacts> facts_of_directory(Files& files, const std::string& path) {
  ShownFacts shown;
  shown.path = path;
  CAIRN_ASSIGN(const std::vector<std::uint32_t> parts, rbio::parts_in(files, path));
  if (parts.empty())
    return fail(Code::not_found,
                "{} holds no part of an rbIO step; give a directory step.NUMBER, or a file "
                "part.NUMBER.rbio in it; \"cairn rbio list\" lists the steps of a series",
                path);
  for (const std::uint32_t part : parts)
    shown.parts.push_back(facts_of_part(files, path + "/" + rbio::part_name(part), shown));
  const auto index = rbio::read_step_index(files, path);
  if (!index && shown.state == StepState::whole) {
    shown.state = state_of(index.error());
    shown.reason = index.error().text;
  }
  return shown;
}

}  // namespace

std::string_view name_of(StepState state) {
  constexpr std::array<std::string_view, 4> names = {"whole", "damaged", "newer", "unread"};
  return names.at(static_cast<std::size_t>(state));
}

StepState state_of(const Error& error) {
  if (error.code == Code::corrupt) return StepState::damaged;
  return error.code == Code::newer_format ? StepState::newer : StepState::unread;
}

Result<SeriesFacts> facts_of_series(Files& files, const std::string& directory) {
  CAIRN_TRY(check_is_series(files, directory));
  SeriesFacts facts;
  facts.directory = directory;
  // First, so that a step which is published meanwhile is in one of the two lists.
  CAIRN_ASSIGN(facts.unpublished, rbio::find_unpublished(files, directory));
  SeriesDirectory series(files, directory);
  CAIRN_ASSIGN(const std::vector<rbio::PublishedStep> steps, series.steps());
  for (const rbio::PublishedStep& one : steps) {
    const std::string path = series.step_path(one.step);
    const auto found = look_at_step(files, path, [&] { return facts_of(files, one.step, path); });
    if (found) facts.steps.push_back(*found);
  }
  std::erase_if(facts.unpublished, [&](const auto& one) { return is_published(facts, one); });
  const auto work = files.info(directory + "/.rbio");
  if (facts.steps.empty() && !work) return no_series(files, directory);
  return facts;
}

Result<ShownFacts> facts_of_step(Files& files, const std::string& path) {
  const auto info = files.info(path);
  if (!info && info.error().code == Code::not_found)
    return fail(Code::not_found,
                "{} does not exist; \"cairn rbio list\" lists the steps of a series", path);
  if (!info) return tl::unexpected(info.error());
  if (info->kind != Kind::folder) {
    ShownFacts shown;
    shown.path = path;
    shown.parts.push_back(facts_of_part(files, path, shown));
    return shown;
  }
  auto shown = look_at_step(files, path, [&] { return facts_of_directory(files, path); });
  if (shown) return *std::move(shown);
  return fail(Code::not_found, "{}: a run has deleted this step while it was read", path);
}

Result<CheckedFacts> check_series(Files& files, const std::string& directory,
                                  std::optional<std::uint64_t> step) {
  CAIRN_ASSIGN(const SeriesFacts series, facts_of_series(files, directory));
  CheckedFacts facts;
  facts.directory = directory;
  for (const StepFacts& one : series.steps) {
    if (step && one.step != *step) continue;
    auto check = look_at_step(files, one.path, [&] { return rbio::check_step(files, one.path); });
    if (!check) continue;
    facts.steps.push_back({one.step, one.path, state_of(*check), *std::move(check)});
  }
  if (step && facts.steps.empty())
    return fail(Code::not_found, "{} has no step {}; it has {}", directory, *step,
                text_of_steps(series.steps));
  return facts;
}

std::string text_of_steps(const std::vector<StepFacts>& steps) {
  if (steps.empty()) return "no step";
  std::vector<std::string> numbers;
  for (const StepFacts& one : steps) numbers.push_back(fmt::format("{}", one.step));
  return (steps.size() == 1 ? "step " : "steps ") + format_first(numbers, numbers.size());
}

}  // namespace cairn
