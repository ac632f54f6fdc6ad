#include "files/sync_at_once.hpp"

#include <set>

namespace cairn {

Result<SyncAtOnce> SyncAtOnce::of(Files& files, const std::vector<std::string>& paths) {
  constexpr std::size_t many_files = 64;
  SyncAtOnce at_once(files);
  if (paths.size() < many_files) return at_once;
  std::set<std::string> folders;
  std::set<std::uint64_t> known;
  for (const std::string& path : paths) {
    std::string folder = folder_of(path);
    if (!folders.insert(folder).second) continue;
    CAIRN_ASSIGN(const Space space, files.space(folder));
    if (!known.insert(space.file_system).second) continue;
    CAIRN_ASSIGN(const bool promised, files.syncs_at_once(folder));
    if (!promised) return SyncAtOnce(files);
    at_once.places_.push_back(std::move(folder));
  }
  return at_once;
}

Status SyncAtOnce::sync() const {
  for (const std::string& place : places_) CAIRN_TRY(files_->sync_file_system(place));
  return {};
}

Status sync_files(Files& files, const std::vector<std::string>& paths) {
  CAIRN_ASSIGN(const SyncAtOnce at_once, SyncAtOnce::of(files, paths));
  if (at_once.is_possible()) return at_once.sync();
  for (const std::string& path : paths) {
    CAIRN_ASSIGN(const auto file, files.open(path));
    CAIRN_TRY(file->sync());
  }
  return {};
}

}  // namespace cairn
