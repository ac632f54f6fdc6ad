#include "shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/job_settings.hpp"
#include "topology/placement.hpp"

namespace cairn::sim {
namespace {

/// A scheme that is listed twice is drawn twice as often.
const std::vector<Scheme> schemes = {Scheme::single, Scheme::partner, Scheme::xor_, Scheme::xor_,
                                     Scheme::rs};

std::vector<std::string> name_nodes(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("n{}", i));
  return names;
}

/// Ranks node by node, or dealt out in turn.
Nodes place(const std::vector<std::string>& nodes, std::vector<int> counts, bool in_turn) {
  Nodes placement;
  const auto place_one = [&](std::size_t node) {
    if (counts[node] == 0) return;
    --counts[node];
    placement.push_back(nodes[node]);
  };
  while (*std::max_element(counts.begin(), counts.end()) > 0)
    for (std::size_t node = 0; node < counts.size(); ++node)
      for (int many = in_turn ? 1 : counts[node]; many > 0; --many) place_one(node);
  return placement;
}

std::vector<int> draw_counts(int nodes, Chance& chance) {
  const bool uneven = chance.one_in(4);
  const int each = chance.between(1, nodes > 5 ? 2 : 3);
  std::vector<int> counts(static_cast<std::size_t>(nodes), each);
  if (uneven)
    for (int& count : counts) count = chance.between(1, 3);
  return counts;
}

StoreSettings draw_store(const std::string& path, Chance& chance) {
  StoreSettings store;
  store.path = path;
  store.count = chance.one_in(2) ? 1 : chance.between(2, 3);
  if (path == shared_mount) store.view = StoreView::global;
  return store;
}

CheckpointSettings draw_checkpoint(int id, const std::string& store, Chance& chance) {
  CheckpointSettings checkpoint;
  checkpoint.id = id;
  checkpoint.store = store;
  checkpoint.scheme = chance.pick(schemes);
  checkpoint.set_size = chance.between(2, 8);
  checkpoint.set_failures = chance.between(1, 3);
  checkpoint.partner_copies = chance.between(1, 2);
  checkpoint.partner_hop = chance.between(1, 3);
  checkpoint.interval = id == 0 ? 1 : chance.between(2, 3);
  checkpoint.group = chance.one_in(6) ? "RACK" : "NODE";
  return checkpoint;
}

void draw_levels(Settings& settings, Chance& chance) {
  const bool memory = chance.one_in(2);
  const std::string first = memory ? memory_mount : disk_mount;
  settings.stores.push_back(draw_store(first, chance));
  settings.checkpoints.push_back(draw_checkpoint(0, first, chance));
  if (!chance.one_in(3)) return;
  const std::string second = chance.one_in(2) ? shared_mount : memory ? disk_mount : memory_mount;
  settings.stores.push_back(draw_store(second, chance));
  settings.checkpoints.push_back(draw_checkpoint(1, second, chance));
}

void draw_racks(JobShape& shape, Chance& chance) {
  const int nodes_per_rack = chance.between(1, 3);
  for (std::size_t i = 0; i < shape.nodes.size(); ++i)
    shape.settings.node_groups[shape.nodes[i]]["RACK"] =
        fmt::format("r{}", static_cast<int>(i) / nodes_per_rack);
}

}  // namespace

JobShape draw_shape(std::uint64_t seed) {
  Chance chance(seed);
  JobShape shape;
  shape.seed = seed;
  const int nodes = chance.between(1, 6);
  shape.nodes = name_nodes(nodes + chance.between(1, 3));
  shape.first_placement = place(shape.nodes, draw_counts(nodes, chance), chance.one_in(3));
  shape.first_placement.resize(std::min<std::size_t>(shape.first_placement.size(), 12));
  Settings& settings = shape.settings;
  settings = settings_of_job(prefix_mount, memory_mount);
  settings.block_bytes = chance.one_in(3) ? 4096 : 512;
  settings.encode_bytes = std::uint64_t{1} << chance.between(10, 20);
  settings.keep_old = !chance.one_in(8);
  draw_racks(shape, chance);
  draw_levels(settings, chance);
  return shape;
}

void put_behind(JobShape& shape) {
  Chance chance(shape.seed ^ 0x82efa98eU);
  shape.settings.keep_old = true;
  for (CheckpointSettings& checkpoint : shape.settings.checkpoints)
    checkpoint.behind = !chance.one_in(5);
}

std::string JobShape::describe() const {
  std::string levels;
  for (const CheckpointSettings& level : settings.checkpoints)
    levels += fmt::format(", {}{} in {} every {} over sets of {} by {}", name_of(level.scheme),
                          level.behind ? " behind" : "", level.store, level.interval,
                          level.set_size, level.group);
  return fmt::format("{} ranks on {}, {} nodes in all, blocks of {}{}", ranks(),
                     fmt::join(first_placement, " "), nodes.size(), settings.block_bytes, levels);
}

Nodes draw_placement(const JobShape& shape, const Nodes& before, Chance& chance) {
  if (chance.one_in(3)) return before;
  std::map<std::string, int> counted;
  for (const std::string& node : before) ++counted[node];
  std::vector<int> counts;
  for (const auto& [node, count] : counted) counts.push_back(count);
  chance.shuffle(counts);

  std::vector<std::string> nodes = shape.nodes;
  const auto kind = chance.below(4);
  if (kind == 0) {  // one node is replaced
    Nodes after = before;
    const std::string gone = chance.pick(before);
    chance.shuffle(nodes);
    const auto spare = std::find_if(nodes.begin(), nodes.end(),
                                    [&](const auto& node) { return !counted.contains(node); });
    if (spare != nodes.end()) std::replace(after.begin(), after.end(), gone, *spare);
    return after;
  }
  if (kind == 1) {  // the same ones turned
    Nodes after = before;
    std::rotate(after.begin(), after.begin() + chance.between(0, shape.ranks() - 1), after.end());
    return after;
  }
  chance.shuffle(nodes);
  if (kind == 2) {  // other nodes, as many ranks on each
    nodes.resize(counts.size());
    return place(nodes, counts, chance.one_in(2));
  }
  Nodes after;  // anything
  nodes.resize(static_cast<std::size_t>(chance.between(1, static_cast<int>(nodes.size()))));
  for (int rank = 0; rank < shape.ranks(); ++rank) after.push_back(chance.pick(nodes));
  return after;
}

namespace {

std::size_t draw_bytes(std::size_t block, Chance& chance) {
  switch (chance.below(6)) {
    case 0:
      return 0;
    case 1:
      return chance.below(100);
    case 2:
      return block * chance.below(4);
    case 3:
      return block * chance.below(8) + chance.below(3) + 1;
    default:
      return chance.below(4 * block);
  }
}

std::uint64_t mix(const JobShape& shape, int key, int rank, std::uint64_t what) {
  Chance chance(shape.seed + what);
  const std::uint64_t of_key = chance.next() * static_cast<std::uint64_t>(2 * key + 1);
  return Chance(of_key + static_cast<std::uint64_t>(rank)).next();
}

}  // namespace

std::vector<FileShape> files_of(const JobShape& shape, int key, int rank) {
  Chance chance(mix(shape, key, rank, 1));
  const int count = std::max(chance.between(0, 3), rank == 0 ? 1 : 0);
  std::vector<FileShape> files;
  for (int file = 0; file < count; ++file) {
    const std::string folder = chance.one_in(3) ? "step/" : "";
    const std::uint32_t mode = chance.one_in(4) ? 0440 : 0640;
    files.push_back(
        {fmt::format("{}/{}d{}.rank{}.{}", shape.settings.prefix, folder, key, rank, file),
         draw_bytes(shape.settings.block_bytes, chance), mode});
  }
  return files;
}

std::uint64_t data_bytes_of(const JobShape& shape, int key, int rank) {
  std::uint64_t bytes = 0;
  for (const FileShape& file : files_of(shape, key, rank)) bytes += file.bytes;
  return bytes;
}

Blob content_of(const JobShape& shape, int key, int rank, const FileShape& file) {
  Chance chance(mix(shape, key, rank, 2) + hash_of_name(file.name));
  Blob content(file.bytes);
  for (std::size_t at = 0; at < content.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = chance.next();
    std::copy_n(bytes_of(word).begin(), std::min(sizeof word, content.size() - at),
                content.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return content;
}

}  // namespace cairn::sim
