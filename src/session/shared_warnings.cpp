#include "session/shared_warnings.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "records/wire.hpp"

namespace cairn {
namespace {

struct Warning {
  std::string text;
  std::vector<std::string> nodes;
};

Blob encode(const std::string& node, const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  Encoder out;
  out.text(node);
  out.u64(texts.size());
  for (const std::string& text : texts) out.text(text);
  return out.take();
}

void add(std::vector<Warning>& warnings, const std::string& node, const std::string& text) {
  const auto known = std::find_if(warnings.begin(), warnings.end(),
                                  [&](const Warning& one) { return one.text == text; });
  Warning& warning = known != warnings.end() ? *known : warnings.emplace_back(Warning{text, {}});
  auto& nodes = warning.nodes;
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

std::string text_of(const std::vector<std::string>& nodes) {
  constexpr std::size_t most_named = 3;
  if (nodes.size() == 1) return "node " + nodes.front();
  if (nodes.size() <= most_named) return fmt::format("nodes {}", fmt::join(nodes, ", "));
  return fmt::format("{} nodes ({} ... {})", nodes.size(), nodes.front(), nodes.back());
}

}  // namespace

void warn_of_nodes(Communicator& comm, const Log& log, const std::string& node,
                   const std::vector<std::string>& texts) {
  const auto every_rank = static_cast<std::size_t>(comm.size());
  std::vector<Warning> warnings;
  for (const Blob& of_rank : gather_first(comm, encode(node, texts), every_rank)) {
    Decoder in(of_rank);
    const std::string its_node = in.text();
    for (std::uint64_t left = in.u64(); left > 0; --left) add(warnings, its_node, in.text());
  }
  for (const Warning& one : warnings) log.warning("{}: {}", text_of(one.nodes), one.text);
}

void warn_of_ranks(Communicator& comm, const Log& log, const std::string& text,
                   std::int64_t ranks) {
  if (ranks == 0) return;
  for (const Blob& first : gather_first(comm, std::as_bytes(std::span(text)), 1)) {
    const std::string_view said{reinterpret_cast<const char*>(first.data()), first.size()};
    log.warning("{}{}", ranks > 1 ? fmt::format("{} ranks; the first: ", ranks) : "", said);
  }
}

}  // namespace cairn
