#include "tools/index/index_command.hpp"

#include <algorithm>

#include "prefix/check.hpp"
#include "prefix/contents.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/scr_index.hpp"
#include "scavenge/publish.hpp"
#include "tools/as_owner.hpp"
#include "tools/index/index_actions.hpp"
#include "tools/index/index_found.hpp"
#include "tools/index/index_scavenged.hpp"
#include "tools/index/index_table.hpp"
#include "tools/publish_command.hpp"
#include "tools/report.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

using Action = IndexCommand::Action;
using Json = nlohmann::ordered_json;

/// list and show.
class Reader {
 public:
  Reader(const IndexCommand& command, Files& files, const Settings& settings, const Log& log)
      : command_(command),
        files_(files),
        settings_(settings),
        folder_{settings.prefix},
        log_(log) {}

  /// Its exit code says that a check has found damage, or not all could be read.
  Result<Report> run() {
    CAIRN_TRY(check_prefix_folder(files_, folder_.prefix));
    const auto background = make_background_thread();
    const IoThreads io{*background, reading_threads};
    CAIRN_ASSIGN(listing_, read_listing(files_, folder_, damaged_, &io, &unread_));
    std::string damage;
    CAIRN_ASSIGN(current_, read_current(files_, folder_, &damage));
    if (!damage.empty()) log_.warning("{}", damage);
    if (command_.dropped) CAIRN_TRY(take_dropped());
    for (const std::string& record : damaged_) log_.warning("a dataset cannot be used: {}", record);
    for (const UnreadDataset& unread : unread_)
      log_.warning("a dataset cannot be read now: {}", unread.why);
    if (command_.action == Action::list)
      list();
    else
      CAIRN_TRY(show());
    return std::move(report_);
  }

 private:
  /// In place of those that are there.
  Status take_dropped() {
    CAIRN_ASSIGN(Dropped dropped, read_dropped(files_, folder_));
    listing_ = std::move(dropped.listing);
    unread_ = std::move(dropped.unread);
    damaged_.clear();
    for (const Uuid& uuid : dropped.damaged)
      damaged_.push_back(fmt::format("the record of the dropped dataset {} in {} is damaged",
                                     text_of(uuid), folder_.dropped()));
    return {};
  }

  void list() {
    require(damaged_.empty() && unread_.empty());
    const DatasetRecord* taken =
        command_.dropped ? nullptr
                         : next_to_fetch(listing_, fetching(), current_in(listing_, current_), {});
    const std::string note = note_of_scr(files_, folder_);
    report_.facts = {{"prefix", folder_.prefix},
                     {"current", current_.empty() ? Json() : Json(current_)},
                     {"restart", taken == nullptr ? Json() : Json(taken->info.name)},
                     {"scavenged", Json::array()},
                     {"damaged", damaged_},
                     {"unread", reasons_of(unread_)},
                     {"note", note}};
    if (listing_.empty())
      report_.line("{}: no {}", folder_.prefix, command_.dropped ? "dropped datasets" : "datasets");
    else if (!command_.json)
      report_.text = dataset_table(listing_, taken, command_.columns, command_.has_colour);
    if (!command_.dropped) report_scavenged(report_, files_, settings_, listing_, log_);
    if (!note.empty()) report_.line("{}", note);
    report_.datasets = std::move(listing_);
    report_.datasets_key = command_.dropped ? "dropped" : "datasets";
  }

  Status show() {
    CAIRN_TRY(find());
    const DatasetRecord* current = find_named(listing_, current_);
    const bool is_current = current != nullptr && current->info.uuid == record_.info.uuid;
    report_.facts = {{"prefix", folder_.prefix},
                     {"dataset", json_of(record_)},
                     {"current", is_current},
                     {"dropped", dropped_}};
    report_.text = dataset_text(record_, is_current, dropped_);
    if (command_.files) CAIRN_TRY(show_files());
    return command_.check ? check() : Status{};
  }

  void require(bool is_good) {
    if (!is_good) report_.exit_code = exit_failure;
  }

  Status find() {
    CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(listing_, command_.name));
    Dropped dropped;
    if (found == nullptr) {
      CAIRN_ASSIGN(dropped, read_dropped(files_, folder_));
      CAIRN_ASSIGN(found, find_dataset(dropped.listing, command_.name));
      dropped_ = true;
    }
    if (found == nullptr) {
      CAIRN_TRY(check_unread_name(command_.name, folder_.prefix, unread_));
      CAIRN_TRY(check_unread_name(command_.name, folder_.prefix, dropped.unread));
      return fail_as_unknown(command_, folder_);
    }
    record_ = *found;
    return {};
  }

  std::string manifests() const {
    return dropped_ ? folder_.dropped(record_.info) : folder_.dataset(record_.info);
  }

  Status show_files() {
    std::vector<std::string> troubles;
    Json shown = Json::array();
    CAIRN_TRY(visit_ranks(files_, manifests(), record_, troubles, [&](const RankRecord& rank) {
      if (!command_.json) return add_files(rank);
      for (const FileEntry& file : rank.files) {
        shown.push_back({{"rank", rank.rank}});
        shown.back().update(json_of(file));
      }
    }));
    for (const std::string& trouble : troubles) log_.warning("{}", trouble);
    report_.facts["files"] = std::move(shown);
    report_.facts["troubles"] = troubles;
    require(troubles.empty());
    return {};
  }

  void add_files(const RankRecord& rank) {
    report_.line("rank {}", rank.rank);
    for (const FileEntry& file : rank.files)
      report_.line("{:>16}  {}{}", file.size, file.name, file.part ? " (shared)" : "");
  }

  Status check() {
    const auto background = make_background_thread();
    CAIRN_ASSIGN(const CheckAccount account,
                 check_dataset(files_, {*background, checking_threads}, folder_, manifests(),
                               record_, CheckDepth::blocks));
    report_.facts["check"] = {
        {"files", account.files}, {"bytes", account.bytes}, {"troubles", account.troubles}};
    for (const std::string& trouble : account.troubles) report_.line("bad: {}", trouble);
    report_.line("{} files read, {}", account.files,
                 account.troubles.empty() ? "all unchanged" : "not all good");
    require(account.troubles.empty());
    return {};
  }

  const IndexCommand& command_;
  Files& files_;
  const Settings& settings_;
  const PrefixFolder folder_;
  const Log& log_;
  Report report_;
  Listing listing_;
  std::vector<std::string> damaged_;
  std::vector<UnreadDataset> unread_;
  std::string current_;
  DatasetRecord record_;  ///< the one to show
  bool dropped_ = false;
};

/// The records that have the dataset of this number, if the index does not list it.
enum class Holder { none, scavenge, scr };

Result<Holder> holder_of(std::uint64_t number, Files& files, const PrefixFolder& folder) {
  std::vector<std::string> damaged;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged));
  const auto has_number = [&](const DatasetRecord& record) { return record.info.number == number; };
  if (std::any_of(listing.begin(), listing.end(), has_number)) return Holder::none;
  CAIRN_ASSIGN(const auto saved, find_saved(files, folder));
  if (std::any_of(saved.begin(), saved.end(),
                  [&](const auto& one) { return one.number == number; }))
    return Holder::scavenge;
  const bool is_of_scr = files.info(scr_dataset_folder(folder.prefix, number)).has_value();
  return is_of_scr ? Holder::scr : Holder::none;
}

/// A name that is not in the index may be one of SCR's.
std::string text_of(const Error& error, const IndexCommand& command, Files& files,
                    const PrefixFolder& folder) {
  const bool is_by_name = !command.name.empty() && error.code == Code::not_found;
  const std::string note = is_by_name ? note_of_scr(files, folder) : "";
  return note.empty() ? error.text : fmt::format("{}. {}", error.text, note);
}

}  // namespace

int run_index_command(const IndexCommand& command, Files& files, Clock& clock,
                      const ProcessFacts& process, std::ostream& out, const Log& log) {
  const auto resolved = read_job_settings(command.source, files, process, log);
  if (!resolved) return print_report(tl::unexpected(resolved.error()), command.json, out, log);
  const PrefixFolder folder{resolved->settings.prefix};
  Result<Holder> holder = Holder::none;
  if (command.action == Action::build && command.number)
    holder = holder_of(*command.number, files, folder);
  if (holder && *holder == Holder::scavenge) {  // as SCR's command does
    const PublishCommand publish{
        command.source, {std::to_string(*command.number)}, command.force, false, command.json};
    return run_publish_command(publish, files, clock, process, out, log);
  }
  Result<Report> report;
  if (!holder)
    report = tl::unexpected(holder.error());
  else if (*holder == Holder::scr)
    report =
        fail(Code::not_found,
             "only SCR has dataset {} in {}: \"cairn index import\" imports it; where SCR "
             "scavenged it and has not rebuilt it, run SCR's own \"scr_index --build {}\" before",
             *command.number, folder.prefix, *command.number);
  else if (command.action == Action::list || command.action == Action::show)
    report = Reader(command, files, resolved->settings, log).run();
  else
    report = change_index(command, files, clock, resolved->settings, log);
  if (!report) report.error().text = text_of(report.error(), command, files, folder);
  return print_report(std::move(report), command.json, out, log);
}

}  // namespace cairn
