#include "recovery/remains.hpp"

#include <algorithm>
#include <map>

namespace cairn {
namespace {

void add(Remains& remains, HeldDataset&& held) {
  remains.number = held.number;
  for (HeldPart& part : held.parts) {
    for (const auto* records : {&part.own, &part.kept})
      for (const HeldRecord& record : *records) {
        remains.ranks = std::max(remains.ranks, record.record.dataset.ranks);
        remains.name = record.record.dataset.name;
      }
    remains.parts.push_back(std::move(part));
  }
}

}  // namespace

Result<std::vector<Remains>> find_remains(Files& files, const std::vector<std::string>& roots,
                                          RecordDetail detail,
                                          std::vector<std::string>* unreadable) {
  std::map<Uuid, Remains> found;
  const auto read = [&](const std::string& root) -> Result<Catalog> {
    CAIRN_ASSIGN(const Store store, Store::at(files, root));
    return read_catalog(
        files, {store}, [](std::size_t, int) { return true; }, EmptyFolders::kept, detail,
        unreadable);
  };
  for (const std::string& root : roots) {
    auto catalog = read(root);
    if (!catalog && unreadable == nullptr) return tl::unexpected(std::move(catalog).error());
    if (!catalog) {
      unreadable->push_back(catalog.error().text);
      continue;
    }
    for (auto& [uuid, held] : *catalog) {
      found[uuid].uuid = uuid;
      add(found[uuid], std::move(held));
    }
  }
  std::vector<Remains> newest_first;
  for (auto entry = found.rbegin(); entry != found.rend(); ++entry)
    newest_first.push_back(std::move(entry->second));
  return newest_first;
}

Status remove_remains(Files& files, const Remains& remains, const std::vector<RankFolder>& made) {
  std::set<std::string> paths;
  for (const HeldPart& part : remains.parts) paths.insert(part.folder.path);
  for (const RankFolder& each : made) paths.insert(each.path);
  for (const std::string& path : paths) {
    CAIRN_ASSIGN(Store store, Store::at(files, folder_of(folder_of(path))));
    CAIRN_TRY(store.remove({path}));
  }
  return {};
}

std::set<int> ranks_with_record(const Remains& remains) {
  std::set<int> ranks;
  for (const HeldPart& part : remains.parts)
    if (part.has_record()) ranks.insert(part.owner);
  return ranks;
}

Summary summarise(const Remains& remains) {
  return summarise(remains.uuid, {0, remains.number, remains.parts});
}

bool may_be_committed(const Remains& remains) {
  return judge(summarise(remains), remains.ranks, true) != CacheState::incomplete;
}

}  // namespace cairn
