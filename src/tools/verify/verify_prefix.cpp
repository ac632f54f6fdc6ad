#include <algorithm>
#include <map>

#include "base/units.hpp"
#include "prefix/repair_files.hpp"
#include "prefix/tidy.hpp"
#include "prefix/unread.hpp"
#include "recovery/dead_caches.hpp"
#include "recovery/remains.hpp"
#include "restart/passed_over.hpp"
#include "tools/as_owner.hpp"
#include "tools/record_json.hpp"
#include "tools/verify/verify_places.hpp"

namespace cairn {
namespace {

/// A rank whose files are not what was flushed.
struct BadRank {
  RankRecord record;
  RankCheck found;
  bool is_repairable = false;
};

class PrefixVerifier {
 public:
  PrefixVerifier(const VerifyCommand& command, Files& files, Clock& clock, const Settings& settings,
                 const Log& log)
      : command_(command),
        files_(files),
        clock_(clock),
        settings_(settings),
        folder_{settings.prefix},
        log_(log),
        background_(make_background_thread()),
        io_{*background_, checking_threads} {}

  Result<std::vector<Verified>> run() {
    CAIRN_TRY(check_prefix_folder(files_, folder_.prefix));
    std::vector<std::string> unreadable;
    // The records themselves: a listing is only a copy of them.
    CAIRN_ASSIGN(listing_, read_records(files_, folder_.datasets(), unreadable, &io_, &unread_));
    find_sources();
    std::vector<Verified> found;
    for (const UnreadDataset& unread : unread_)
      if (command_.datasets.empty() || may_be_wanted(unread))
        found.push_back(without_record(unread));
    if (command_.datasets.empty())
      for (const std::string& record : unreadable) found.push_back(without_record(record));
    for (const DatasetRecord& record : listing_)
      if (is_wanted(command_.datasets, record.info.uuid, record.info.number, record.info.name))
        found.push_back(verify(record));
    if (is_any_repairable_ && command_.repair) CAIRN_TRY(repair(found));
    if (found.empty())
      CAIRN_TRY(check_unread(
          UnreadMatters::find, unread_,
          {{}, fmt::format("{}", fmt::join(command_.datasets, " or ")), folder_.prefix}));
    return found;
  }

 private:
  /// A newer one of the name, or number, by which one is known.
  bool may_be_wanted(const UnreadDataset& unread) const {
    return std::any_of(
        command_.datasets.begin(), command_.datasets.end(), [&](const std::string& word) {
          const auto known = std::find_if(listing_.begin(), listing_.end(), [&](const auto& one) {
            return is_named(word, one.info.uuid, one.info.number, one.info.name);
          });
          return known != listing_.end() &&
                 !check_unread_name(word, folder_.prefix, {unread}, &*known);
        });
  }

  Verified without_record(const std::string& trouble) const {
    Verified found;
    found.place = folder_.prefix;
    found.state = Verified::State::lost;
    found.bad = {trouble};
    found.reasons = {"there is no second copy of a dataset's record"};
    return found;
  }

  Verified without_record(const UnreadDataset& unread) const {
    Verified found;
    found.place = folder_.prefix;
    found.state = Verified::State::unreadable;
    found.uuid = text_of(unread.uuid);
    found.bad = {unread.why};
    return found;
  }

  /// Where parts of datasets lie that files may be repaired from.
  void find_sources() {
    std::vector<std::string> caches = caches_of_job(files_, settings_).used;
    for (const std::string& folder : command_.caches)
      if (const Status found = find_caches(files_, folder, caches, log_); !found)
        log_.warning("{}; it is ignored", found.error().text);
    const auto saved = saved_caches(files_, folder_);
    if (!saved) log_.warning("{}; it is ignored", saved.error().text);
    if (saved) caches.insert(caches.end(), saved->begin(), saved->end());
    for (const std::string& cache : caches) {
      const auto all = find_remains(files_, {cache});
      if (!all) log_.warning("{}; it is ignored", all.error().text);
      for (const Remains& remains : all.value_or(std::vector<Remains>{}))
        for (const HeldPart& part : remains.parts)
          sources_[{remains.uuid, part.owner}].push_back(part.folder);
    }
  }

  Verified verify(const DatasetRecord& record) {
    Verified found;
    found.place = folder_.prefix;
    found.number = record.info.number;
    found.name = record.info.name;
    found.uuid = text_of(record.info.uuid);
    found.ranks = record.info.ranks;
    found.replaced_by = record.replaced_by;
    std::vector<BadRank> bad;
    const auto account =
        check_dataset(files_, io_, folder_, folder_.dataset(record.info), record,
                      CheckDepth::blocks, [&](const RankRecord& rank, const RankCheck& check) {
                        bad.push_back({rank, check, false});
                      });
    if (!account) {
      found.state = Verified::State::lost;
      found.reasons.push_back(account.error().text);
      return found;
    }
    found.files = account->files;
    found.bytes = account->bytes;
    found.bad = account->troubles;
    if (found.bad.empty() && record.replaced_by.empty()) found.passed_over = why_marked(record);
    // A newer dataset may have the same bytes by chance: the files are that one's all the same.
    if (found.bad.empty() && !record.replaced_by.empty()) found.state = Verified::State::replaced;
    if (found.bad.empty() && has_other_attributes(record)) is_any_repairable_ = true;
    if (found.bad.empty()) return found;
    std::size_t of_files = 0;
    for (const BadRank& rank : bad) of_files += rank.found.troubles.size();
    if (of_files < found.bad.size())
      found.reasons.push_back("a manifest cannot be repaired: no cache has it");
    judge(record, bad, found);
    bad_[record.info.uuid] = std::move(bad);
    return found;
  }

  /// All its bytes are right.
  bool has_other_attributes(const DatasetRecord& record) const {
    if (!command_.repair || !may_have_other_attributes(record)) return false;
    bool any = false;
    std::vector<std::string> unread;
    const Status visited = visit_ranks(
        files_, folder_.dataset(record.info), record, unread, [&](const RankRecord& rank) {
          any = any || !files_with_other_attributes(files_, folder_, rank).empty();
        });
    return visited && any;
  }

  bool may_have_other_attributes(const DatasetRecord& record) const {
    return settings_.copy_metadata && record.settled && !record.info.in_place() &&
           record.replaced_by.empty();
  }

  void judge(const DatasetRecord& record, std::vector<BadRank>& bad, Verified& found) {
    const auto options = options_for(record, bad);
    const bool may_pass = !options && options.error().code == Code::io && found.reasons.empty();
    if (options && found.reasons.empty() && is_replaced(bad, *options)) {
      found.state = Verified::State::replaced;
      return;
    }
    if (!options) found.reasons.push_back(options.error().text);
    if (!record.settled)
      found.reasons.push_back("its files still have temporary names, which the next run replaces");
    bool is_lost = !found.reasons.empty();
    for (BadRank& rank : bad) {
      if (!options || !record.settled) break;
      const Status can = can_repair_files(files_, folder_, rank.record, rank.found,
                                          sources_of(rank.record), *options);
      rank.is_repairable = can.has_value();
      is_any_repairable_ = is_any_repairable_ || rank.is_repairable;
      if (can) continue;
      found.reasons.push_back(can.error().text);
      is_lost = is_lost || can.error().code != Code::wrong_state;
    }
    const auto otherwise = may_pass ? Verified::State::unreadable : Verified::State::lost;
    if (found.reasons.empty())
      found.state = Verified::State::repairable;
    else
      found.state = is_lost ? otherwise : Verified::State::changed;
  }

  /// Nothing of it is damaged but what the program has written again.
  static bool is_replaced(const std::vector<BadRank>& bad, const RepairOptions& options) {
    return std::all_of(bad.begin(), bad.end(), [&](const BadRank& rank) {
      const auto files = damaged_files(rank.record, rank.found);
      return std::all_of(files.begin(), files.end(), [&](std::size_t file) {
        return options.not_to_touch.contains(rank.record.files[file].name);
      });
    });
  }

  Result<RepairOptions> options_for(const DatasetRecord& record, const std::vector<BadRank>& bad) {
    RepairOptions options{settings_.copy_metadata, {}};
    std::set<std::string> names;
    for (const BadRank& rank : bad)
      for (const std::size_t file : damaged_files(rank.record, rank.found))
        names.insert(rank.record.files[file].name);
    CAIRN_TRY(check_unread(UnreadMatters::give_names, unread_, {record.info.uuid}));
    CAIRN_ASSIGN(options.not_to_touch, names_taken(files_, folder_, record, listing_, names));
    return options;
  }

  const std::vector<RankFolder>& sources_of(const RankRecord& record) {
    return sources_[{record.dataset.uuid, record.rank}];
  }

  Status repair(std::vector<Verified>& found) {
    return as_owner({"cairn verify", command_.force}, files_, clock_, settings_, log_,
                    [&](Communicator& comm, const Site& site) -> Status {
                      // What a run has not flushed to its end is left to the next run.
                      const Status tidied = tidy(comm, site, {}, Unfinished::left);
                      listing_ = site.keeper->known().listing;
                      unread_ = site.keeper->known().unread;
                      if (!tidied && has_unsettled(listing_)) return tidied;
                      if (!tidied)
                        log_.warning("an unfinished flush of an earlier run stays as it is: {}",
                                     tidied.error().text);
                      for (Verified& one : found) CAIRN_TRY(repair(*site.keeper, one));
                      return {};
                    });
  }

  Status repair(Keeper& keeper, Verified& found) {
    const auto record = std::find_if(listing_.begin(), listing_.end(), [&](const auto& one) {
      return text_of(one.info.uuid) == found.uuid;
    });
    if (record == listing_.end()) return {};  // another process has removed it meanwhile
    const std::vector<BadRank>& bad = bad_[record->info.uuid];
    if (found.bad.empty() && may_have_other_attributes(*record))
      return restore_attributes_of(*record, found);
    if (std::none_of(bad.begin(), bad.end(),
                     [](const BadRank& rank) { return rank.is_repairable; }))
      return {};
    CAIRN_ASSIGN(const RepairOptions options, options_for(*record, bad));
    std::uint64_t files = 0;
    for (const BadRank& rank : bad) {
      if (!rank.is_repairable) continue;
      const Status repaired = repair_rank(rank, options);
      if (!repaired) CAIRN_TRY(note_failed_repair(repaired.error(), found));
      if (repaired) files += damaged_files(rank.record, rank.found).size();
    }
    if (files > 0) found.repaired = fmt::format("{} files were rewritten from the caches", files);
    if (found.reasons.empty()) found.state = Verified::State::repaired;
    return found.reasons.empty() ? offer_again(keeper, *record, found) : Status{};
  }

  Status restore_attributes_of(const DatasetRecord& record, Verified& found) {
    std::set<std::string> names;
    std::vector<RankRecord> ranks;
    std::vector<std::string> unread;
    CAIRN_TRY(visit_ranks(files_, folder_.dataset(record.info), record, unread,
                          [&](const RankRecord& rank) {
                            const auto late = files_with_other_attributes(files_, folder_, rank);
                            for (const std::size_t file : late) names.insert(rank.files[file].name);
                            if (!late.empty()) ranks.push_back(rank);
                          }));
    if (ranks.empty()) return {};
    CAIRN_TRY(check_unread(UnreadMatters::give_names, unread_, {record.info.uuid}));
    CAIRN_ASSIGN(const auto taken, names_taken(files_, folder_, record, listing_, names));
    std::size_t restored = 0;
    for (const RankRecord& rank : ranks) {
      CAIRN_ASSIGN(const std::size_t files, restore_attributes(files_, folder_, rank, taken));
      restored += files;
    }
    if (restored > 0)
      found.repaired = fmt::format(
          "{} files have their times and permissions again, which were changed though their bytes "
          "are as written",
          restored);
    return {};
  }

  static Status note_failed_repair(const Error& error, Verified& found) {
    if (error.code != Code::lost && error.code != Code::wrong_state) return tl::unexpected(error);
    const bool is_lost = found.state == Verified::State::lost || error.code == Code::lost;
    found.state = is_lost ? Verified::State::lost : Verified::State::changed;
    found.reasons.push_back(error.text);
    return {};
  }

  /// What was written is read once more.
  Status repair_rank(const BadRank& rank, const RepairOptions& options) {
    CAIRN_TRY(
        repair_files(files_, folder_, rank.record, rank.found, sources_of(rank.record), options));
    std::vector<std::string> paths;
    for (const FileEntry& file : rank.record.files) paths.push_back(folder_.file(file));
    const RankCheck again = check_rank(files_, io_, rank.record, paths, CheckDepth::blocks);
    if (again.good()) return {};
    return fail(Code::lost, "{}, even after the repair", again.troubles.front());
  }

  /// The reason for which it has failed is gone.
  Status offer_again(Keeper& keeper, DatasetRecord record, Verified& found) {
    if (record.failed_us == 0 && record.replaced_by.empty()) return {};
    record.failed_us = 0;
    record.failure.clear();
    record.replaced_by.clear();
    CAIRN_TRY(keeper.update(record));
    found.repaired += "; a restart can use it again";
    return {};
  }

  const VerifyCommand& command_;
  Files& files_;
  Clock& clock_;
  const Settings& settings_;
  const PrefixFolder folder_;
  const Log& log_;
  const std::unique_ptr<Background> background_;
  const IoThreads io_;
  Listing listing_;
  std::vector<UnreadDataset> unread_;
  bool is_any_repairable_ = false;
  std::map<std::pair<Uuid, int>, std::vector<RankFolder>> sources_;
  std::map<Uuid, std::vector<BadRank>> bad_;
};

}  // namespace

Result<std::vector<Verified>> verify_prefix(const VerifyCommand& command, Files& files,
                                            Clock& clock, const Settings& settings,
                                            const Log& log) {
  return PrefixVerifier(command, files, clock, settings, log).run();
}

}  // namespace cairn
