#include "prefix/own_names.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t folder_for_all = 0777;  // less the umask

}  // namespace

Status make_folder_below(Files& files, const std::string& prefix, const std::string& path) {
  if (path.size() <= prefix.size()) return {};
  CAIRN_TRY(make_folder_below(files, prefix, folder_of(path)));
  return files.make_folder(path, folder_for_all);
}

std::set<std::string> folders_of(const PrefixFolder& folder, const RankRecord& record) {
  std::set<std::string> folders;
  for (const FileEntry& file : record.files) folders.insert(folder_of(folder.file(file)));
  return folders;
}

Status sync_folders(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  std::set<std::string> named;
  for (const std::string& own : folders_of(folder, record))
    for (std::string up = own; up.size() > folder.prefix.size(); up = folder_of(up))
      named.insert(up);
  if (!record.files.empty()) named.insert(folder.prefix);
  for (const std::string& each : named) CAIRN_TRY(files.sync_folder(each));
  return {};
}

}  // namespace cairn
