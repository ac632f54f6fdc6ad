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
  // SCR_COPY_TYPE=FILE selects these lines; it is not a scheme itself.
  if (leaf.key == "TYPE" && option.value == "FILE") return {"XOR", "default"};
  return {option.value, option.source};
}

/// Resolves the lines of one job, and collects their errors.
class Resolver {
 public:
  Resolver(ResolvedSettings& resolved, std::vector<std::string>& problems)
      : resolved_(resolved), problems_(problems), options_are_good_(problems.empty()) {}

  void groups(const Descriptors& lines) {
    for (const auto& [node, line] : lines) add_groups(node, line);
    const auto same_names = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto& first = *resolved_.settings.node_groups.begin();
    for (const auto& [node, groups] : resolved_.settings.node_groups)
      if (!std::equal(groups.begin(), groups.end(), first.second.begin(), first.second.end(),
                      same_names))
        return note(
            "GROUPS={} ({}) and GROUPS={} ({}) define different groups; every node's line must "
            "define the same names",
            first.first, lines.at(first.first).source, node, lines.at(node).source);
  }

  void checkpoints(const Descriptors& lines) {
    // If SCR_COPY_TYPE has a wrong value, the user may have meant FILE.
    if (from_ckpt_lines(resolved_) || (!options_are_good_ && !lines.empty())) {
      for (const auto& [id, line] : lines) add_checkpoint(id, line);
    } else {
      for (const auto& [id, line] : lines)
        resolved_.warnings.push_back(fmt::format(
            "CKPT={} in {} is ignored; set SCR_COPY_TYPE=FILE to use CKPT lines", id, line.source));
      add_checkpoint("0", {"default", {}});
    }
    auto& checkpoints = resolved_.settings.checkpoints;
    std::sort(checkpoints.begin(), checkpoints.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    if (problems_.empty() &&
        std::none_of(checkpoints.begin(), checkpoints.end(),
                     [](const auto& checkpoint) { return checkpoint.interval == 1; }))
      note(
          "SCR_COPY_TYPE=FILE ({}), but no enabled CKPT line has INTERVAL=1; add for example "
          "CKPT=0 INTERVAL=1 TYPE=XOR to the configuration file",
          option_of(resolved_, "SCR_COPY_TYPE").source);
  }

  void stores(const Descriptors& lines) {
    for (const auto& [path, line] : lines)
      add_store(path, line, fmt::format("STORE={} ({})", path, line.source));
    if (!problems_.empty()) return;  // a store with a problem would count as missing
    for (const CheckpointSettings& checkpoint : resolved_.settings.checkpoints)
      require_store(checkpoint);
  }

  /// Only for `cairn config`, which job control calls.
  void folders(std::string_view key, const Descriptors& lines) {
    FolderNeeds needs;
    for (const auto& [path, line] : lines)
      fill(folder_leaves(), fmt::format("{}={}", key, path), line, needs);
  }

 private:
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  /// False if a value is not allowed; the default replaces it.
  template <class T>
  bool fill(std::span<const Leaf<T>> leaves, const std::string& name, const Descriptor& given,
            T& filled) {
    const std::size_t before = problems_.size();
    std::vector<std::string_view> known;
    for (const Leaf<T>& leaf : leaves) {
      known.push_back(leaf.key);
      const std::string key = fmt::format("{} {}", name, leaf.key);
      Sourced text = leaf_text(leaf, given, resolved_);
      auto value = read_value(leaf.rule, key, text);
      if (!value) {
        problems_.push_back(value.error().text);
        text = leaf_text(leaf, Descriptor{}, resolved_);
        value = read_value(leaf.rule, key, text);
        if (!value) continue;
      }
      if (leaf.set) leaf.set(filled, *value);
      resolved_.options.push_back({key, value->text, text.source, std::string(leaf.help),
                                   leaf.set != nullptr, bytes_of(leaf.rule, *value)});
    }
    for (const auto& [key, text] : given.leaves)
      if (std::find(known.begin(), known.end(), key) == known.end())
        resolved_.warnings.push_back(fmt::format("unknown setting {} of {} in {} is ignored{}", key,
                                                 name, text.source, did_you_mean(key, known)));
    return problems_.size() == before;
  }

  void add_groups(const std::string& node, const Descriptor& line) {
    NodeGroups& groups = resolved_.settings.node_groups[node];
    for (const auto& [group, member] : line.leaves) {
      if (group == "NODE" || group == "WORLD")
        note("GROUPS={} ({}) defines {}, which is built in; give the group another name", node,
             line.source, group);
      groups[group] = member.value;
      resolved_.options.push_back(
          {fmt::format("GROUPS={} {}", node, group), member.value, member.source,
           "the name of the failure group to which the node belongs", true});
    }
  }

  /// Checks the group of the enabled STORE or CKPT `name`. The run checks whether every node of the
  /// job has a line: `cairn config` also runs on login nodes, which have none.
  void check_group(const std::string& name) {
    const ResolvedOption& group = option_of(resolved_, name + " GROUP");
    if (group.value == "NODE" || group.value == "WORLD") return;
    const auto& lines = resolved_.settings.node_groups;  // all define the same names
    if (!lines.empty() && lines.begin()->second.count(group.value) > 0) return;
    note(
        "{}={} ({}): no GROUPS line defines that group; write NODE or WORLD, or add a line "
        "GROUPS=NODE_NAME {}=VALUE for every node to the configuration file",
        group.key, group.value, group.source, group.value);
  }

  void add_store(const std::string& path, const Descriptor& line, const std::string& origin) {
    StoreSettings store;
    store.path = path;
    store.origin = origin;
    const std::string name = "STORE=" + path;
    const bool good = fill(store_leaves(), name, line, store);
    if (line.leaves.count("FLUSH") > 0)
      resolved_.notes.push_back(fmt::format(
          "no effect in this version of Cairn; a later version will act on it: {} FLUSH", name));
    if (good && store.enabled) check_group(name);
    resolved_.settings.stores.push_back(std::move(store));
  }

  void check_checkpoint(const CheckpointSettings& checkpoint, const std::string& name) {
    check_group(name);
    const auto source = [&](const char* leaf) {
      return option_of(resolved_, fmt::format("{} {}", name, leaf)).source;
    };
    if (checkpoint.scheme == Scheme::rs && checkpoint.set_failures >= checkpoint.set_size)
      note(
          "{} TYPE=RS with SET_SIZE={} ({}) cannot survive SET_FAILURES={} ({}); write fewer "
          "failures or a larger set",
          name, checkpoint.set_size, source("SET_SIZE"), checkpoint.set_failures,
          source("SET_FAILURES"));
    if (checkpoint.scheme == Scheme::partner && checkpoint.partner_copies >= checkpoint.set_size)
      note(
          "{} TYPE=PARTNER with SET_SIZE={} ({}) has no room for COPIES={} ({}); write fewer "
          "copies or a larger set",
          name, checkpoint.set_size, source("SET_SIZE"), checkpoint.partner_copies,
          source("COPIES"));
  }

  void add_checkpoint(const std::string& id, const Descriptor& line) {
    CheckpointSettings checkpoint;
    checkpoint.id = std::stoi(id);  // in canonical form, so it cannot fail
    const std::string name = "CKPT=" + id;
    const bool good = fill(checkpoint_leaves(), name, line, checkpoint);
    if (!checkpoint.enabled) return;
    if (good) check_checkpoint(checkpoint, name);
    resolved_.settings.checkpoints.push_back(std::move(checkpoint));
  }

  /// The store that a checkpoint descriptor names. The first use of the default store creates its
  /// entry.
  void require_store(const CheckpointSettings& checkpoint) {
    const auto& stores = resolved_.settings.stores;
    const auto store = std::find_if(stores.begin(), stores.end(), [&](const StoreSettings& s) {
      return s.path == checkpoint.store;
    });
    if (store != stores.end() && store->enabled) return;
    const ResolvedOption& named = option_of(resolved_, fmt::format("CKPT={} STORE", checkpoint.id));
    if (store != stores.end())
      return note(
          "{}={} ({}) names a store that has ENABLED=0; enable the store or set ENABLED=0 for "
          "CKPT={}",
          named.key, named.value, named.source, checkpoint.id);
    const ResolvedOption& base = option_of(resolved_, "SCR_CACHE_BASE");
    if (checkpoint.store == base.value)
      return add_store(checkpoint.store, {"default", {}},
                       fmt::format("SCR_CACHE_BASE={} ({})", base.value, base.source));
    note(
        "{}={} ({}): there is no such store; add STORE={} to the configuration file, or name an "
        "existing store",
        named.key, named.value, named.source, named.value);
  }

  ResolvedSettings& resolved_;
  std::vector<std::string>& problems_;
  const bool options_are_good_;
};

}  // namespace

void resolve_descriptors(const Layers& layers, ResolvedSettings& resolved,
                         std::vector<std::string>& problems) {
  Resolver resolver(resolved, problems);
  const Descriptors& groups = descriptors_of(layers, "GROUPS");
  if (!groups.empty()) resolver.groups(groups);
  for (const char* key : {"CACHEDIR", "CNTLDIR"})
    resolver.folders(key, descriptors_of(layers, key));
  resolver.checkpoints(descriptors_of(layers, "CKPT"));
  resolver.stores(descriptors_of(layers, "STORE"));
}

}  // namespace cairn
