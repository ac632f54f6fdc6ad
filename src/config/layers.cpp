#include "config/layers.hpp"

#include <utility>

#include "config/options.hpp"

namespace cairn {
namespace {

enum class Place { environment, file, app };

struct Layer {
  Place place;
  std::string name;
  std::vector<Entry> entries;

  std::string source(const Entry& entry) const {
    return entry.line > 0 ? fmt::format("{}:{}", name, entry.line) : name;
  }
};

std::vector<Layer> highest_first(const SettingSources& sources) {
  Layer environment{Place::environment, "environment", {}};
  for (const auto& [key, value] : sources.process.environment)
    environment.entries.push_back({key, value, {}, 0});
  return {std::move(environment),
          {Place::file, sources.user_file.name, sources.user_file.entries},
          {Place::app, "SCR_Config", sources.app_entries},
          {Place::file, sources.system_file.name, sources.system_file.entries}};
}

void warn_unknown(Layers& layers, const Layer& layer, const Entry& entry) {
  const bool ours = entry.key.starts_with("SCR_") || entry.key.starts_with("CAIRN_");
  if (layer.place == Place::environment && !ours) return;  // USER, SLURM_JOB_ID and the like
  layers.warnings.push_back(
      fmt::format("unknown setting {} in {} is ignored{}", entry.key,
                  layer.place == Place::environment ? "the environment" : layer.source(entry),
                  did_you_mean(entry.key, known_keys())));
}

Status add_value(Layers& layers, const Layer& layer, const Entry& entry, const Option& option) {
  if (!entry.children.empty())
    return fail(Code::bad_setting,
                "{}={} ({}) is not a descriptor, so {} cannot follow it; write each setting on a "
                "line of its own",
                entry.key, entry.value, layer.source(entry), entry.children[0].key);
  const bool misplaced = (layer.place == Place::app && option.flags.not_by_app) ||
                         (layer.place == Place::file && option.flags.not_in_files);
  if (misplaced)
    layers.warnings.push_back(fmt::format(
        "{} is ignored, because it cannot be set in {}; set it in the environment{}", entry.key,
        layer.source(entry), option.flags.not_in_files ? "" : " or in a file"));
  else if (!entry.value.empty())
    layers.values.emplace(entry.key, Sourced{entry.value, layer.source(entry)});
  return {};
}

Status add_descriptor(Layers& layers, const Layer& layer, const Entry& entry,
                      const DescriptorKey& kind) {
  const std::string source = layer.source(entry);
  if (kind.unused) {
    layers.notes.push_back(fmt::format(
        "no effect in Cairn, which reads STORE lines instead: {} in {}", entry.key, source));
    return {};
  }
  CAIRN_ASSIGN(const Value name, read_value(kind.rule, entry.key, {entry.value, source}));
  Descriptor& descriptor = layers.descriptors[entry.key][name.text];
  if (descriptor.source.empty()) descriptor.source = source;
  for (auto child = entry.children.rbegin(); child != entry.children.rend(); ++child)
    if (!child->value.empty()) descriptor.leaves.emplace(child->key, Sourced{child->value, source});
  return {};
}

Status add_entry(Layers& layers, const Layer& layer, const Entry& entry) {
  if (const Option* option = find_option(entry.key))
    return add_value(layers, layer, entry, *option);
  const DescriptorKey* kind = find_descriptor_key(entry.key);
  if (kind && layer.place != Place::environment) return add_descriptor(layers, layer, entry, *kind);
  warn_unknown(layers, layer, entry);
  return {};
}

}  // namespace

Layers read_layers(const SettingSources& sources) {
  Layers layers;
  for (const SettingsFile* file : {&sources.user_file, &sources.system_file})
    layers.problems.insert(layers.problems.end(), file->problems.begin(), file->problems.end());
  for (const Layer& layer : highest_first(sources))
    for (auto entry = layer.entries.rbegin(); entry != layer.entries.rend(); ++entry)
      if (const Status added = add_entry(layers, layer, *entry); !added)
        layers.problems.push_back(added.error().text);
  return layers;
}

}  // namespace cairn
