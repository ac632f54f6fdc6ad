#include "prefix/scr_imports.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/count.hpp"
#include "base/units.hpp"
#include "prefix/fetch_order.hpp"

namespace cairn {
namespace {

std::optional<std::size_t> share(Communicator& comm, std::optional<std::size_t> number) {
  auto shared = static_cast<std::int64_t>(number.value_or(0)) + (number ? 1 : 0);
  comm.bcast(mutable_bytes_of(shared), 0);
  return shared == 0 ? std::nullopt : std::optional(static_cast<std::size_t>(shared - 1));
}

}  // namespace

void ScrImports::look(Files& files) {
  if (index_ || !may_have_scr_index(files, settings_.prefix)) return;
  auto read = read_scr_index(files, settings_.prefix);
  if (read) {
    index_ = *std::move(read);
    unread_.reset();
    return;
  }
  const bool is_news = !unread_ || unread_->text != read.error().text;
  unread_ = Trouble{read.error().text, may_import_later(read.error().code)};
  if (is_news)
    log_.warning("nothing that SCR left in {} is imported, as its index cannot be read: {}",
                 settings_.prefix, unread_->text);
}

std::uint64_t ScrImports::last_number() const {
  std::uint64_t last = 0;
  if (index_)
    for (const ScrDataset& dataset : index_->datasets) last = std::max(last, dataset.id);
  return last;
}

std::int64_t ScrImports::newest_us() const {
  std::int64_t newest = 0;
  if (index_)
    for (const ScrDataset& dataset : index_->datasets)
      newest = std::max(newest, dataset.created_us);
  return newest;
}

/// If the dropped datasets are unknown, nothing is imported, as they would come back.
Result<Dropped> ScrImports::dropped(const Site& site) {
  auto dropped = read_dropped(site.files, site.folder);
  if (dropped) {
    if (index_) unread_.reset();
    return dropped;
  }
  const std::string text = fmt::format("nothing that SCR left in {} is imported now: {}",
                                       settings_.prefix, dropped.error().text);
  if (!unread_ || unread_->text != text) log_.warning("{}", text);
  unread_ = Trouble{text, may_import_later(dropped.error().code)};
  return fail(dropped.error().code, "{}", text);
}

ScrFacts ScrImports::facts(const Site& site) {
  look(site.files);
  ScrFacts facts;
  if (index_) {
    if (const auto dropped = this->dropped(site)) {
      facts.unknown = unknown_of_scr(*index_, site.keeper->known().listing, *dropped);
      facts.current = index_->current;
    }
  }
  if (unread_) facts.trouble = *unread_;
  return facts;
}

std::optional<std::size_t> ScrImports::number_of(const Uuid& dataset) const {
  for (std::size_t i = 0; index_ && i < index_->datasets.size(); ++i)
    if (index_->datasets[i].uuid() == dataset) return i;
  return std::nullopt;
}

Status ScrImports::import(Communicator& comm, const Site& site, const Uuid& dataset) {
  const std::size_t number = number_of(dataset).value_or(0);
  Status imported = import_one(comm, site, number);
  if (imported) return imported;
  if (index_) {
    imported.error().text = fmt::format("{} cannot be imported: {}",
                                        index_->datasets[number].label(), imported.error().text);
    log_.warning("{}", imported.error().text);
  }
  return imported;
}

Status ScrImports::import_one(Communicator& comm, const Site& site, std::size_t number) {
  const ImportAs as{settings_.node_name, static_cast<std::uint32_t>(settings_.block_bytes)};
  const auto imported = import_dataset(comm, site, index_ ? &*index_ : nullptr, number, as);
  if (!imported) return tl::unexpected(imported.error());
  if (index_)
    log_.info("{} in {} is imported: {} of {}, {}; SCR's own records stay as they are",
              index_->datasets[number].label(), settings_.prefix,
              count_text(imported->record.files, "file"),
              count_text(imported->record.info.ranks, "rank"),
              format_bytes(imported->record.bytes));
  if (index_ && !imported->settled)
    log_.warning(
        "{} is imported, but its record is not complete yet; the next run completes it: {}",
        index_->datasets[number].label(), imported->settled.error().text);
  return {};
}

Result<std::optional<std::size_t>> ScrImports::find_unknown(const Site& site,
                                                            const std::string& name) {
  if (!index_) return std::nullopt;
  CAIRN_ASSIGN(const Dropped dropped, this->dropped(site));
  const Listing& listing = site.keeper->known().listing;
  const DatasetRecord* known = find_named(listing, name);
  const Listing unknown = unknown_of_scr(*index_, listing, dropped);
  const DatasetRecord* wanted = find_named(unknown, name);
  if (wanted == nullptr || (known != nullptr && known->info.uuid > wanted->info.uuid))
    return std::nullopt;
  return number_of(wanted->info.uuid);
}

Result<std::optional<std::size_t>> ScrImports::share_unknown(Communicator& comm, const Site& site,
                                                             const std::string& name) {
  const auto found = find_unknown(site, name);
  CAIRN_TRY(agree(comm, found ? Status{} : Status(tl::unexpected(found.error()))));
  return share(comm, found.value_or(std::nullopt));
}

/// An incomplete dataset is not reported as missing, as the program has named it.
Result<bool> ScrImports::import_named(Communicator& comm, const Site& site,
                                      const std::string& name) {
  CAIRN_ASSIGN(const auto number, share_unknown(comm, site, name));
  if (!number) return false;
  const Status imported = import_one(comm, site, *number);
  if (imported) return true;
  const Code code = imported.error().code;
  return fail(code == Code::not_found ? Code::lost : code,
              "{}, which SCR left in {}, cannot be imported: {}", name, settings_.prefix,
              imported.error().text);
}

/// It is not imported again, and later requests do not wait for it.
Status ScrImports::drop_one(Keeper& keeper, const DatasetRecord& record) {
  CAIRN_TRY(keeper.note_purged(record));
  log_.info("{}, which SCR left in {}, is dropped: no run imports it; its files stay",
            record.label(), settings_.prefix);
  return {};
}

Result<bool> ScrImports::drop_named(Communicator& comm, const Site& site, const std::string& name) {
  CAIRN_ASSIGN(const auto number, share_unknown(comm, site, name));
  if (!number) return false;
  const Status dropped = on_keeper(comm, site, [&](Keeper& keeper) -> Status {
    CAIRN_TRY(drop_one(keeper, record_of_scr(index_->datasets[*number])));
    return keeper.save_listing();
  });
  CAIRN_TRY(dropped);
  return true;
}

Status ScrImports::import_to_delete(Communicator& comm, const Site& site, const std::string& name) {
  const auto imported = import_named(comm, site, name);
  if (imported) return {};
  if (may_import_later(imported.error().code)) return tl::unexpected(imported.error());
  CAIRN_ASSIGN(const bool is_dropped, drop_named(comm, site, name));
  if (is_dropped && index_) log_.warning("{}", imported.error().text);
  return {};
}

Status ScrImports::drop_newer(const Site& site, const Uuid& than) {
  if (!index_) return {};
  CAIRN_ASSIGN(const Dropped dropped, this->dropped(site));
  for (const DatasetRecord& record : unknown_of_scr(*index_, site.keeper->known().listing, dropped))
    if (than < record.info.uuid && record.info.is_checkpoint() && !record.info.is_output())
      CAIRN_TRY(drop_one(*site.keeper, record));
  return {};
}

Status ScrImports::pass_over(Communicator& comm, const Site& site) {
  constexpr std::string_view what = "what of SCR's datasets SCR_PREFIX_PURGE=1 is to pass over";
  return on_keeper(comm, site, [&](Keeper& keeper) -> Status {
    if (!index_ && unread_ && unread_->may_pass)
      return fail(Code::io, "it is unknown {}: {}", what, unread_->text);
    if (!index_) return {};
    CAIRN_ASSIGN(const Dropped dropped, this->dropped(site));
    std::vector<std::string> names;
    for (ScrDataset& dataset : index_->datasets) {
      read_scr_details(site.files, settings_.prefix, dataset);
      if (dataset.may_pass) return fail(Code::io, "it is unknown {}: {}", what, dataset.trouble);
      if (!dataset.trouble.empty() && !dataset.is_damaged()) continue;
      const Listing unknown = unknown_of_scr({"", {dataset}}, keeper.known().listing, dropped);
      if (unknown.empty()) continue;
      CAIRN_TRY(keeper.note_purged(unknown.front()));
      names.push_back(dataset.name);
    }
    if (!names.empty())
      log_.info(
          "SCR_PREFIX_PURGE=1: {} of SCR's datasets are not imported, and their files stay "
          "in {}: {}",
          names.size(), settings_.prefix, fmt::join(names, ", "));
    return {};
  });
}

std::string ScrImports::why_useless(const Site& site) const {
  if (unread_) return unread_->text;
  if (!index_) return "";
  const auto dropped = read_dropped(site.files, site.folder);
  if (!dropped) return dropped.error().text;
  for (const DatasetRecord& left : unknown_of_scr(*index_, site.keeper->known().listing, *dropped))
    if (!settings_.fetch && left.info.is_checkpoint())
      return fmt::format("{}, which SCR left, is not imported, because SCR_FETCH=0", left.label());
  for (auto dataset = index_->datasets.rbegin(); dataset != index_->datasets.rend(); ++dataset) {
    if (dataset->checkpoint == 0 || dropped->has(dataset->uuid())) continue;
    if (!dataset->trouble.empty())
      return fmt::format("{} cannot be imported: {}", dataset->label(), dataset->trouble);
    if (dataset->failed)
      return fmt::format("{} is passed over: SCR has recorded that a restart from it failed",
                         dataset->label());
  }
  return "";
}

void ScrImports::forget_transient_errors() {
  const bool was_read_in_vain =
      index_ && std::any_of(index_->datasets.begin(), index_->datasets.end(),
                            [](const ScrDataset& dataset) { return dataset.may_pass; });
  if (was_read_in_vain) index_.reset();
  if (index_ && unread_ && unread_->may_pass) unread_.reset();
}

}  // namespace cairn
