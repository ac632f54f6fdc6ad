#include "tools/index_changes.hpp"

#include <algorithm>
#include <array>

#include "prefix/check.hpp"
#include "prefix/choose_current.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/found_files.hpp"
#include "prefix/remove_files.hpp"
#include "prefix/scr_index.hpp"
#include "prefix/strays.hpp"
#include "prefix/tidy.hpp"
#include "prefix/unfinished.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/scavenge.hpp"
#include "tools/as_owner.hpp"
#include "tools/index_found.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

using Action = IndexCommand::Action;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_troubles_logged = 10;

std::string_view name_of(Action action) {
  constexpr std::array<std::string_view, 12> names = {"list",       "show",   "current", "drop",
                                                      "drop_after", "delete", "add",     "build",
                                                      "quarantine", "lift",   "add",     "import"};
  return names.at(static_cast<std::size_t>(action));
}

/// Where no record tells its name any more, `deleted` does: somebody has begun to remove it.
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

std::vector<std::string> uuids_of(const std::vector<const Remains*>& found) {
  std::vector<std::string> uuids;
  for (const Remains* remains : found) uuids.push_back(text_of(remains->uuid));
  return uuids;
}

std::string said_of_replaced(const DatasetRecord& record) {
  return fmt::format("no restart uses it: {} wrote files of the same names", record.replaced_by);
}

/// The command may be about a dataset that was dropped.
bool may_be_dropped(const IndexCommand& command) {
  return command.action == Action::add || command.action == Action::remove;
}

tl::unexpected<Error> fail_as_unknown(const IndexCommand& command, const PrefixFolder& folder) {
  return fail(Code::not_found, "there is no dataset {} in {}: see cairn index list{}", command.name,
              folder.prefix, may_be_dropped(command) ? " --dropped" : "");
}

/// Once the process owns the prefix directory.
class Changes {
 public:
  Changes(const IndexCommand& command, Communicator& comm, const Site& site,
          const Settings& settings, const Log& log)
      : command_(command),
        comm_(comm),
        site_(site),
        settings_(settings),
        keeper_(*site.keeper),
        log_(log) {
    report_.facts = {{"prefix", site.folder.prefix}, {"action", name_of(command.action)},
                     {"done", Json::array()},        {"damaged", Json::array()},
                     {"unread", Json::array()},      {"refused", Json::array()}};
    report_.datasets_key = "datasets";
  }

  Status run() {
    if (!keeper_.deleted_damage().empty()) log_.warning("{}", keeper_.deleted_damage());
    if (command_.action == Action::remove) {
      CAIRN_ASSIGN(half_deleted_, read_half_deleted(site_.files, site_.folder));
    }
    if (command_.action == Action::drop) {
      CAIRN_ASSIGN(half_dropped_, read_in_transit(site_.files, site_.folder));
    }
    tidy_up();
    return act();
  }

  Report take() { return std::move(report_); }

 private:
  Status act() {
    switch (command_.action) {
      case Action::current:
        return set_current();
      case Action::drop:
        return drop();
      case Action::drop_after:
        return drop_after();
      case Action::remove:
        return remove();
      case Action::add:
        return add();
      case Action::build:
        return build();
      case Action::quarantine:
      case Action::lift:
        return set_quarantine();
      case Action::add_files:
        return add_files(command_, comm_, site_, settings_, report_);
      case Action::import:
        return import_from_scr(comm_, site_, settings_, log_, report_);
      case Action::list:
      case Action::show:
        break;
    }
    return {};
  }

  /// What a run has not flushed to its end is left to the next run, which has the caches; unless
  /// all that is half done is to be ended.
  void tidy_up() {
    const bool end_all = command_.action == Action::build;
    Tidied found;
    tidied_ = tidy(comm_, site_, {}, end_all ? Unfinished::removed : Unfinished::left, &found);
    if (end_all && tidied_) tidied_ = look_everywhere(found.damaged);
    for (const std::string& line : found.given_up) log_.warning("{}", line);
    for (const std::string& line : found.kept) note(report_, line);
    for (const DatasetRecord& record : found.published)
      note(report_, fmt::format("{} is published: its flush is complete", record.label()));
    for (const std::string& folder : found.damaged)
      if (!end_all) log_.warning("{}", remedy_for_damaged(folder));
    if (!tidied_)
      log_.warning("an unfinished flush of an earlier run stays as it is: {}",
                   tidied_.error().text);
  }

  Status look_everywhere(const std::vector<std::string>& damaged) {
    for (const std::string& folder : damaged) {
      CAIRN_ASSIGN(const std::uint64_t files, remove_strays(site_.files, site_.folder, folder));
      note(report_, fmt::format("{}: {} staged files were found and removed", folder, files));
    }
    return damaged.empty() ? Status{} : keeper_.remove_closed();
  }

  /// A copy, since what it is found in changes.
  Result<DatasetRecord> named() const {
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(keeper_.listing(), command_.name));
    CAIRN_TRY(refuse_unread_name(command_.name, site_.folder.prefix, keeper_.unread(), found));
    if (found == nullptr) return fail_as_unknown(command_, site_.folder);
    return *found;
  }

  Result<DatasetRecord> named_of_dropped() const {
    CAIRN_ASSIGN(const Dropped dropped, read_dropped(site_.files, site_.folder));
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(dropped.listing, command_.name));
    CAIRN_TRY(refuse_unread_name(command_.name, site_.folder.prefix, dropped.unread, found));
    if (found == nullptr) return fail_as_unknown(command_, site_.folder);
    return *found;
  }

  Status set_current() {
    CAIRN_ASSIGN(const DatasetRecord record, named());
    if (!record.info.is_checkpoint())
      return fail(Code::bad_argument, "{} is not a checkpoint, so no restart can use it",
                  record.label());
    const std::string& name = record.info.name;
    CAIRN_TRY(refuse_unread(keeper_.unread(), fmt::format("which {} is the newest", name),
                            record.info.uuid));
    if (find_named(keeper_.listing(), name)->info.uuid != record.info.uuid)
      return fail(Code::bad_argument,
                  "{} is not the newest of that name, which a restart would take: drop the newer "
                  "ones first (cairn index drop)",
                  record.label());
    CAIRN_TRY(choose_current(site_, keeper_, record.info));
    note(report_, record, said_of_current(record));
    return {};
  }

  Status drop() {
    const auto record = named();
    if (record) return drop(*record);
    CAIRN_ASSIGN(const DatasetRecord* begun, find_dataset(half_dropped_, command_.name));
    if (begun == nullptr || record.error().code != Code::not_found || !tidied_)
      return tl::unexpected(record.error());
    note_dropped(*begun);  // by tidy_up(), which has ended what an earlier command had begun
    return {};
  }

  void note_dropped(const DatasetRecord& record) {
    note(report_, record, "is dropped; its files stay, and cairn index add puts it back");
  }

  Status drop(const DatasetRecord& record) {
    CAIRN_TRY(keeper_.drop(record.info));
    note_dropped(record);
    return {};
  }

  Status drop_after() {
    CAIRN_ASSIGN(const DatasetRecord last, named());
    CAIRN_TRY(refuse_unread(keeper_.unread(), fmt::format("what is newer than {}", last.label()),
                            last.info.uuid));
    const Listing before = keeper_.listing();
    for (const DatasetRecord& record : before)
      if (record.info.uuid > last.info.uuid) CAIRN_TRY(drop(record));
    if (report_.text.empty()) note(report_, fmt::format("nothing is newer than {}", last.label()));
    return {};
  }

  Status remove() {
    auto found = named();
    const bool is_dropped = !found && found.error().code == Code::not_found;
    if (is_dropped) found = named_of_dropped();
    if (!found && found.error().code == Code::not_found) return remove_scavenged();
    CAIRN_ASSIGN(const DatasetRecord record, std::move(found));
    if (const Status removed = remove_copies_of(record); !removed)
      return fail(removed.error().code,
                  "{} was not deleted, because its scavenged copy cannot be removed: {}; correct "
                  "that and repeat the command",
                  record.label(), removed.error().text);
    CAIRN_TRY(note_deleted(record));
    CAIRN_TRY(keeper_.take_out_for_good(record));
    note(report_, record, "is deleted");
    const auto kept = remove_files(comm_, site_, record.info, record.ranks_per_manifest);
    if (!kept) return fail_as_half_deleted(record, kept.error());
    if (const std::string said = said_of_kept(*kept); !said.empty()) note(report_, said);
    return {};
  }

  /// First, while it is still known by its name: these can keep it from being deleted.
  Status remove_copies_of(const DatasetRecord& record) {
    CAIRN_ASSIGN(const auto saved, find_saved(site_.files, site_.folder));
    for (const Remains& remains : saved)
      if (remains.uuid == record.info.uuid)
        CAIRN_TRY(remove_saved(site_.files, site_.clock, site_.folder, remains));
    return {};
  }

  static tl::unexpected<Error> fail_as_half_deleted(const DatasetRecord& record,
                                                    const Error& error) {
    return fail(error.code,
                "{} is deleted, but some of its files could not be removed: {}; correct that and "
                "repeat the command",
                record.label(), error.text);
  }

  /// One that an earlier command has taken out. What was left of it then tidy_up() has removed.
  Status end_removal() {
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(half_deleted_, command_.name));
    if (found == nullptr) return fail_as_unknown(command_, site_.folder);
    CAIRN_ASSIGN(const Listing left, read_half_deleted(site_.files, site_.folder));
    if (find_in(left, found->info.uuid) != nullptr && !tidied_)
      return fail_as_half_deleted(*found, tidied_.error());
    note(report_, *found, "is deleted");
    return {};
  }

  /// One that is nowhere but there. Whoever scavenges again leaves it alone from now on.
  Status remove_scavenged() {
    CAIRN_ASSIGN(const auto saved, find_saved(site_.files, site_.folder));
    const auto found = saved_by_name(saved, keeper_.deleted(), command_.name);
    if (found.empty()) return end_removal();
    if (found.size() > 1) return fail_as_ambiguous(command_.name, uuids_of(found));
    const Remains& remains = *found.front();
    DatasetRecord record;
    record.info.uuid = remains.uuid;
    record.info.number = remains.number;
    record.info.name = remains.name;
    const DatasetRecord* begun = find_in(keeper_.deleted(), remains.uuid);
    if (begun != nullptr) record = *begun;
    if (const HeldRecord* held = record_of(remains)) record.info = held->record.dataset;
    CAIRN_TRY(note_deleted(record));
    if (const Status removed = remove_saved(site_.files, site_.clock, site_.folder, remains);
        !removed)
      return fail(removed.error().code,
                  "the scavenged copy of {} could not be removed completely: {}; correct that and "
                  "repeat the command",
                  record.label(), removed.error().text);
    note(report_, record, "is deleted, with its scavenged copy");
    return {};
  }

  /// Files of a dropped dataset may have been added to another one since.
  Status refuse_shared_files(const DatasetRecord& dropped) {
    if (!dropped.info.in_place()) return {};
    CAIRN_ASSIGN(const FileOwners owners,
                 owners_of_files(site_.files, site_.folder, keeper_.listing()));
    std::vector<std::string> troubles;
    std::string shared;
    CAIRN_TRY(visit_ranks(site_.files, site_.folder.dropped(dropped.info), dropped, troubles,
                          [&](const RankRecord& record) {
                            for (const FileEntry& file : record.files)
                              if (owners.contains(file.name)) shared = file.name;
                          }));
    if (shared.empty()) return {};
    const DatasetInfo& owner = owners.at(shared);
    return fail(
        Code::bad_argument,
        "{} of {} now also belongs to dataset {} ({}): {} stays dropped while that dataset exists",
        shared, dropped.label(), owner.number, owner.name, dropped.info.name);
  }

  /// Which has the caches, and removes it there too. First: what is still there after a crash
  /// counts.
  Status note_deleted(const DatasetRecord& record) {
    Listing deleted = keeper_.deleted();
    std::erase_if(deleted, [&](const auto& known) { return known.info.uuid == record.info.uuid; });
    insert(deleted, record);
    return keeper_.set_deleted(std::move(deleted));
  }

  Status add() {
    CAIRN_ASSIGN(const DatasetRecord record, named_of_dropped());
    CAIRN_TRY(refuse_shared_files(record));
    CAIRN_ASSIGN(const CheckAccount account,
                 check_dataset(site_.files, site_.io, site_.folder,
                               site_.folder.dropped(record.info), record, CheckDepth::sizes));
    for (std::size_t i = 0; i < account.troubles.size() && i < most_troubles_logged; ++i)
      log_.warning("{}", account.troubles[i]);
    if (!account.troubles.empty())
      return fail(Code::lost,
                  "{} stays dropped, because {} of its files are missing or have another size",
                  record.label(), account.troubles.size());
    CAIRN_TRY(keeper_.put_back(record));
    if (!record.settled) tidy_up();
    note(report_, record, "is in the list again");
    return {};
  }

  Status build() {
    const Listing& listing = keeper_.listing();
    if (command_.json) report_.datasets = listing;
    note_failures(report_, "damaged", "cannot be read", keeper_.damaged());
    note_failures(report_, "unread", "cannot be read now", reasons_of(keeper_.unread()));
    note(report_, fmt::format("{} datasets are in {}", listing.size(), site_.folder.prefix));
    const bool there = std::any_of(
        listing.begin(), listing.end(),
        [&](const DatasetRecord& record) { return record.info.number == command_.number; });
    if (!command_.number || there) return {};
    return fail(Code::not_found, "there is no dataset of number {} in {}: see cairn index list",
                *command_.number, site_.folder.prefix);
  }

  Status set_quarantine() {
    CAIRN_ASSIGN(const DatasetRecord* listed, find_dataset(keeper_.listing(), command_.name));
    if (listed == nullptr && command_.action == Action::lift) return lift_cached();
    CAIRN_ASSIGN(DatasetRecord record, named());
    record.quarantined = command_.action == Action::quarantine;
    if (!record.quarantined) {
      record.attempts = 0;
      record.failed_us = 0;
      record.failure.clear();
    }
    CAIRN_TRY(keeper_.update(record));
    note(report_, record,
         record.quarantined           ? "is quarantined: no restart uses it"
         : record.replaced_by.empty() ? "can be used by a restart again"
                                      : "is not in quarantine, but " + said_of_replaced(record));
    return {};
  }

  /// One that only the caches have.
  Status lift_cached() {
    Listing attempts = keeper_.attempts();
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(attempts, command_.name));
    if (found == nullptr) return fail_as_unknown(command_, site_.folder);
    const DatasetRecord record = *found;
    std::erase(attempts, record);
    CAIRN_TRY(keeper_.set_attempts(std::move(attempts)));
    note(report_, record, "can be used by a restart again");
    return {};
  }

  const IndexCommand& command_;
  Communicator& comm_;
  const Site& site_;
  const Settings& settings_;
  Keeper& keeper_;
  const Log& log_;
  Status tidied_;
  Listing half_dropped_;
  Listing half_deleted_;  ///< when this one began
  Report report_;
};

/// Looks for the dataset of a command without owning the prefix directory: so nothing is made, and
/// no owner loses the directory, for a dataset that does not exist.
class LookBefore {
 public:
  LookBefore(const IndexCommand& command, Files& files, const PrefixFolder& folder)
      : command_(command), files_(files), folder_(folder) {}

  Status run() {
    const auto info = files_.info(folder_.root());
    if (!info || info->kind != Kind::folder)
      return fail(
          Code::not_found,
          "no job has used {} yet; name the prefix directory of the job by --prefix or SCR_PREFIX",
          folder_.prefix);
    if (command_.action == Action::build) return {};
    for (const auto look :
         {&LookBefore::is_listed, &LookBefore::is_dropped, &LookBefore::is_being_dropped,
          &LookBefore::is_to_be_lifted, &LookBefore::is_to_be_removed}) {
      CAIRN_ASSIGN(const bool is_found, (this->*look)());
      if (is_found) return {};
    }
    for (const auto* unread : {&unread_, &dropped_.unread})
      CAIRN_TRY(refuse_unread_name(command_.name, folder_.prefix, *unread));
    return fail_as_unknown(command_, folder_);
  }

 private:
  Result<bool> is_in(const Listing& listing) const {
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(listing, command_.name));
    return found != nullptr;
  }

  Result<bool> is_listed() {
    std::vector<std::string> damaged;
    CAIRN_ASSIGN(listing_, read_listing(files_, folder_, damaged, nullptr, &unread_));
    CAIRN_ASSIGN(const DatasetRecord* listed, find_dataset(listing_, command_.name));
    if (listed == nullptr || command_.action == Action::add) return false;
    return is_readable(unread_, listed);
  }

  Result<bool> is_readable(const std::vector<UnreadDataset>& unread,
                           const DatasetRecord* found) const {
    CAIRN_TRY(refuse_unread_name(command_.name, folder_.prefix, unread, found));
    return true;
  }

  /// There may be many of these, which takes time.
  Result<bool> is_dropped() {
    if (!may_be_dropped(command_)) return false;
    CAIRN_ASSIGN(dropped_, read_dropped(files_, folder_));
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(dropped_.listing, command_.name));
    if (found == nullptr) return false;
    return is_readable(dropped_.unread, found);
  }

  Result<bool> is_being_dropped() {
    if (may_be_dropped(command_) || command_.action == Action::drop) {
      CAIRN_ASSIGN(const Listing moving, read_in_transit(files_, folder_));
      CAIRN_ASSIGN(const bool is_found, is_in(moving));
      if (is_found) return true;
    }
    CAIRN_ASSIGN(const bool is_there, is_in(listing_));
    if (!is_there) return false;
    return fail(Code::bad_argument, "dataset {} is in {} already", command_.name, folder_.prefix);
  }

  /// One that only the caches have.
  Result<bool> is_to_be_lifted() {
    if (command_.action != Action::lift) return false;
    CAIRN_ASSIGN(const Listing attempts, read_attempts(files_, folder_));
    return is_in(attempts);
  }

  /// One that was scavenged, or that an earlier command has begun to remove.
  Result<bool> is_to_be_removed() {
    if (command_.action != Action::remove) return false;
    CAIRN_ASSIGN(const auto saved, find_saved(files_, folder_));
    CAIRN_ASSIGN(const Listing deleted, read_deleted(files_, folder_));
    if (!saved_by_name(saved, deleted, command_.name).empty()) return true;
    CAIRN_ASSIGN(const Listing half_deleted, read_half_deleted(files_, folder_));
    return is_in(half_deleted);
  }

  const IndexCommand& command_;
  Files& files_;
  const PrefixFolder& folder_;
  Listing listing_;
  std::vector<UnreadDataset> unread_;
  Dropped dropped_;
};

Status look_before(const IndexCommand& command, Files& files, const PrefixFolder& folder) {
  if (command.action == Action::import)
    return read_scr_index(files, folder.prefix).map([](const ScrIndex&) {});
  if (command.action == Action::add_files) return look_at_files(command, files, folder);
  return LookBefore(command, files, folder).run();
}

}  // namespace

void note(Report& report, const std::string& what) {
  report.facts["done"].push_back(what);
  report.line("{}", what);
}

void note(Report& report, const DatasetRecord& record, std::string_view what) {
  report.datasets.push_back(record);
  note(report, fmt::format("{} {}", record.label(), what));
}

void note_failures(Report& report, const std::string& key, std::string_view what,
                   const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    report.facts[key].push_back(line);
    report.add_failure(fail(Code::io, "{}: {}", what, line));
  }
}

std::string said_of_current(const DatasetRecord& record) {
  if (may_be_fetched(record, fetching()))
    return "is current: a restart uses it, unless the caches have a newer checkpoint";
  if (!record.replaced_by.empty()) return "is current, but " + said_of_replaced(record);
  return fmt::format(
      "is current, but no restart uses it, because it {}; cairn index quarantine --lift {} allows "
      "it again",
      record.quarantined ? "is in quarantine" : "has failed", record.info.name);
}

Result<Report> change_index(const IndexCommand& command, Files& files, Clock& clock,
                            const Settings& settings, const Log& log) {
  const PrefixFolder folder{settings.prefix};
  CAIRN_TRY(check_prefix_folder(files, folder.prefix));
  CAIRN_TRY(look_before(command, files, folder));
  Report report;
  const Status all_done =
      as_owner({"cairn index", command.force, command.action == Action::build}, files, clock,
               settings, log, [&](Communicator& comm, const Site& site) {
                 Changes changes(command, comm, site, settings, log);
                 const Status done = changes.run();
                 report = changes.take();
                 return done;
               });
  const bool has_done_nothing = report.text.empty() && report.failures.empty();
  if (!all_done && has_done_nothing) return tl::unexpected(all_done.error());
  report.add_failure(all_done);
  return report;
}

}  // namespace cairn
