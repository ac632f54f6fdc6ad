#include "recovery/dead_caches.hpp"

#include <algorithm>

#include "files/lock_patiently.hpp"

namespace cairn {
namespace {

bool is_folder(Files& files, const std::string& path) {
  const auto info = files.info(path);
  return info && info->kind == Kind::folder;
}

/// `path` for every node whose name fits in the place of the first %n.
std::vector<std::string> for_every_node(Files& files, const std::string& path) {
  constexpr std::string_view mark = "%n";
  const auto at = path.find(mark);
  if (at == std::string::npos) return {path};
  const auto begin = path.rfind('/', at) + 1;
  const auto end = std::min(path.find('/', at), path.size());
  const std::string before = path.substr(begin, at - begin);
  const std::string after = path.substr(at + mark.size(), end - at - mark.size());
  std::vector<std::string> paths;
  const auto names = files.list(begin > 1 ? path.substr(0, begin - 1) : "/");
  for (const std::string& name : names.value_or(std::vector<std::string>{}))
    if (name.size() > before.size() + after.size() && name.starts_with(before) &&
        name.ends_with(after))
      paths.push_back(expand_node(
          path, name.substr(before.size(), name.size() - before.size() - after.size())));
  return paths;
}

}  // namespace

Status find_caches(Files& files, const std::string& folder, std::vector<std::string>& caches,
                   const Log& log) {
  CAIRN_ASSIGN(const std::vector<std::string> names, files.list(folder));
  const auto is_dataset = [&](const std::string& name) {
    return name.starts_with("dataset.") && is_folder(files, folder + "/" + name);
  };
  if (std::any_of(names.begin(), names.end(), is_dataset)) {
    caches.push_back(folder);
    return {};
  }
  for (const std::string& name : names)
    if (name != ".cairn" && is_folder(files, folder + "/" + name))
      if (const Status found = find_caches(files, folder + "/" + name, caches, log); !found)
        log.warning("{}; it is passed over", found.error().text);
  return {};
}

std::vector<std::string> caches_on_node(Files& files, const Settings& settings,
                                        std::vector<std::string>& unreadable) {
  std::vector<std::string> caches;
  for (const StoreSettings& store : settings.stores) {
    if (!store.enabled) continue;
    const std::string root =
        fmt::format("{}/{}/cairn.{}", expand_node(store.path, settings.node_name), settings.user,
                    settings.job_id);
    const auto info = files.info(root);
    if (!info && info.error().code == Code::not_found) continue;
    if (!info)
      unreadable.push_back(info.error().text);
    else if (info->kind != Kind::folder || info->owner != files.effective_user())
      unreadable.push_back(
          fmt::format("{} is not a folder of user {}: it is not looked into", root, settings.user));
    else if (std::find(caches.begin(), caches.end(), root) == caches.end())
      caches.push_back(root);
  }
  return caches;
}

std::vector<std::string> caches_of_job(Files& files, const Settings& settings) {
  std::vector<std::string> caches;
  for (const StoreSettings& store : settings.stores) {
    if (!store.enabled) continue;
    for (const std::string& base : for_every_node(files, store.path)) {
      const std::string cache = fmt::format("{}/{}/cairn.{}", base, settings.user, settings.job_id);
      const bool known = std::find(caches.begin(), caches.end(), cache) != caches.end();
      if (!known && is_folder(files, cache)) caches.push_back(cache);
    }
  }
  return caches;
}

Result<CacheLocks> lock_caches(Files& files, Clock& clock, const std::vector<std::string>& caches) {
  const std::int64_t give_up_us = clock.steady_us() + lock_patience_us;
  CacheLocks locks;
  for (const std::string& cache : caches) {
    const std::string path = cache + "/lock";
    if (!files.info(path)) continue;
    auto lock = lock_patiently(files, clock, path, give_up_us);
    if (!lock && lock.error().code == Code::busy)
      return fail(
          Code::busy,
          "a job is running with the cache {}, or a command works at it (somebody holds {}): "
          "wait for its end",
          cache, path);
    if (lock) locks.push_back(*std::move(lock));  // else there are no locks on this file system
  }
  return locks;
}

}  // namespace cairn
