#include "prefix/strays.hpp"

namespace cairn {
namespace {

/// In one folder; those in it are added to `unseen`.
Result<std::uint64_t> remove_from(Files& files, const std::string& folder, const std::string& start,
                                  std::vector<std::string>& unseen) {
  std::uint64_t removed = 0;
  CAIRN_ASSIGN(const auto names, files.list(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (name.starts_with(start)) {
      CAIRN_TRY(files.remove_file(path));
      ++removed;
    } else if (const auto info = files.info(path); info && info->kind == Kind::folder) {
      unseen.push_back(path);
    }
  }
  // They must not reappear after a crash, when no record has their places any more.
  if (removed > 0) CAIRN_TRY(files.sync_folder(folder));
  return removed;
}

}  // namespace

Result<std::uint64_t> remove_strays(Files& files, const PrefixFolder& folder,
                                    const std::string& pending) {
  const auto uuid = parse_uuid(pending.substr(pending.rfind('.') + 1));
  if (!uuid) return fail(Code::bad_argument, "{} is not the directory of a dataset", pending);
  const std::string start = DatasetFolder::staged_start(*uuid);
  std::uint64_t removed = 0;
  std::vector<std::string> unseen = {folder.prefix};
  while (!unseen.empty()) {
    const std::string next = std::move(unseen.back());
    unseen.pop_back();
    if (next == folder.root()) continue;
    CAIRN_ASSIGN(const std::uint64_t here, remove_from(files, next, start, unseen));
    removed += here;
  }
  CAIRN_TRY(remove_all(files, pending));
  return removed;
}

}  // namespace cairn
