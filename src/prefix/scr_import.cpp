#include "prefix/scr_import.hpp"

#include <algorithm>

#include "prefix/check.hpp"
#include "prefix/unread.hpp"

namespace cairn {
namespace {

DatasetInfo info_of(const ScrDataset& dataset) {
  DatasetInfo info;
  info.uuid = dataset.uuid();
  info.number = dataset.id;
  info.checkpoint = dataset.checkpoint;
  info.flags = (dataset.checkpoint != 0 ? 1U : 0U) | (dataset.output ? 2U : 0U);
  info.ranks = static_cast<std::uint32_t>(dataset.ranks.size());
  info.name = dataset.name;
  return info;
}

/// On rank 0.
class Preparation {
 public:
  Preparation(const Site& site, ScrIndex& index, std::size_t number, const ImportAs& as)
      : site_(site), index_(index), number_(number), dataset_(index.datasets[number]), as_(as) {}

  Result<FoundDataset> run() {
    read_details(number_);
    if (!dataset_.trouble.empty())
      return fail(dataset_.may_pass ? Code::io : Code::invalid, "{}", dataset_.trouble);
    CAIRN_TRY(refuse_written_again());
    return as_found();
  }

 private:
  void read_details(std::size_t number) {
    read_scr_details(site_.files, site_.folder.prefix, index_.datasets[number]);
  }

  using Owners = std::map<std::string, std::string>;  ///< by the name of a file

  /// Files written again under the names of an older dataset do not belong to that dataset any
  /// more.
  Status refuse_written_again() {
    Owners owners;
    for (std::size_t newer = number_ + 1; newer < index_.datasets.size(); ++newer) {
      read_details(newer);
      if (index_.datasets[newer].may_pass) return fail_as_unknown(index_.datasets[newer].trouble);
      for (const auto& of_rank : index_.datasets[newer].ranks)
        for (const ScrFile& file : of_rank) owners[file.name] = index_.datasets[newer].label();
    }
    Listing newer = site_.keeper->known().listing;
    std::erase_if(newer, [&](const auto& one) { return one.info.uuid <= dataset_.uuid(); });
    std::vector<std::string> troubles;
    CAIRN_ASSIGN(const FileOwners ours,
                 owners_of_files(site_.files, site_.folder, newer, &troubles));
    if (!troubles.empty()) return fail_as_unknown(troubles.front());
    for (const auto& [name, owner] : ours) owners[name] = "dataset " + owner.name;
    CAIRN_TRY(add_dropped(owners));
    for (const auto& of_rank : dataset_.ranks)
      for (const ScrFile& file : of_rank)
        if (const auto owner = owners.find(file.name); owner != owners.end())
          return fail(Code::invalid, "{} was written again for {}",
                      site_.folder.prefix + "/" + file.name, owner->second);
    return {};
  }

  /// The files of a dropped dataset stay in the prefix directory. Those of a purged one are
  /// deleted, with its manifests.
  Status add_dropped(Owners& owners) const {
    CAIRN_ASSIGN(const Dropped dropped, read_dropped(site_.files, site_.folder));
    CAIRN_TRY(check_unread(UnreadMatters::import_scr, dropped.unread, {dataset_.uuid()}));
    std::vector<std::string> troubles;
    for (const DatasetRecord& one : dropped.listing) {
      const std::string folder = site_.folder.dropped(one.info);
      const auto manifest = site_.files.info(DatasetFolder::manifest(folder, 0));
      const bool is_purged = !manifest && manifest.error().code == Code::not_found;
      if (is_purged || one.info.uuid <= dataset_.uuid() || one.info.was_found()) continue;
      CAIRN_TRY(visit_ranks(site_.files, folder, one, troubles, [&](const RankRecord& rank) {
        for (const FileEntry& file : rank.files) owners[file.name] = "dropped " + one.label();
      }));
    }
    return troubles.empty() ? Status{} : fail_as_unknown(troubles.front());
  }

  static Status fail_as_unknown(const std::string& trouble) {
    return fail(Code::io,
                "it is unknown whether its files were written again for a newer dataset: {}",
                trouble);
  }

  FoundDataset as_found() const {
    FoundDataset found;
    found.record = record_of_scr(dataset_);
    if (dataset_.failed) found.record.failed_us = site_.clock.now_us();
    for (const auto& of_rank : dataset_.ranks) {
      std::vector<std::string>& names = found.files.emplace_back();
      for (const ScrFile& file : of_rank) {
        names.push_back(file.name);
        RecordedFile& recorded = found.recorded[file.name];
        if (file.size) recorded.size = file.size;
        if (file.crc32) recorded.crc32 = file.crc32;
      }
    }
    found.node = as_.node;
    found.block_bytes = as_.block_bytes;
    found.totals = {dataset_.files, dataset_.bytes};
    return found;
  }

  const Site& site_;
  ScrIndex& index_;
  const std::size_t number_;
  const ScrDataset& dataset_;
  const ImportAs& as_;
};

}  // namespace

DatasetRecord record_of_scr(const ScrDataset& dataset) {
  DatasetRecord record;
  record.info = info_of(dataset);
  record.info.flags |= flag_in_place | flag_found;
  record.job_id = dataset.job_id;
  if (dataset.failed) {
    record.failed_us = dataset.created_us;
    record.failure = "SCR has recorded that a restart from it failed";
  }
  return record;
}

std::optional<std::string> first_missing(Files& files, const std::string& prefix,
                                         const ScrDataset& dataset) {
  if (!dataset.trouble.empty()) return dataset.trouble;
  for (const auto& of_rank : dataset.ranks)
    for (const ScrFile& file : of_rank) {
      const std::string path = prefix + "/" + file.name;
      const auto info = files.info(path);
      if (!info) return info.error().text;
      if (file.size && info->size != *file.size)
        return fmt::format("{} has {} bytes, and {} are recorded", path, info->size, *file.size);
    }
  return std::nullopt;
}

Listing unknown_of_scr(const ScrIndex& index, const Listing& listing, const Dropped& dropped) {
  Listing unknown;
  for (const ScrDataset& dataset : index.datasets) {
    const Uuid uuid = dataset.uuid();
    const bool may_be_whole = dataset.trouble.empty() || dataset.is_damaged();
    if (may_be_whole && find_in(listing, uuid) == nullptr && !dropped.has(uuid))
      insert(unknown, record_of_scr(dataset));
  }
  return unknown;
}

ChoiceWithScr choice_with_scr(const Listing& unknown, const std::string& current_of_scr,
                              const Listing& listing, const std::string& current) {
  ChoiceWithScr choice{listing, current};
  for (const DatasetRecord& record : unknown) insert(choice.listing, record);
  const auto newest = std::find_if(listing.begin(), listing.end(),
                                   [](const auto& one) { return one.info.is_checkpoint(); });
  const Uuid known = newest == listing.end() ? Uuid{} : newest->info.uuid;
  const bool used_scr_last = std::any_of(unknown.begin(), unknown.end(), [&](const auto& record) {
    return record.info.is_checkpoint() && record.info.uuid > known;
  });
  if (used_scr_last) choice.current = current_of_scr;
  return choice;
}

Result<FlushAccount> import_dataset(Communicator& comm, const Site& site, ScrIndex* index,
                                    std::size_t number, const ImportAs& as) {
  Result<FoundDataset> found;
  if (index != nullptr) found = Preparation(site, *index, number, as).run();
  CAIRN_TRY(agree(comm, found ? Status{} : Status(tl::unexpected(found.error()))));
  return publish_found(comm, site, *std::move(found));
}

}  // namespace cairn
