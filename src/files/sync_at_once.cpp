#include "files/sync_at_once.hpp"

#include <set>

namespace cairn {

Result<SyncAtOnce> SyncAtOnce::of(Files& files, const std::vector<std::string>& paths) {
  constexpr std::size_t many_files = 64;
  SyncAtOnce at_once;
  if (paths.size() < many_files) return at_once;
  std::set<std::string> directories;
  std::set<std::uint64_t> known;
  for (const std::string& path : paths) {
    std::string directory = folder_of(path);
    if (!directories.insert(directory).second) continue;
    const auto space = files.space(directory);
    if (!space && space.error().code == Code::untrusted) return SyncAtOnce();  // a link: one by one
    CAIRN_TRY(space);
    if (!known.insert(space->file_system).second) continue;
    CAIRN_ASSIGN(auto opened, files.open_file_system(directory));
    if (opened == nullptr) return SyncAtOnce();
    at_once.systems_.push_back(std::move(opened));
  }
  return at_once;
}

Status SyncAtOnce::sync() const {
  for (const auto& system : systems_) CAIRN_TRY(system->sync());
  return {};
}

}  // namespace cairn
