#include "recovery/dead_caches.hpp"

#include <algorithm>

namespace cairn {
namespace {

Status collect(Files& files, const std::string& folder, std::vector<std::string>& caches,
               const Log& log) {
  CAIRN_ASSIGN(const std::vector<std::string> names, files.list(folder));
  const auto is_folder = [&](const std::string& name) {
    const auto info = files.info(folder + "/" + name);
    return info && info->kind == Kind::folder;
  };
  const auto is_dataset = [&](const std::string& name) {
    return name.starts_with("dataset.") && is_folder(name);
  };
  if (std::any_of(names.begin(), names.end(), is_dataset)) {
    caches.push_back(folder);
    return {};
  }
  for (const std::string& name : names)
    if (is_folder(name))
      if (const Status found = collect(files, folder + "/" + name, caches, log); !found)
        log.warning("{}; it is passed over", found.error().text);
  return {};
}

}  // namespace

Result<std::vector<std::string>> find_caches(Files& files, const std::string& folder,
                                             const Log& log) {
  std::vector<std::string> caches;
  CAIRN_TRY(collect(files, folder, caches, log));
  return caches;
}

Result<std::vector<std::string>> caches_of_job(Files& files, const Settings& settings) {
  std::vector<std::string> caches;
  for (const StoreSettings& store : settings.stores) {
    if (!store.enabled) continue;
    const std::string root =
        fmt::format("{}/{}/cairn.{}", expand_node(store.path, settings.node_name), settings.user,
                    settings.job_id);
    const auto info = files.info(root);
    if (!info && info.error().code == Code::not_found) continue;
    CAIRN_TRY(info);
    if (info->kind != Kind::folder || info->owner != files.effective_user())
      return fail(Code::untrusted, "{} is not a folder of user {}: it is not looked into", root,
                  settings.user);
    if (std::find(caches.begin(), caches.end(), root) == caches.end()) caches.push_back(root);
  }
  return caches;
}

Result<CacheLocks> lock_caches(Files& files, const std::vector<std::string>& caches) {
  CacheLocks locks;
  for (const std::string& cache : caches) {
    const std::string path = cache + "/lock";
    if (!files.info(path)) continue;
    auto lock = files.lock(path);
    if (!lock && lock.error().code == Code::busy)
      return fail(Code::busy, "a job is running with the cache {} (it holds {}): wait for its end",
                  cache, path);
    if (!lock) return tl::unexpected(std::move(lock).error());
    locks.push_back(*std::move(lock));
  }
  return locks;
}

}  // namespace cairn
