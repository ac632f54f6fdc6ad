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

/// In the order of the bases, each searched once.
JobCaches caches_in(Files& files, const std::vector<std::string>& bases, const Settings& settings) {
  JobFolders all;
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const auto end = bases.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(bases.begin(), end, bases[i]) == end)
      find_job_folders(files, bases[i], settings, all);
  }
  const std::string& prefix = settings.prefix;
  JobCaches caches;
  caches.recorded = with_copy_seen(files, read_prefix_id(files, prefix), prefix, all.found);
  const JobFolder* chosen = choose_job_folder(caches.recorded, prefix, all.found);
  for (const JobFolder& folder : all.found)
    if (chosen != nullptr && folder.name_id == chosen->name_id) caches.used.push_back(folder.path);
  caches.left =
      texts_of_left(caches.recorded, prefix, left_by_another(caches.recorded, prefix, all.found));
  caches.folders = std::move(all.found);
  caches.unreadable = std::move(all.unreadable);
  caches.ignored = std::move(all.ignored);
  return caches;
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
        log.warning("{}; this directory is skipped", found.error().text);
  return {};
}

JobCaches caches_on_node(Files& files, const Settings& settings) {
  std::vector<std::string> bases;
  for (const StoreSettings& store : settings.stores)
    if (store.enabled) bases.push_back(expand_node(store.path, settings.node_name));
  return caches_in(files, bases, settings);
}

JobCaches caches_of_job(Files& files, const Settings& settings) {
  std::vector<std::string> bases;
  for (const StoreSettings& store : settings.stores)
    if (store.enabled)
      for (std::string& base : for_every_node(files, store.path)) bases.push_back(std::move(base));
  return caches_in(files, bases, settings);
}

void warn_of_other_caches(const JobCaches& caches, const Log& log) {
  for (const auto* texts : {&caches.left, &caches.unreadable, &caches.ignored})
    for (const std::string& text : *texts) log.warning("{}", text);
}

Result<CacheLocks> lock_caches(Files& files, Clock& clock, const std::vector<std::string>& caches) {
  const std::int64_t give_up_us = clock.steady_us() + lock_patience_us;
  CacheLocks locks;
  for (const std::string& cache : caches) {
    const std::string path = cache + "/lock";
    if (!files.info(path)) continue;
    auto lock = lock_patiently(files, clock, path, give_up_us);
    if (!lock && lock.error().code == Code::busy)
      return fail(Code::busy,
                  "a job or a command is using the cache {} (it holds the lock {}): wait until it "
                  "has ended",
                  cache, path);
    if (lock) locks.push_back(*std::move(lock));  // else there are no locks on this file system
  }
  return locks;
}

}  // namespace cairn
