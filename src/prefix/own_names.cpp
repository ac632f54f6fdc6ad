#include "prefix/own_names.hpp"

#include "files/modes.hpp"

namespace cairn {

Status make_folder_below(Files& files, const std::string& prefix, const std::string& path) {
  if (path.size() <= prefix.size()) return {};
  CAIRN_TRY(make_folder_below(files, prefix, folder_of(path)));
  return files.make_folder(path, directory_for_all);
}

Status make_folders(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  for (const std::string& each : folders_above(folder, record))
    if (each != folder.prefix) CAIRN_TRY(files.make_folder(each, directory_for_all));
  return {};
}

std::set<std::string> folders_of(const PrefixFolder& folder, const RankRecord& record) {
  std::set<std::string> folders;
  for (const FileEntry& file : record.files) folders.insert(folder_of(folder.file(file)));
  return folders;
}

std::set<std::string> folders_above(const PrefixFolder& folder, const RankRecord& record) {
  std::set<std::string> folders;
  for (const FileEntry& file : record.files)
    for (std::string up = folder_of(folder.file(file));
         up.size() >= folder.prefix.size() && folders.insert(up).second; up = folder_of(up))
      continue;
  return folders;
}

Result<std::set<std::string>> folders_led_out(Files& files, const PrefixFolder& folder,
                                              const RankRecord& record) {
  std::set<std::string> all;
  for (const std::string& each : folders_above(folder, record)) {  // parents come first
    bool led_out = all.contains(folder_of(each));
    if (!led_out && each != folder.prefix) {
      const auto info = files.info(each);
      if (!info && info.error().code != Code::not_found) return tl::unexpected(info.error());
      led_out = info && info->kind != Kind::folder;
    }
    if (led_out) all.insert(each);
  }
  return all;
}

Status refuse_led_out(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  CAIRN_ASSIGN(const auto led_out, folders_led_out(files, folder, record));
  if (led_out.empty()) return {};
  return fail(Code::corrupt,
              "{} is a link, or not a directory, and Cairn follows no links here: put the "
              "directory of {} back in its place",
              *led_out.begin(), record.dataset.name);
}

Status sync_folders(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  for (const std::string& each : folders_above(folder, record))
    CAIRN_TRY(sync_folder_in(files, folder, each));
  return {};
}

Status sync_folder_in(Files& files, const PrefixFolder& folder, const std::string& path) {
  Status synced = files.sync_folder(path);
  const bool is_link = !synced && synced.error().code == Code::untrusted && path == folder.prefix;
  return is_link ? files.sync_folder(path + "/.") : synced;
}

}  // namespace cairn
