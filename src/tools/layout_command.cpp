#include "tools/layout_command.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/exit_codes.hpp"
#include "tools/layout_text.hpp"

namespace cairn {
namespace {

nlohmann::ordered_json set_json(const RedundancySet& set, const Layout& layout) {
  auto members = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < set.size(); ++i) {
    nlohmann::ordered_json member = {
        {"rank", set[i]},
        {"node", layout.node_of_rank[static_cast<std::size_t>(set[i])]},
        {"left", nullptr}};
    if (set.size() > 1) member["left"] = set[(i + set.size() - 1) % set.size()];
    members.push_back(std::move(member));
  }
  return {{"members", std::move(members)}};
}

}  // namespace

std::string layout_table(const Layout& layout) {
  if (layout.shared) return describe_job(layout);
  return describe_job(layout) + "\n" +
         describe_sets(layout.sets, layout.node_of_rank, layout.checkpoint);
}

std::string layout_json(const Layout& layout) {
  auto sets = nlohmann::ordered_json::array();
  for (const RedundancySet& set : layout.sets) sets.push_back(set_json(set, layout));
  const auto alone = std::count_if(layout.sets.begin(), layout.sets.end(),
                                   [](const RedundancySet& set) { return set.size() == 1; });
  nlohmann::ordered_json all = descriptor_json(layout);
  all["unprotected_ranks"] = alone;
  all["sets"] = std::move(sets);
  // JSON is UTF-8 and the name of a node need not be.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run_layout_command(const LayoutCommand& command, Files& files, ProcessFacts process,
                       std::ostream& out, const Log& log) {
  const auto layout = lay_out(command.job, files, std::move(process), log);
  if (!layout) {
    log.error("{}", layout.error().text);
    return layout.error().code == Code::bad_argument ? exit_usage : exit_failure;
  }
  out << (command.json ? layout_json(*layout) : layout_table(*layout)) << std::flush;
  return out ? exit_ok : exit_failure;
}

}  // namespace cairn
