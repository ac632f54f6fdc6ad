#include "tools/simulate_command.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "tools/layout_text.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

/// All of `text` is one number.
template <class Number>
bool read_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

/// A redundancy set that a loss touches.
struct HitSet {
  std::size_t number;  ///< from 1
  Encoding encoding;
  std::vector<int> lost_ranks;
  bool rebuilt;
};

HitSet hit(const Layout& layout, std::size_t place, const std::vector<bool>& lost_members) {
  HitSet hit{place + 1, make_encoding(layout.checkpoint, layout.sets[place], 1), {}, false};
  hit.encoding.member_bytes.resize(lost_members.size());
  for (std::size_t member = 0; member < lost_members.size(); ++member)
    if (lost_members[member]) hit.lost_ranks.push_back(hit.encoding.members[member]);
  hit.rebuilt = survives(SetLayout(hit.encoding), lost_members);
  return hit;
}

/// The sets that lose members with these groups.
std::vector<HitSet> hit_sets(const Layout& layout, const FailureGroups& groups,
                             const std::vector<int>& lost_groups) {
  std::vector<bool> lost(groups.names.size());
  for (const int group : lost_groups) lost[static_cast<std::size_t>(group)] = true;
  std::vector<HitSet> hits;
  for (std::size_t place = 0; place < layout.sets.size(); ++place) {
    std::vector<bool> members;
    for (const int rank : layout.sets[place])
      members.push_back(
          lost[static_cast<std::size_t>(groups.group_of_rank[static_cast<std::size_t>(rank)])]);
    if (std::find(members.begin(), members.end(), true) != members.end())
      hits.push_back(hit(layout, place, members));
  }
  return hits;
}

std::vector<std::string> names_of(const FailureGroups& groups, const std::vector<int>& chosen) {
  std::vector<std::string> names;
  for (const int group : chosen) names.push_back(groups.names[static_cast<std::size_t>(group)]);
  return names;
}

std::string describe_hit(const HitSet& hit, const Layout& layout) {
  return fmt::format("  set {} of {}, {}: loses {} {}, {}\n", hit.number, layout.sets.size(),
                     describe_protection(hit.encoding),
                     hit.lost_ranks.size() == 1 ? "rank" : "ranks", fmt::join(hit.lost_ranks, ", "),
                     hit.rebuilt ? "rebuilt from the others" : "which cannot be rebuilt");
}

Json hits_json(const std::vector<HitSet>& hits) {
  auto sets = Json::array();
  for (const HitSet& hit : hits)
    sets.push_back({{"set", hit.number},
                    {"members", hit.encoding.members},
                    {"scheme", name_of(hit.encoding.scheme)},
                    {"failures", hit.encoding.failures},
                    {"lost_ranks", hit.lost_ranks},
                    {"rebuilt", hit.rebuilt}});
  return sets;
}

Result<std::vector<int>> find_nodes(const FailureGroups& nodes, const NamedLoss& names) {
  std::vector<int> found;
  for (const std::string& name : names) {
    const auto place = std::find(nodes.names.begin(), nodes.names.end(), name);
    if (place == nodes.names.end())
      return fail(
          Code::bad_argument,
          "--lose: no rank is on a node \"{}\"; write names of nodes of the job, with commas "
          "between, or 'any K' or 'rate P'",
          name);
    found.push_back(static_cast<int>(place - nodes.names.begin()));
  }
  return found;
}

Status answer(Report& report, const SimulateCommand&, const Layout& layout, const NamedLoss& loss) {
  CAIRN_ASSIGN(const FailureGroups nodes, failure_groups_of(layout, "NODE"));
  CAIRN_ASSIGN(const std::vector<int> lost, find_nodes(nodes, loss));
  const std::vector<HitSet> hits = hit_sets(layout, nodes, lost);
  const bool survived =
      std::all_of(hits.begin(), hits.end(), [](const HitSet& hit) { return hit.rebuilt; });
  report.line("lose {}: {}", fmt::join(loss, ", "), survived ? "survived" : "not survived");
  for (const HitSet& hit : hits) report.text += describe_hit(hit, layout);
  report.facts.update({{"lost", loss}, {"survived", survived}, {"sets", hits_json(hits)}});
  return {};
}

std::string describe_example(const std::vector<std::string>& names, const Layout& layout,
                             const std::vector<HitSet>& broken) {
  return fmt::format("for example, losing {} breaks {} {}:\n", fmt::join(names, ", "),
                     broken.size(), broken.size() == 1 ? "set" : "sets, the first is") +
         describe_hit(broken.front(), layout);
}

std::string describe_model(const LossModel& model, const FailureGroups& groups) {
  const std::string all =
      fmt::format("{} {}", groups.names.size(),
                  groups.kind == "NODE" ? "nodes" : "failure groups " + groups.kind);
  return model.number > 0 ? fmt::format("lose any {} of {}", model.number, all)
                          : fmt::format("lose each of {} with probability {}", all, model.rate);
}

/// Counts of up to 14 digits are exact.
std::string describe_count(double count) {
  return count < 1e14 ? fmt::format("{:.0f}", count) : fmt::format("{:.3e}", count);
}

std::string describe_survival(const Survival& survival, const LossModel& model, bool counted) {
  const double not_survived = survival.losses - survival.survived;
  if (counted && model.number > 0)
    return fmt::format("{} of {} losses survived, {} not ({:.3g} %)\n",
                       describe_count(survival.survived), describe_count(survival.losses),
                       describe_count(not_survived), 100 * survival.not_survived);
  if (counted)
    return fmt::format("not survived with probability {:.4g} (counted)\n", survival.not_survived);
  return fmt::format(
      "not survived with probability {:.3g} +- {:.2g} (95 %): {:.0f} of {:.0f} samples\n",
      survival.not_survived, survival.error_95, not_survived, survival.losses);
}

Json survival_json(const Survival& survival, const LossModel& model, bool counted) {
  const auto count = [](double number) {
    return number < 1e14 ? Json(static_cast<std::uint64_t>(number)) : Json(number);
  };
  Json json = {{"counted", counted},
               {"not_survived", survival.not_survived},
               {"error_95", survival.error_95}};
  if (counted && model.number == 0) return json;
  json[counted ? "losses" : "samples"] = count(survival.losses);
  json["survived"] = count(survival.survived);
  return json;
}

Status check_number(const LossModel& model, const FailureGroups& groups) {
  if (model.number <= static_cast<int>(groups.names.size())) return {};
  return fail(Code::bad_argument,
              "--lose: {} failure groups cannot be lost, the job is in {} of kind {}", model.number,
              groups.names.size(), groups.kind);
}

Status answer(Report& report, const SimulateCommand& command, const Layout& layout,
              const RandomLoss& loss) {
  CAIRN_ASSIGN(const FailureGroups groups, failure_groups_of(layout, loss.group));
  CAIRN_TRY(check_number(loss.model, groups));
  const Losses losses(layout.sets, layout.checkpoint, groups.group_of_rank);
  const auto counted = losses.count(loss.model);
  const Survival survival =
      counted ? *counted : losses.estimate(loss.model, command.seed, command.samples);
  report.text += describe_model(loss.model, groups) + ": " +
                 describe_survival(survival, loss.model, counted.has_value());
  report.facts.update(survival_json(survival, loss.model, counted.has_value()));
  report.facts["failure_groups"] = {{"kind", groups.kind}, {"number", groups.names.size()}};
  report.facts["example"] = nullptr;
  if (survival.example.empty()) return {};
  const std::vector<std::string> names = names_of(groups, survival.example);
  std::vector<HitSet> broken = hit_sets(layout, groups, survival.example);
  std::erase_if(broken, [](const HitSet& hit) { return hit.rebuilt; });
  report.text += describe_example(names, layout, broken);
  report.facts["example"] = {{"lost", names}, {"sets", hits_json(broken)}};
  return {};
}

Result<Report> simulate(const SimulateCommand& command, Files& files, ProcessFacts process,
                        const Log& log) {
  if (command.samples < 1) return fail(Code::bad_argument, "--samples must be 1 or more");
  CAIRN_ASSIGN(const auto loss, read_loss(command.lose));
  CAIRN_ASSIGN(const Layout layout, lay_out(command.job, files, std::move(process), log));
  Report report = report_of_job(layout);
  report.facts["lose"] = command.lose;
  CAIRN_TRY(std::visit([&](const auto& l) { return answer(report, command, layout, l); }, loss));
  return report;
}

}  // namespace

Result<std::variant<RandomLoss, NamedLoss>> read_loss(const std::string& text) {
  std::istringstream words(text);
  std::string how, number, rest;
  RandomLoss loss;
  words >> how >> number >> loss.group >> rest;
  if (how != "any" && how != "rate") return split_names(text);
  LossModel& model = loss.model;
  const bool good = how == "any"
                        ? read_number(number, model.number) && model.number >= 1
                        : read_number(number, model.rate) && model.rate > 0 && model.rate <= 1;
  if (good && rest.empty()) return loss;
  return fail(
      Code::bad_argument,
      "--lose='{}' is not understood; write 'any K' with a whole number from 1, or 'rate P' "
      "with a probability above 0 and at most 1, and then a kind of failure group if not --group",
      text);
}

int run_simulate_command(const SimulateCommand& command, Files& files, ProcessFacts process,
                         std::ostream& out, const Log& log) {
  return print_report(simulate(command, files, std::move(process), log), command.json, out, log,
                      {Code::bad_argument, exit_usage});
}

}  // namespace cairn
