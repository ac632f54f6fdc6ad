#include "config/descriptors.hpp"

#include <algorithm>
#include <utility>

#include "config/options.hpp"

namespace cairn {
namespace {

const Descriptors& descriptors_of(const Layers& layers, std::string_view key) {
  static const Descriptors none;
  const auto found = layers.descriptors.find(key);
  return found == layers.descriptors.end() ? none : found->second;
}

const ResolvedOption& option_of(const ResolvedSettings& resolved, std::string_view key) {
  return *std::find_if(resolved.options.begin(), resolved.options.end(),
                       [&](const ResolvedOption& option) { return option.key == key; });
}

bool from_ckpt_lines(const ResolvedSettings& resolved) {
  return option_of(resolved, "SCR_COPY_TYPE").value == "FILE";
}

template <class T>
Sourced leaf_text(const Leaf<T>& leaf, const Descriptor& given, const ResolvedSettings& resolved) {
  if (const auto found = given.leaves.find(leaf.key); found != given.leaves.end())
    return found->second;
  if (leaf.from.empty()) return {std::string(leaf.default_text), "default"};
  const ResolvedOption& option = option_of(resolved, leaf.from);
  // SCR_COPY_TYPE=FILE sends the reader here; it is no scheme itself.
  if (leaf.key == "TYPE" && option.value == "FILE") return {"XOR", "default"};
  return {option.value, option.source};
}

template <class T>
Status fill(std::span<const Leaf<T>> leaves, const std::string& name, const Descriptor& given,
            ResolvedSettings& resolved, T& filled) {
  std::vector<std::string_view> known;
  for (const Leaf<T>& leaf : leaves) {
    known.push_back(leaf.key);
    const std::string key = fmt::format("{} {}", name, leaf.key);
    const Sourced text = leaf_text(leaf, given, resolved);
    CAIRN_ASSIGN(const Value value, read_value(leaf.rule, key, text));
    if (leaf.set) leaf.set(filled, value);
    resolved.options.push_back({key, value.text, text.source, std::string(leaf.help),
                                leaf.set != nullptr, bytes_of(leaf.rule, value)});
  }
  for (const auto& [key, text] : given.leaves)
    if (std::find(known.begin(), known.end(), key) == known.end())
      resolved.warnings.push_back(fmt::format("unknown setting {} of {} in {} is ignored{}", key,
                                              name, text.source, did_you_mean(key, known)));
  return {};
}

Status resolve_groups(const Descriptors& lines, ResolvedSettings& resolved) {
  Settings& settings = resolved.settings;
  for (const auto& [node, line] : lines) {
    NodeGroups& groups = settings.node_groups[node];
    for (const auto& [group, member] : line.leaves) {
      if (group == "NODE" || group == "WORLD")
        return fail(Code::bad_setting,
                    "GROUPS={} ({}) defines {}, which is built in; give the group another name",
                    node, line.source, group);
      groups[group] = member.value;
      resolved.options.push_back({fmt::format("GROUPS={} {}", node, group), member.value,
                                  member.source, "what the node is in of that failure group",
                                  true});
    }
  }
  const auto same_names = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto& first = *settings.node_groups.begin();
  for (const auto& [node, groups] : settings.node_groups)
    if (!std::equal(groups.begin(), groups.end(), first.second.begin(), first.second.end(),
                    same_names))
      return fail(Code::bad_setting,
                  "GROUPS={} ({}) and GROUPS={} ({}) define different groups; every node's line "
                  "must define the same names",
                  first.first, lines.at(first.first).source, node, lines.at(node).source);
  return {};
}

/// Of the STORE or CKPT `name`, which is enabled. Whether every node of the job has a line is for
/// the run to see: `cairn config` is also asked on login nodes, which have none.
Status check_group(const std::string& name, const ResolvedSettings& resolved) {
  const ResolvedOption& group = option_of(resolved, name + " GROUP");
  if (group.value == "NODE" || group.value == "WORLD") return {};
  const auto& lines = resolved.settings.node_groups;  // all define the same names
  if (!lines.empty() && lines.begin()->second.count(group.value) > 0) return {};
  return fail(Code::bad_setting,
              "{}={} ({}): no GROUPS line defines that group; write NODE or WORLD, or add a line "
              "GROUPS=NODE_NAME {}=VALUE for every node to the configuration file",
              group.key, group.value, group.source, group.value);
}

Status add_store(const std::string& path, const Descriptor& line, ResolvedSettings& resolved) {
  StoreSettings store;
  store.path = path;
  const std::string name = "STORE=" + path;
  CAIRN_TRY(fill(store_leaves(), name, line, resolved, store));
  if (line.leaves.count("FLUSH") > 0)
    resolved.notes.push_back(fmt::format("{} FLUSH is accepted but not used yet", name));
  if (store.enabled) CAIRN_TRY(check_group(name, resolved));
  resolved.settings.stores.push_back(std::move(store));
  return {};
}

Status check_checkpoint(const CheckpointSettings& checkpoint, const std::string& name,
                        const ResolvedSettings& resolved) {
  CAIRN_TRY(check_group(name, resolved));
  if (checkpoint.scheme == Scheme::rs && checkpoint.set_failures >= checkpoint.set_size)
    return fail(Code::bad_setting,
                "{} TYPE=RS with SET_SIZE={} ({}) cannot survive SET_FAILURES={} ({}); write fewer "
                "failures or a larger set",
                name, checkpoint.set_size, option_of(resolved, name + " SET_SIZE").source,
                checkpoint.set_failures, option_of(resolved, name + " SET_FAILURES").source);
  if (checkpoint.scheme == Scheme::partner && checkpoint.partner_copies >= checkpoint.set_size)
    return fail(Code::bad_setting,
                "{} TYPE=PARTNER with SET_SIZE={} ({}) has no room for COPIES={} ({}); write fewer "
                "copies or a larger set",
                name, checkpoint.set_size, option_of(resolved, name + " SET_SIZE").source,
                checkpoint.partner_copies, option_of(resolved, name + " COPIES").source);
  return {};
}

Status add_checkpoint(const std::string& id, const Descriptor& line, ResolvedSettings& resolved) {
  CheckpointSettings checkpoint;
  checkpoint.id = std::stoi(id);  // in canonical form, so it cannot fail
  const std::string name = "CKPT=" + id;
  CAIRN_TRY(fill(checkpoint_leaves(), name, line, resolved, checkpoint));
  if (!checkpoint.enabled) return {};
  CAIRN_TRY(check_checkpoint(checkpoint, name, resolved));
  resolved.settings.checkpoints.push_back(std::move(checkpoint));
  return {};
}

Status resolve_checkpoints(const Descriptors& lines, ResolvedSettings& resolved) {
  if (from_ckpt_lines(resolved)) {
    for (const auto& [id, line] : lines) CAIRN_TRY(add_checkpoint(id, line, resolved));
  } else {
    for (const auto& [id, line] : lines)
      resolved.warnings.push_back(fmt::format(
          "CKPT={} in {} is not used; set SCR_COPY_TYPE=FILE to use CKPT lines", id, line.source));
    CAIRN_TRY(add_checkpoint("0", {"default", {}}, resolved));
  }
  auto& checkpoints = resolved.settings.checkpoints;
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  if (std::none_of(checkpoints.begin(), checkpoints.end(),
                   [](const auto& checkpoint) { return checkpoint.interval == 1; }))
    return fail(Code::bad_setting,
                "SCR_COPY_TYPE=FILE ({}), but no enabled CKPT line has INTERVAL=1; add for example "
                "CKPT=0 INTERVAL=1 TYPE=XOR to the configuration file",
                option_of(resolved, "SCR_COPY_TYPE").source);
  return {};
}

/// The store that a checkpoint descriptor names; the default one comes into being with its first
/// use.
Status require_store(const CheckpointSettings& checkpoint, ResolvedSettings& resolved) {
  const auto& stores = resolved.settings.stores;
  const auto store = std::find_if(stores.begin(), stores.end(), [&](const StoreSettings& s) {
    return s.path == checkpoint.store;
  });
  if (store != stores.end() && store->enabled) return {};
  const ResolvedOption& named = option_of(resolved, fmt::format("CKPT={} STORE", checkpoint.id));
  if (store != stores.end())
    return fail(Code::bad_setting,
                "{}={} ({}) names a store that has ENABLED=0; enable the store or set ENABLED=0 "
                "for CKPT={}",
                named.key, named.value, named.source, checkpoint.id);
  if (checkpoint.store == option_of(resolved, "SCR_CACHE_BASE").value)
    return add_store(checkpoint.store, {"default", {}}, resolved);
  return fail(Code::bad_setting,
              "{}={} ({}): no such store; add STORE={} to the configuration file or name one that "
              "is there",
              named.key, named.value, named.source, named.value);
}

Status resolve_stores(const Descriptors& lines, ResolvedSettings& resolved) {
  for (const auto& [path, line] : lines) CAIRN_TRY(add_store(path, line, resolved));
  for (const CheckpointSettings& checkpoint : resolved.settings.checkpoints)
    CAIRN_TRY(require_store(checkpoint, resolved));
  return {};
}

/// Nothing but what `cairn config` shows: job control asks it.
Status resolve_folders(std::string_view key, const Layers& layers, ResolvedSettings& resolved) {
  FolderNeeds needs;
  for (const auto& [path, line] : descriptors_of(layers, key))
    CAIRN_TRY(fill(folder_leaves(), fmt::format("{}={}", key, path), line, resolved, needs));
  return {};
}

}  // namespace

Status resolve_descriptors(const Layers& layers, ResolvedSettings& resolved) {
  const Descriptors& groups = descriptors_of(layers, "GROUPS");
  if (!groups.empty()) CAIRN_TRY(resolve_groups(groups, resolved));
  for (const char* key : {"CACHEDIR", "CNTLDIR"}) CAIRN_TRY(resolve_folders(key, layers, resolved));
  CAIRN_TRY(resolve_checkpoints(descriptors_of(layers, "CKPT"), resolved));
  return resolve_stores(descriptors_of(layers, "STORE"), resolved);
}

}  // namespace cairn
