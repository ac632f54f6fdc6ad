#include "restart/passed_over.hpp"

#include <algorithm>

#include "base/local_time.hpp"
#include "prefix/attempt_book.hpp"
#include "prefix/fetch_order.hpp"
#include "records/state_words.hpp"

namespace cairn {
namespace {

class Report {
 public:
  Report(const RestartFacts& facts, const Settings& settings, const std::set<Uuid>& tried,
         const Uuid& offered, bool is_reason_known)
      : facts_(facts),
        settings_(settings),
        tried_(tried),
        offered_(offered),
        is_newest_wanted_(offered == Uuid{} && !is_reason_known) {}

  PassedOver run() {
    add_current();
    for (const DatasetRecord& record : facts_.listing)
      add(record, tried_.contains(record.info.uuid));
    for (const DatasetRecord& record : facts_.cached_attempts)
      if (state_of(record) == PrefixState::quarantined) add(record, false);
    if (is_newest_wanted_ && !facts_.damaged.empty())
      found_.newest = fmt::format("its record cannot be read: {}", facts_.damaged.front());
    return std::move(found_);
  }

 private:
  void add(const DatasetRecord& record, bool is_logged) {
    if (!record.info.is_checkpoint() || record.info.uuid <= offered_) return;
    const std::string text = fmt::format("{} {}", record.label(), why(record));
    if (std::exchange(is_newest_wanted_, false))
      found_.newest = text;
    else if (is_marked(record) && !is_logged)
      found_.warnings.push_back(text);
  }

  static bool is_marked(const DatasetRecord& record) { return !may_restart_from(state_of(record)); }

  std::string why(const DatasetRecord& record) const {
    if (const std::string mark = why_marked(record); !mark.empty())
      return fmt::format("is not used: {}{}", mark, what_brings_back(record));
    if (const std::string unfit = why_unfit(record, facts_.ranks, settings_); !unfit.empty())
      return fmt::format("is not used: {}", unfit);
    if (tried_.contains(record.info.uuid)) return "was tried, but could not be used";
    if (settings_.on_fetch_fail == OnFetchFail::fresh)
      return "is not tried, because CAIRN_ON_FETCH_FAIL=fresh";
    return "is not tried";
  }

  std::string what_brings_back(const DatasetRecord& record) const {
    const bool is_listed = find_in(facts_.listing, record.info.uuid) != nullptr;
    const PrefixState state = state_of(record);
    if (state == PrefixState::quarantined)
      return ". " + text_of_lifting(record, is_listed, settings_);
    if (state == PrefixState::replaced) return "";
    return fmt::format(
        "; \"cairn verify --repair {0}\" repairs it if that is possible, and \"cairn index "
        "quarantine --lift {0}\" lets restarts use it again",
        record.info.name);
  }

  /// Warns if the caches offer a checkpoint other than the current one of the prefix directory. An
  /// older newest one there is normal, and not logged.
  void add_current() {
    const DatasetRecord* current = find_named(facts_.listing, facts_.current);
    if (offered_ == Uuid{} || current == nullptr || !current->info.is_checkpoint()) return;
    if (tried_.contains(offered_) || tried_.contains(current->info.uuid)) return;  // logged already
    if (current->info.uuid > offered_ && !is_marked(*current)) {
      found_.warnings.push_back(fmt::format(
          "{}, the current dataset of {}, {}. The restart uses an older checkpoint from the caches",
          current->label(), settings_.prefix, why(*current)));
      return;
    }
    const bool went_back =
        std::any_of(facts_.listing.begin(), facts_.listing.end(), [&](const auto& record) {
          return record.info.is_checkpoint() && record.info.uuid > current->info.uuid;
        });
    if (current->info.uuid < offered_ && went_back && settings_.current.empty())
      found_.warnings.push_back(fmt::format(
          "{}, the current dataset of {}, is not used: the caches have a newer checkpoint. To use "
          "it nevertheless, delete the caches by setting SCR_CACHE_PURGE=1 for one run",
          current->label(), settings_.prefix));
  }

  const RestartFacts& facts_;
  const Settings& settings_;
  const std::set<Uuid>& tried_;
  const Uuid offered_;
  bool is_newest_wanted_;
  PassedOver found_;
};

}  // namespace

std::string why_marked(const DatasetRecord& record) {
  const PrefixState state = state_of(record);
  const std::string_view sentence = words_of(state).sentence;
  switch (state) {
    case PrefixState::quarantined:
      return fmt::format("it {}, {}", sentence, why_in_quarantine(record));
    case PrefixState::replaced:
      return fmt::format("it {}: {}", sentence, cause_of_replacement(record.replaced_by));
    case PrefixState::failed:
      return fmt::format("an earlier restart from it failed ({}: {})",
                         format_local_time(record.failed_us / 1'000'000), record.failure);
    default:
      return "";
  }
}

std::string why_unfit(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings) {
  if (!settings.fetch) return "SCR_FETCH=0 is set, so nothing is fetched";
  if (has_right_ranks(record, ranks, settings)) return "";
  return text_of_other_ranks(record.info.ranks, ranks) +
         (settings.on_mismatch == OnMismatch::fresh ? "; CAIRN_ON_MISMATCH=fresh passes it over"
                                                    : "");
}

std::string text_of_other_ranks(std::uint32_t written_by, std::uint32_t ranks) {
  const std::string_view reason = words_of(CacheState::other_ranks).reason;
  return fmt::format("{}, and this run has {}",
                     fmt::format(fmt::runtime(reason), fmt::arg("ranks", written_by)), ranks);
}

PassedOver passed_over(const RestartFacts& facts, const Settings& settings,
                       const std::set<Uuid>& tried, const Uuid& offered, bool is_reason_known) {
  return Report(facts, settings, tried, offered, is_reason_known).run();
}

}  // namespace cairn
