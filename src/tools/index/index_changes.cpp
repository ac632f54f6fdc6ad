#include "tools/index/index_changes.hpp"

#include <algorithm>
#include <array>

#include "prefix/contents.hpp"
#include "prefix/strays.hpp"
#include "prefix/tidy.hpp"
#include "prefix/unfinished.hpp"
#include "tools/as_owner.hpp"
#include "tools/index/index_actions.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

using Action = IndexCommand::Action;
using Json = nlohmann::ordered_json;

Status build(IndexChange& change) {
  Report& report = change.report;
  const std::string& prefix = change.site.folder.prefix;
  const auto number = change.command.number;
  const Listing& listing = change.keeper.known().listing;
  if (change.command.json) report.datasets = listing;
  note_failures(report, "damaged", "cannot be read", change.keeper.known().damaged);
  note_failures(report, "unread", "cannot be read now", reasons_of(change.keeper.known().unread));
  note(report, fmt::format("{} datasets are in {}", listing.size(), prefix));
  const bool there = std::any_of(listing.begin(), listing.end(), [&](const DatasetRecord& record) {
    return record.info.number == number;
  });
  if (!number || there) return {};
  return fail(Code::not_found, "there is no dataset of number {} in {}: see cairn index list",
              *number, prefix);
}

struct ActionRow {
  Action action{};
  std::string_view name;  ///< in JSON
  Status (*run)(IndexChange&);
};
constexpr auto actions = std::to_array<ActionRow>({
    {Action::current, "current", set_current},
    {Action::drop, "drop", drop_named},
    {Action::drop_after, "drop_after", drop_after},
    {Action::remove, "delete", delete_named},
    {Action::add, "add", put_back},
    {Action::build, "build", build},
    {Action::quarantine, "quarantine", set_quarantine},
    {Action::lift, "lift", set_quarantine},
    {Action::add_files, "add", add_found},
    {Action::import, "import", import_from_scr},
});

Status remove_all_strays(IndexChange& change, const std::vector<std::string>& damaged) {
  const Site& site = change.site;
  for (const std::string& folder : damaged) {
    CAIRN_ASSIGN(const std::uint64_t files, remove_strays(site.files, site.folder, folder));
    note(change.report, fmt::format("{}: {} staged files were found and removed", folder, files));
  }
  return damaged.empty() ? Status{} : change.keeper.remove_closed();
}

Status run_action(IndexChange& change) {
  const Site& site = change.site;
  const Action action = change.command.action;
  const auto* row = std::find_if(actions.begin(), actions.end(),
                                 [&](const ActionRow& each) { return each.action == action; });
  change.report.facts = {{"prefix", site.folder.prefix}, {"action", row->name},
                         {"done", Json::array()},        {"damaged", Json::array()},
                         {"unread", Json::array()},      {"refused", Json::array()}};
  change.report.datasets_key = "datasets";
  if (!change.keeper.known().deleted_damage.empty())
    change.log.warning("{}", change.keeper.known().deleted_damage);
  if (action == Action::remove) {
    CAIRN_ASSIGN(change.half_deleted, read_half_deleted(site.files, site.folder));
  }
  if (action == Action::drop) {
    CAIRN_ASSIGN(change.half_dropped, read_in_transit(site.files, site.folder));
  }
  tidy_up(change);
  return row->run(change);
}

/// A copy, because the list that it is found in changes.
Result<DatasetRecord> find_named_in(const Listing& listing,
                                    const std::vector<UnreadDataset>& unread,
                                    const IndexChange& change) {
  const PrefixFolder& folder = change.site.folder;
  CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(listing, change.command.name));
  CAIRN_TRY(check_unread_name(change.command.name, folder.prefix, unread, found));
  if (found == nullptr) return fail_as_unknown(change.command, folder);
  return *found;
}

}  // namespace

Result<DatasetRecord> IndexChange::named() const {
  return find_named_in(keeper.known().listing, keeper.known().unread, *this);
}

Result<DatasetRecord> IndexChange::named_of_dropped() const {
  CAIRN_ASSIGN(const Dropped dropped, read_dropped(site.files, site.folder));
  return find_named_in(dropped.listing, dropped.unread, *this);
}

void tidy_up(IndexChange& change) {
  const bool end_all = change.command.action == Action::build;
  Tidied found;
  change.tidied =
      tidy(change.comm, change.site, {}, end_all ? Unfinished::removed : Unfinished::left, &found);
  if (end_all && change.tidied) change.tidied = remove_all_strays(change, found.damaged);
  for (const std::string& line : found.given_up) change.log.warning("{}", line);
  for (const std::string& line : found.kept) note(change.report, line);
  for (const DatasetRecord& record : found.published)
    note(change.report, fmt::format("{} is published: its flush is complete", record.label()));
  for (const std::string& folder : found.damaged)
    if (!end_all) change.log.warning("{}", remedy_for_damaged(folder));
  if (!change.tidied)
    change.log.warning("an unfinished flush of an earlier run stays as it is: {}",
                       change.tidied.error().text);
}

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

Result<Report> change_index(const IndexCommand& command, Files& files, Clock& clock,
                            const Settings& settings, const Log& log) {
  const PrefixFolder folder{settings.prefix};
  CAIRN_TRY(check_prefix_folder(files, folder.prefix));
  CAIRN_TRY(look_before(command, files, folder));
  Report report;
  const Status all_done =
      as_owner({"cairn index", command.force, command.action == Action::build}, files, clock,
               settings, log, [&](Communicator& comm, const Site& site) {
                 IndexChange change{command, comm, site, settings, *site.keeper, log};
                 const Status done = run_action(change);
                 report = std::move(change.report);
                 return done;
               });
  const bool has_done_nothing = report.text.empty() && report.failures.empty();
  if (!all_done && has_done_nothing) return tl::unexpected(all_done.error());
  report.add_failure(all_done);
  return report;
}

}  // namespace cairn
