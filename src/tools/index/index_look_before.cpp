#include "prefix/contents.hpp"
#include "prefix/scr_index.hpp"
#include "prefix/unfinished.hpp"
#include "scavenge/publish.hpp"
#include "tools/index/index_actions.hpp"
#include "tools/index/index_found.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

using Action = IndexCommand::Action;

Result<bool> is_in(const Listing& listing, const IndexCommand& command) {
  CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(listing, command.name));
  return found != nullptr;
}

/// True for a dataset that was scavenged, or that an earlier command has begun to delete.
Result<bool> is_to_be_removed(const IndexCommand& command, Files& files,
                              const PrefixFolder& folder) {
  CAIRN_ASSIGN(const auto saved, find_saved(files, folder));
  CAIRN_ASSIGN(const Listing deleted, read_deleted(files, folder));
  if (!saved_by_name(saved, deleted, command.name).empty()) return true;
  CAIRN_ASSIGN(const Listing half_deleted, read_half_deleted(files, folder));
  return is_in(half_deleted, command);
}

/// True for a dataset that is neither in the index nor dropped, if the action can do something with
/// it: an earlier command has begun to move it, or only the caches have it.
Result<bool> is_elsewhere(const IndexCommand& command, Files& files, const PrefixFolder& folder) {
  if (may_be_dropped(command) || command.action == Action::drop) {
    CAIRN_ASSIGN(const Listing moving, read_in_transit(files, folder));
    CAIRN_ASSIGN(const bool is_moving, is_in(moving, command));
    if (is_moving) return true;
  }
  if (command.action == Action::lift) {
    CAIRN_ASSIGN(const Listing attempts, read_attempts(files, folder));
    return is_in(attempts, command);
  }
  return command.action == Action::remove ? is_to_be_removed(command, files, folder)
                                          : Result<bool>(false);
}

Status look_for_dataset(const IndexCommand& command, Files& files, const PrefixFolder& folder) {
  const std::string& name = command.name;
  std::vector<std::string> damaged;
  std::vector<UnreadDataset> unread;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged, nullptr, &unread));
  CAIRN_ASSIGN(const DatasetRecord* listed, find_dataset(listing, name));
  if (listed != nullptr && command.action != Action::add)
    return check_unread_name(name, folder.prefix, unread, listed);
  Dropped dropped;
  if (may_be_dropped(command)) {  // there may be many, which takes time
    CAIRN_ASSIGN(dropped, read_dropped(files, folder));
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(dropped.listing, name));
    if (found != nullptr) return check_unread_name(name, folder.prefix, dropped.unread, found);
  }
  CAIRN_ASSIGN(const bool is_found, is_elsewhere(command, files, folder));
  if (is_found) return {};
  if (listed != nullptr)
    return fail(Code::bad_argument, "dataset {} is in {} already", name, folder.prefix);
  CAIRN_TRY(check_unread_name(name, folder.prefix, unread));
  CAIRN_TRY(check_unread_name(name, folder.prefix, dropped.unread));
  return fail_as_unknown(command, folder);
}

}  // namespace

std::vector<const Remains*> saved_by_name(const std::vector<Remains>& saved, const Listing& deleted,
                                          const std::string& word) {
  std::vector<const Remains*> found;
  for (const Remains& one : saved) {
    const DatasetRecord* begun = find_in(deleted, one.uuid);
    const std::string& name = begun != nullptr && one.name.empty() ? begun->info.name : one.name;
    if (is_named(word, one.uuid, one.number, name)) found.push_back(&one);
  }
  return found;
}

bool may_be_dropped(const IndexCommand& command) {
  return command.action == Action::add || command.action == Action::remove;
}

tl::unexpected<Error> fail_as_unknown(const IndexCommand& command, const PrefixFolder& folder) {
  return fail(Code::not_found, "there is no dataset {} in {}: see cairn index list{}", command.name,
              folder.prefix, may_be_dropped(command) ? " --dropped" : "");
}

Status look_before(const IndexCommand& command, Files& files, const PrefixFolder& folder) {
  if (command.action == Action::import)
    return read_scr_index(files, folder.prefix).map([](const ScrIndex&) {});
  if (command.action == Action::add_files) return look_at_files(command, files, folder);
  const auto info = files.info(folder.root());
  if (!info || info->kind != Kind::folder)
    return fail(
        Code::not_found,
        "no job has used {} yet; name the prefix directory of the job by --prefix or SCR_PREFIX",
        folder.prefix);
  return command.action == Action::build ? Status{} : look_for_dataset(command, files, folder);
}

}  // namespace cairn
