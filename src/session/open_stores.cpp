#include "session/open_stores.hpp"

#include <algorithm>
#include <set>

#include "cache/private_folder.hpp"
#include "files/lock_patiently.hpp"
#include "session/levels.hpp"
#include "session/shared_warnings.hpp"
#include "session/sharing.hpp"

namespace cairn {
namespace {

constexpr std::int64_t run_patience_us = 10'000'000;
constexpr std::string_view mark_prefix = "seen.";

/// The same on all ranks: what is known of a dataset names its store by number.
Result<std::vector<Store>> open_all(Communicator& comm, Files& files, const Settings& settings,
                                    PrefixId id, const Log& log) {
  std::vector<Result<Store>> opened;
  std::vector<std::int64_t> fails;
  Status used;
  Status spare;
  for (const StoreSettings& store : settings.stores) {
    if (!store.enabled) continue;
    opened.push_back(Store::open(files, store, settings, id));
    fails.push_back(opened.back() ? 0 : 1);
    if (opened.back()) continue;
    const Error& error = opened.back().error();
    if (!is_used(store, settings))
      spare = fail(error.code, "{} ({}): {}", store.path, store.origin, error.text);
    else if (used)
      used = tl::unexpected(error);
  }
  CAIRN_TRY(agree(comm, std::move(used)));
  if (spare = agree(comm, std::move(spare)); !spare) {
    comm.allreduce(fails, Reduce::max);
    if (comm.rank() == 0)
      log.warning("no checkpoint uses the store {}; the run leaves it out", spare.error().text);
  }
  std::vector<Store> stores;
  for (std::size_t i = 0; i < opened.size(); ++i)
    if (fails[i] == 0) stores.push_back(*std::move(opened[i]));
  return stores;
}

/// Those of the beginning of the run, in their order: it stays decided which are left out.
Result<std::vector<Store>> open_again(Communicator& comm, Files& files, const Settings& settings,
                                      PrefixId id, const std::vector<Store>& before) {
  std::vector<Store> stores;
  Status opened;
  for (const Store& store : before) {
    auto again = Store::open(files, store.settings(), settings, id);
    if (again)
      stores.push_back(*std::move(again));
    else if (opened)
      opened = tl::unexpected(again.error());
  }
  CAIRN_TRY(agree(comm, std::move(opened)));
  return stores;
}

std::string lock_in(const std::string& folder) { return folder + "/lock"; }

Result<std::unique_ptr<FileLock>> lock_folder(Files& files, Clock& clock, const std::string& folder,
                                              const Settings& settings) {
  auto lock = lock_patiently(files, clock, lock_in(folder), clock.steady_us() + run_patience_us);
  if (lock || lock.error().code != Code::busy) return lock;
  return fail(
      Code::busy,
      "node {}: another run of job {} is alive (it holds {}/lock). Wait until it has ended, "
      "or set SCR_PREFIX to another directory. If several nodes see that directory, add %n to "
      "its path",
      settings.node_name, settings.job_id, folder);
}

/// A folder may have several names, and a file that was locked may have been removed: what is held
/// is known by the file itself.
Status take_lock(Files& files, Clock& clock, const std::string& folder, const Settings& settings,
                 const PrefixIdentity& identity, std::vector<std::string>& warnings, Locks& held) {
  const std::string path = lock_in(folder);
  const auto there = files.info(path);
  if (!there && there.error().code != Code::not_found) return tl::unexpected(there.error());
  if (there && held.contains(there->id)) return {};
  CAIRN_ASSIGN(auto lock, lock_folder(files, clock, folder, settings));
  CAIRN_ASSIGN(const FileInfo locked, files.info(path));
  held[locked.id] = {folder, std::move(lock)};
  // Not an error: the job can work, and as long as the prefix directory has its id the name of the
  // folder is enough to find it.
  if (const Status noted = note_prefix(files, folder, identity.note(settings.prefix)); !noted)
    warnings.push_back(fmt::format(
        "{}. So the cache {} has no note of its prefix directory {}, and a run that cannot read "
        "the id of that directory does not find the cache",
        noted.error().text, folder, settings.prefix));
  return {};
}

/// The lowest of the ranks that see what this rank sees in a store.
Result<int> leader_of(const Communicator& comm, const Placement& placement, const Store& store,
                      const Settings& settings) {
  CAIRN_ASSIGN(const std::vector<int> sharing,
               ranks_sharing(store, comm.rank(), placement, settings));
  return sharing.front();
}

/// The folders whose locks this rank takes before anything else: one rank for each node, and one
/// for each store that all share.
Result<std::set<std::string>> first_locks(const Communicator& comm, Files& files,
                                          const Placement& placement,
                                          const std::vector<Store>& stores,
                                          const Settings& settings, PrefixId id) {
  std::set<std::string> folders;
  if (placement.beside(comm.rank()).front() == comm.rank()) {
    const std::string base = expand_node(settings.control_base, settings.node_name);
    CAIRN_ASSIGN(std::string folder, claim_private_folder(files, base, true, settings.user,
                                                          job_folder_name(settings, id)));
    folders.insert(std::move(folder));
  }
  if (comm.rank() == 0)
    for (const Store& store : stores)
      if (store.shared()) folders.insert(store.root());
  return folders;
}

/// And those of the other stores, so that a process that finds a cache can find out whether its job
/// is alive.
Result<std::set<std::string>> further_locks(const Communicator& comm, const Placement& placement,
                                            const std::vector<Store>& stores,
                                            const Settings& settings) {
  std::set<std::string> folders;
  for (const Store& store : stores) {
    CAIRN_ASSIGN(const int leader, leader_of(comm, placement, store, settings));
    if (leader == comm.rank()) folders.insert(store.root());
  }
  return folders;
}

/// Every group of ranks that has a store to itself leaves a mark in it, and looks for those of
/// others.
class PrivacyCheck {
 public:
  PrivacyCheck(Communicator& comm, Files& files, const Placement& placement,
               const std::vector<Store>& stores, const Settings& settings, std::int64_t run)
      : comm_(comm),
        files_(files),
        placement_(placement),
        stores_(stores),
        settings_(settings),
        run_(run) {}

  Status run() {
    CAIRN_TRY(agree(comm_, for_each_private([this](const Store& store, std::uint64_t group) {
                      return leave_mark(store, group);
                    })));
    Status alone = agree(comm_, for_each_private([this](const Store& store, std::uint64_t group) {
                           return find_others(store, group);
                         }));
    CAIRN_TRY(agree(comm_, for_each_private([this](const Store& store, std::uint64_t group) {
                      return files_.remove_file(mark(store, group));
                    })));
    return alone;
  }

 private:
  /// On the lowest rank of each group.
  template <class Action>
  Status for_each_private(Action action) {
    for (const Store& store : stores_) {
      if (store.shared()) continue;
      CAIRN_ASSIGN(const int leader, leader_of(comm_, placement_, store, settings_));
      if (leader == comm_.rank()) CAIRN_TRY(action(store, static_cast<std::uint64_t>(leader)));
    }
    return {};
  }

  std::string mark_of_run() const { return fmt::format("{}{:016x}.", mark_prefix, run_); }

  std::string mark(const Store& store, std::uint64_t group) const {
    return fmt::format("{}/{}{:016x}.{}", store.root(), mark_of_run(), group, settings_.node_name);
  }

  Status leave_mark(const Store& store, std::uint64_t group) {
    CAIRN_TRY(files_.create(mark(store, group), 0600));
    return {};
  }

  Status find_others(const Store& store, std::uint64_t group) {
    CAIRN_ASSIGN(const auto names, files_.list(store.root()));
    const std::string own = name_of_path(mark(store, group));
    for (const std::string& name : names) {
      if (!name.starts_with(mark_prefix) || name == own) continue;
      if (name.starts_with(mark_of_run()))
        return fail(Code::bad_setting,
                    "nodes {} and {} share the directory {}, but each node needs its own: add %n "
                    "to its path, or add a line STORE=... GROUP=WORLD for it",
                    settings_.node_name, name.substr(mark_of_run().size() + 17), store.root());
      CAIRN_TRY(remove_all(files_, store.root() + "/" + name));  // of a run that died here
    }
    return {};
  }

  Communicator& comm_;
  Files& files_;
  const Placement& placement_;
  const std::vector<Store>& stores_;
  const Settings& settings_;
  const std::int64_t run_;
};

/// What follows from nothing is added to `warnings`.
Status lock_stores(Communicator& comm, Files& files, Clock& clock, const Placement& placement,
                   const Settings& settings, const PrefixIdentity& identity,
                   const std::vector<Store>& stores, std::vector<std::string>& warnings,
                   Locks& locks) {
  const auto lock_all = [&](const Result<std::set<std::string>>& folders) -> Status {
    if (!folders) return tl::unexpected(folders.error());
    for (const std::string& folder : *folders)
      CAIRN_TRY(take_lock(files, clock, folder, settings, identity, warnings, locks));
    return {};
  };
  CAIRN_TRY(agree(
      comm, lock_all(first_locks(comm, files, placement, stores, settings, identity.folder))));
  auto run = static_cast<std::int64_t>(clock.random() >> 1);
  comm.bcast(mutable_bytes_of(run), 0);
  // Before the further locks: nodes that see one directory by mistake get that error, and do not
  // wait.
  CAIRN_TRY(PrivacyCheck(comm, files, placement, stores, settings, run).run());
  return agree(comm, lock_all(further_locks(comm, placement, stores, settings)));
}

}  // namespace

Status open_stores(Communicator& comm, Files& files, Clock& clock, const Placement& placement,
                   const Settings& settings, const PrefixIdentity& identity, const Log& log,
                   std::vector<Store>& stores, Locks& locks) {
  CAIRN_ASSIGN(stores, stores.empty() ? open_all(comm, files, settings, identity.folder, log)
                                      : open_again(comm, files, settings, identity.folder, stores));

  std::vector<std::string> warnings;
  const Status locked =
      lock_stores(comm, files, clock, placement, settings, identity, stores, warnings, locks);
  warn_of_nodes(comm, log, settings.node_name, warnings);
  return locked;
}

void note_prefix(Communicator& comm, Files& files, const Locks& locks, const Settings& settings,
                 const PrefixIdentity& identity, const Log& log) {
  std::vector<std::string> warnings;
  for (const auto& [file, held] : locks)
    if (const Status noted = note_prefix(files, held.folder, identity.note(settings.prefix));
        !noted)
      warnings.push_back(noted.error().text);
  warn_of_nodes(comm, log, settings.node_name, warnings);
}

}  // namespace cairn
