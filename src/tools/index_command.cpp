#include "tools/index_command.hpp"

#include "prefix/check.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/scr_index.hpp"
#include "scavenge/publish.hpp"
#include "tools/as_owner.hpp"
#include "tools/exit_codes.hpp"
#include "tools/index_changes.hpp"
#include "tools/index_found.hpp"
#include "tools/index_scavenged.hpp"
#include "tools/index_table.hpp"
#include "tools/publish_command.hpp"
#include "tools/record_json.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

using Action = IndexCommand::Action;
using Json = nlohmann::ordered_json;

/// list and show.
class Reader {
 public:
  Reader(const IndexCommand& command, Files& files, const Settings& settings, std::ostream& out,
         const Log& log)
      : command_(command),
        files_(files),
        settings_(settings),
        folder_{settings.prefix},
        out_(out),
        log_(log) {}

  /// False if a check has found damage, or not all that was to be shown could be read.
  Result<bool> run() {
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
    return command_.action == Action::list ? list() : show();
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

  Result<bool> list() {
    const bool complete = damaged_.empty() && unread_.empty();
    const char* kind = command_.dropped ? "dropped" : "datasets";
    const DatasetRecord* taken =
        command_.dropped ? nullptr : next_to_fetch(listing_, fetching(), current_, {});
    std::vector<ScavengedDataset> scavenged;
    if (!command_.dropped) scavenged = find_scavenged(files_, settings_, listing_, log_);
    if (command_.json) {
      write_json(out_,
                 {{"prefix", folder_.prefix},
                  {"current", current_.empty() ? Json() : Json(current_)},
                  {"restart", taken == nullptr ? Json() : Json(taken->info.name)},
                  {"scavenged", json_of(scavenged)},
                  {"damaged", damaged_},
                  {"unread", reasons_of(unread_)}},
                 kind, listing_);
      return complete;
    }
    if (listing_.empty())
      out_ << folder_.prefix << ": no " << (command_.dropped ? "dropped datasets\n" : "datasets\n");
    else
      out_ << dataset_table(listing_, taken, command_.columns, command_.has_colour);
    out_ << scavenged_text(scavenged);
    if (const std::string note = note_of_scr(files_, folder_); !note.empty())
      out_ << printable(note) << "\n";
    return complete;
  }

  Result<bool> show() {
    CAIRN_TRY(find());
    const DatasetRecord* current = find_named(listing_, current_);
    const bool is_current = current != nullptr && current->info.uuid == record_.info.uuid;
    Json json = {{"prefix", folder_.prefix},
                 {"dataset", json_of(record_)},
                 {"current", is_current},
                 {"dropped", dropped_}};
    if (!command_.json) out_ << dataset_text(record_, is_current, dropped_);
    bool complete = true;
    if (command_.files) {
      CAIRN_ASSIGN(complete, show_files(json));
    }
    Result<bool> good = command_.check ? check(json) : true;
    if (good && command_.json) out_ << text_of_json(json);
    return good.map([&](bool intact) { return intact && complete; });
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
      CAIRN_TRY(refuse_unread_name(command_.name, folder_.prefix, unread_));
      CAIRN_TRY(refuse_unread_name(command_.name, folder_.prefix, dropped.unread));
      return fail(Code::not_found, "there is no dataset {} in {}: see cairn index list",
                  command_.name, folder_.prefix);
    }
    record_ = *found;
    return {};
  }

  std::string manifests() const {
    return dropped_ ? folder_.dropped(record_.info) : folder_.dataset(record_.info);
  }

  /// False if some of the records cannot be read.
  Result<bool> show_files(Json& json) {
    std::vector<std::string> troubles;
    Json shown = Json::array();
    CAIRN_TRY(visit_ranks(files_, manifests(), record_, troubles, [&](const RankRecord& rank) {
      if (!command_.json) out_ << "rank " << rank.rank << "\n";
      for (const FileEntry& file : rank.files)
        if (command_.json) {
          Json entry = {{"rank", rank.rank}};
          entry.update(json_of(file));
          shown.push_back(std::move(entry));
        } else {
          out_ << fmt::format("{:>16}  {}{}\n", file.size, printable(file.name),
                              file.part ? " (shared)" : "");
        }
    }));
    for (const std::string& trouble : troubles) log_.warning("{}", trouble);
    json["files"] = std::move(shown);
    json["troubles"] = troubles;
    return troubles.empty();
  }

  Result<bool> check(Json& json) {
    const auto background = make_background_thread();
    CAIRN_ASSIGN(const CheckAccount account,
                 check_dataset(files_, {*background, checking_threads}, folder_, manifests(),
                               record_, CheckDepth::blocks));
    json["check"] = {
        {"files", account.files}, {"bytes", account.bytes}, {"troubles", account.troubles}};
    if (command_.json) return account.troubles.empty();
    for (const std::string& trouble : account.troubles) out_ << "bad: " << trouble << "\n";
    out_ << fmt::format("{} files read, {}\n", account.files,
                        account.troubles.empty() ? "all unchanged" : "not all good");
    return account.troubles.empty();
  }

  const IndexCommand& command_;
  Files& files_;
  const Settings& settings_;
  const PrefixFolder folder_;
  std::ostream& out_;
  const Log& log_;
  Listing listing_;
  std::vector<std::string> damaged_;
  std::vector<UnreadDataset> unread_;
  std::string current_;
  DatasetRecord record_;  ///< the one to show
  bool dropped_ = false;
};

std::string_view name_of(Action action) {
  switch (action) {
    case Action::list:
      return "list";
    case Action::show:
      return "show";
    case Action::current:
      return "current";
    case Action::drop:
      return "drop";
    case Action::drop_after:
      return "drop_after";
    case Action::remove:
      return "delete";
    case Action::add:
      return "add";
    case Action::build:
      return "build";
    case Action::quarantine:
      return "quarantine";
    case Action::lift:
      return "lift";
    case Action::add_files:
      return "add";
    case Action::import:
      return "import";
  }
  return "";
}

/// Who has the dataset of this number, where the index does not list it.
enum class Holder { nobody, scavenge, scr };

Result<Holder> holder_of(std::uint64_t number, Files& files, const PrefixFolder& folder) {
  std::vector<std::string> damaged;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged));
  const auto has_number = [&](const DatasetRecord& record) { return record.info.number == number; };
  if (std::any_of(listing.begin(), listing.end(), has_number)) return Holder::nobody;
  CAIRN_ASSIGN(const auto saved, find_saved(files, folder));
  if (std::any_of(saved.begin(), saved.end(),
                  [&](const auto& one) { return one.number == number; }))
    return Holder::scavenge;
  const bool is_of_scr = files.info(scr_dataset_folder(folder.prefix, number)).has_value();
  return is_of_scr ? Holder::scr : Holder::nobody;
}

/// False if build has found what cannot be read, or import has refused some.
Result<bool> change(const IndexCommand& command, Files& files, Clock& clock,
                    const Settings& settings, std::ostream& out, const Log& log) {
  CAIRN_TRY(check_prefix_folder(files, settings.prefix));
  CAIRN_ASSIGN(const IndexChange done, change_index(command, files, clock, settings, log));
  if (command.json)
    write_json(out,
               {{"prefix", settings.prefix},
                {"action", name_of(command.action)},
                {"damaged", done.damaged},
                {"unread", done.unread},
                {"refused", done.refused}},
               "datasets", done.datasets);
  else
    for (const std::string& line : done.lines) out << printable(line) << "\n";
  for (const std::string& damaged : done.damaged) log.error("cannot be read: {}", damaged);
  for (const std::string& unread : done.unread) log.error("cannot be read now: {}", unread);
  for (const std::string& refused : done.refused) log.error("not imported: {}", refused);
  return done.damaged.empty() && done.unread.empty() && done.refused.empty();
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
  Result<bool> good = false;
  const auto resolved = read_job_settings(command.source, files, process, log);
  Result<Holder> holder = Holder::nobody;
  if (resolved && command.action == Action::build && command.number)
    holder = holder_of(*command.number, files, {resolved->settings.prefix});
  if (holder && *holder == Holder::scavenge) {  // as SCR's command does
    const PublishCommand publish{
        command.source, {std::to_string(*command.number)}, command.force, false, command.json};
    return run_publish_command(publish, files, clock, process, out, log);
  }
  if (!resolved)
    good = tl::unexpected(resolved.error());
  else if (!holder)
    good = tl::unexpected(holder.error());
  else if (*holder == Holder::scr)
    good =
        fail(Code::not_found,
             "only SCR has dataset {} in {}: \"cairn index import\" imports it; where SCR "
             "scavenged it and has not rebuilt it, run SCR's own \"scr_index --build {}\" before",
             *command.number, resolved->settings.prefix, *command.number);
  else if (command.action == Action::list || command.action == Action::show)
    good = Reader(command, files, resolved->settings, out, log).run();
  else
    good = change(command, files, clock, resolved->settings, out, log);
  if (!good && resolved)
    log.error("{}", text_of(good.error(), command, files, {resolved->settings.prefix}));
  else if (!good)
    log.error("{}", good.error().text);
  out << std::flush;
  return good && *good && out ? exit_ok : exit_failure;
}

}  // namespace cairn
