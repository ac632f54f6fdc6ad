// cairn index current and quarantine.
#include "prefix/choose_current.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/unread.hpp"
#include "records/state_words.hpp"
#include "tools/index/index_actions.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

constexpr std::string_view usable_again = "can be used by a restart again";

std::string text_of_replaced(const DatasetRecord& record) {
  return "no restart uses it: " + cause_of_replacement(record.replaced_by);
}

/// A dataset that only the caches have.
Status lift_cached(IndexChange& change) {
  Listing attempts = change.keeper.known().attempts;
  CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(attempts, change.command.name));
  if (found == nullptr) return fail_as_unknown(change.command, change.site.folder);
  const DatasetRecord record = *found;
  std::erase(attempts, record);
  CAIRN_TRY(change.keeper.set_attempts(std::move(attempts)));
  note(change.report, record, usable_again);
  return {};
}

}  // namespace

std::string said_of_current(const DatasetRecord& record) {
  if (may_be_fetched(record, fetching()))
    return "is current: a restart uses it, unless the caches have a newer checkpoint";
  if (state_of(record) == PrefixState::replaced)
    return "is current, but " + text_of_replaced(record);
  return fmt::format(
      "is current, but no restart uses it, because it {}; cairn index quarantine --lift {} allows "
      "it again",
      words_of(state_of(record)).sentence, record.info.name);
}

Status set_current(IndexChange& change) {
  CAIRN_ASSIGN(const DatasetRecord record, change.named());
  if (!record.info.is_checkpoint())
    return fail(Code::bad_argument, "{} is not a checkpoint, so no restart can use it",
                record.label());
  const std::string& name = record.info.name;
  CAIRN_TRY(check_unread(UnreadMatters::choose, change.keeper.known().unread,
                         {record.info.uuid, name, change.site.folder.prefix}));
  if (find_named(change.keeper.known().listing, name)->info.uuid != record.info.uuid)
    return fail(Code::bad_argument,
                "{} is not the newest of that name, which a restart would take: drop the newer "
                "ones first (cairn index drop)",
                record.label());
  CAIRN_TRY(choose_current(change.site, change.keeper, record.info));
  note(change.report, record, said_of_current(record));
  return {};
}

Status set_quarantine(IndexChange& change) {
  const bool is_lift = change.command.action == IndexCommand::Action::lift;
  CAIRN_ASSIGN(const DatasetRecord* listed,
               find_dataset(change.keeper.known().listing, change.command.name));
  if (listed == nullptr && is_lift) return lift_cached(change);
  CAIRN_ASSIGN(DatasetRecord record, change.named());
  record.quarantined = !is_lift;
  if (is_lift) {
    record.attempts = 0;
    record.failed_us = 0;
    record.failure.clear();
  }
  CAIRN_TRY(change.keeper.update(record));
  if (!is_lift)
    note(change.report, record, "is quarantined: no restart uses it");
  else if (record.replaced_by.empty())
    note(change.report, record, usable_again);
  else
    note(change.report, record, "is not in quarantine, but " + text_of_replaced(record));
  return {};
}

}  // namespace cairn
