#include "cache/catalog.hpp"

#include <charconv>
#include <optional>

#include "records/wire.hpp"

namespace cairn {
namespace {

template <class Integer>
std::optional<Integer> parse_number(std::string_view text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || text[0] == '-')
    return std::nullopt;
  return value;
}

struct DatasetName {
  std::uint64_t number;
  Uuid uuid;
};

/// dataset.NUMBER.UUID
std::optional<DatasetName> parse_dataset_name(std::string_view name) {
  constexpr std::string_view prefix = "dataset.";
  if (name.substr(0, prefix.size()) != prefix) return std::nullopt;
  name.remove_prefix(prefix.size());
  const auto dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto number = parse_number<std::uint64_t>(name.substr(0, dot));
  const auto uuid = parse_uuid(name.substr(dot + 1));
  if (!number || !uuid) return std::nullopt;
  return DatasetName{*number, *uuid};
}

/// rank.N, spare.N, fetch.N
std::optional<int> parse_rank_name(std::string_view prefix, std::string_view name) {
  if (name.substr(0, prefix.size()) != prefix) return std::nullopt;
  return parse_number<int>(name.substr(prefix.size()));
}

void add_records(HeldPart& part, Bytes content, bool committed) {
  bool own_found = false;
  for (const Envelope& envelope : find_envelopes(content)) {
    if (envelope.type != RecordType::rank) continue;
    auto record = decode_rank_record(envelope.payload, envelope.version);
    if (!record) {
      part.newer = part.newer || record.error().code == Code::newer_format;
      continue;
    }
    const bool own = record->rank == part.owner;
    own_found = own_found || own;
    (own ? part.own : part.kept)
        .push_back(
            {*std::move(record), Blob(envelope.whole.begin(), envelope.whole.end()), committed});
  }
  if (!own_found && committed) part.damaged = true;
}

/// The name is one of Cairn's, but it is a file or a link, which Cairn never makes there.
bool is_other_than_folder(Files& files, const std::string& path) {
  const auto info = files.info(path);
  return info && info->kind != Kind::folder;
}

HeldRecord outline_of(const HeldRecord& whole) {
  HeldRecord outline;
  outline.committed = whole.committed;
  outline.record.dataset = whole.record.dataset;
  outline.record.rank = whole.record.rank;
  outline.record.exposure = whole.record.exposure;
  const Encoding& encoding = whole.record.encoding;
  outline.record.encoding = {encoding.generation,
                             encoding.scheme,
                             encoding.failures,
                             encoding.hop,
                             encoding.block_bytes,
                             encoding.members,
                             {},
                             {}};
  return outline;
}

void reduce_to_outline(HeldPart& part) {
  for (auto* records : {&part.own, &part.kept}) {
    std::vector<HeldRecord> outlines;
    outlines.reserve(records->size());
    for (const HeldRecord& held : *records) outlines.push_back(outline_of(held));
    records->swap(outlines);
  }
}

Status read_dataset(Files& files, const std::string& folder, const LooksAfter& looks_after,
                    EmptyFolders empty, RecordDetail detail, const Uuid& uuid,
                    HeldDataset& dataset) {
  if (is_other_than_folder(files, folder)) return {};
  CAIRN_ASSIGN(const std::vector<std::string> names, files.list(folder));
  if (names.empty()) return empty == EmptyFolders::removed ? files.remove_folder(folder) : Status{};
  for (const std::string& name : names) {
    const auto owner = parse_rank_name("rank.", name);
    const std::string path = folder + "/" + name;
    if (!owner || !looks_after(dataset.store, *owner) || is_other_than_folder(files, path))
      continue;
    dataset.parts.push_back(read_part(files, {path}, *owner, uuid));
    if (detail == RecordDetail::outline) reduce_to_outline(dataset.parts.back());
  }
  return {};
}

}  // namespace

std::optional<int> owner_of(const RankFolder& folder) {
  return parse_rank_name("rank.", name_of_path(folder.path));
}

const HeldRecord* HeldDataset::own_record(int owner, std::uint64_t generation) const {
  for (const HeldPart& part : parts)
    for (const HeldRecord& held : part.own)
      if (part.owner == owner && held.record.encoding.generation == generation) return &held;
  return nullptr;
}

bool HeldDataset::has_unread() const {
  return std::any_of(parts.begin(), parts.end(), [](const HeldPart& part) { return part.unread; });
}

HeldPart read_part(Files& files, const RankFolder& folder, int owner) {
  HeldPart part;
  part.folder = folder;
  part.owner = owner;
  const auto committed = read_file(files, folder.record(), largest_record_bytes);
  if (committed)
    add_records(part, *committed, true);
  else if (committed.error().code != Code::not_found)
    part.damaged = part.unread = true;
  const auto prepared = read_file(files, folder.prepared(), largest_record_bytes);
  if (prepared)
    add_records(part, *prepared, false);
  else if (prepared.error().code != Code::not_found)
    part.unread = true;
  return part;
}

HeldPart read_part(Files& files, const RankFolder& folder, int owner, const Uuid& dataset) {
  HeldPart part = read_part(files, folder, owner);
  const auto strange = [&](const HeldRecord& held) { return held.record.dataset.uuid != dataset; };
  if (std::erase_if(part.own, strange) > 0) part.damaged = true;
  std::erase_if(part.kept, strange);
  return part;
}

Result<Catalog> read_catalog(Files& files, const std::vector<Store>& stores,
                             const LooksAfter& looks_after, EmptyFolders empty, RecordDetail detail,
                             std::vector<std::string>* unreadable) {
  Catalog catalog;
  for (std::size_t store = 0; store < stores.size(); ++store) {
    CAIRN_ASSIGN(const std::vector<std::string> names, files.list(stores[store].root()));
    for (const std::string& name : names) {
      const auto parsed = parse_dataset_name(name);
      if (!parsed) continue;
      HeldDataset dataset{store, parsed->number, {}};
      const std::string folder = stores[store].root() + "/" + name;
      const Status read =
          read_dataset(files, folder, looks_after, empty, detail, parsed->uuid, dataset);
      // Another rank may have removed it just now.
      if (!read && read.error().code != Code::not_found) {
        if (unreadable == nullptr) return tl::unexpected(read.error());
        unreadable->push_back(read.error().text);
      }
      if (!dataset.parts.empty()) catalog.emplace(parsed->uuid, std::move(dataset));
    }
  }
  return catalog;
}

Status drop_leftovers(Files& files, const std::vector<Store>& stores,
                      const LooksAfter& looks_after) {
  for (std::size_t store = 0; store < stores.size(); ++store) {
    CAIRN_ASSIGN(const std::vector<std::string> names, files.list(stores[store].root()));
    for (const std::string& name : names) {
      for (const std::string_view kind : {"spare.", "fetch."}) {
        const std::optional<int> owner = parse_rank_name(kind, name);
        if (owner && looks_after(store, *owner))
          CAIRN_TRY(remove_all(files, stores[store].root() + "/" + name));
      }
    }
  }
  return {};
}

}  // namespace cairn
