#include "prefix/remove_files.hpp"

#include <fmt/ranges.h>

#include <limits>
#include <numeric>

#include "prefix/check.hpp"
#include "prefix/dealt_manifests.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/own_names.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

/// The folder, if that was the last file in it, and those above that are empty then.
void remove_empty_folders(Files& files, const std::string& prefix, std::string folder) {
  while (folder.size() > prefix.size() && files.remove_folder(folder)) folder = folder_of(folder);
}

/// Collective. Of all ranks.
KeptFiles sum(Communicator& comm, KeptFiles kept) {
  for (std::int64_t* count :
       {&kept.changed, &kept.unknown, &kept.shared, &kept.doubtful, &kept.led_out})
    *count = allreduce(comm, *count, Reduce::sum);
  return kept;
}

/// What is known of the other datasets without having read which files they have.
struct Others {
  std::int64_t older = 0;           ///< there are any
  std::int64_t newer_in_place = 0;  ///< there are any, or may be
  std::int64_t next_begun_us = std::numeric_limits<std::int64_t>::max();  ///< the first newer one

  void count(const Uuid& mine, const Uuid& other, bool in_place) {
    if (other < mine) {
      older = 1;
    } else {
      newer_in_place = newer_in_place | (in_place ? 1 : 0);
      next_begun_us = std::min(next_begun_us, other.time_us);
    }
  }
};

Others others_than(const Uuid& mine, const Keeper& keeper) {
  Others others;
  for (const DatasetRecord& record : keeper.listing())
    others.count(mine, record.info.uuid, record.info.in_place());
  for (const UnreadDataset& unread : keeper.unread()) others.count(mine, unread.uuid, true);
  return others;
}

class Removal {
 public:
  Removal(Communicator& comm, const Site& site, const DeletedManifests& deleted)
      : comm_(comm), site_(site), deleted_(deleted) {}

  /// Once more, if there are doubts, when these are answered: that is rare, and then what else is
  /// done again costs nothing.
  Result<KeptFiles> run() {
    if (site_.keeper != nullptr) others_ = others_than(deleted_.uuid, *site_.keeper);
    comm_.bcast(mutable_bytes_of(others_), 0);
    CAIRN_TRY(remove_all_files());
    if (allreduce(comm_, doubts_.empty() ? 0 : 1, Reduce::max) != 0) {
      CAIRN_TRY(ask_others());
      CAIRN_TRY(remove_all_files());
    }
    return sum(comm_, kept_);
  }

 private:
  enum class Answer { not_asked, known, unknown };

  Status remove_all_files() {
    kept_ = {};
    return treat_dealt(comm_, site_.files, deleted_.folder, deleted_.numbers,
                       [&](const RankRecord& record) { return remove_files_of(record); })
        .map([](bool) {});
  }

  Status remove_files_of(const RankRecord& record) {
    CAIRN_TRY(unstage_rank(site_.files, site_.folder, record));
    CAIRN_ASSIGN(const auto led_out, folders_led_out(site_.files, site_.folder, record));
    for (const FileEntry& entry : record.files) {
      const std::string path = site_.folder.file(entry);
      if (led_out.contains(folder_of(path)))
        kept_.led_out += site_.files.info(path) ? 1 : 0;
      else
        CAIRN_TRY(remove_own_file(record.dataset, entry, path));
    }
    // They must not come back once the manifest that tells of them is gone.
    for (const std::string& folder : folders_of(site_.folder, record)) {
      if (led_out.contains(folder)) continue;
      const Status synced = sync_folder_in(site_.files, site_.folder, folder);
      if (!synced && synced.error().code != Code::not_found) return synced;
      if (!record.dataset.in_place())
        remove_empty_folders(site_.files, site_.folder.prefix, folder);
      else if (folder != site_.folder.prefix)  // those above the program has made, and may need
        (void)site_.files.remove_folder(folder);
    }
    return {};
  }

  /// A file that is no longer what the dataset wrote, because the program wrote it again since,
  /// stays; so does one of which that cannot be known, as its times were not kept.
  Status remove_own_file(const DatasetInfo& dataset, const FileEntry& entry,
                         const std::string& path) {
    const auto info = site_.files.info(path);
    if (!info && info.error().code == Code::not_found) return {};
    CAIRN_TRY(info);
    // What was written in place has the times that the program gave it.
    const bool times_kept = site_.copy_metadata || dataset.in_place();
    const bool same = info->kind == Kind::file && info->size == entry.size;
    if (!same || !times_kept || !has_time_of(*info, entry)) {
      ++(times_kept || !same ? kept_.changed : kept_.unknown);
      return {};
    }
    if (may_be_anothers(*info, dataset))
      return remove_if_no_others({hash_of_name(entry.name), info->size, info->times.modify_ns},
                                 path);
    return site_.files.remove_file(path);
  }

  /// Programs copy files with their times, and leave some of those in place as they are; and where
  /// times are whole seconds, two checkpoints of one second have the same.
  bool may_be_anothers(const FileInfo& info, const DatasetInfo& dataset) const {
    constexpr std::int64_t clocks_differ_us = 60'000'000;
    const std::int64_t written_us = info.times.modify_ns / 1000;
    const std::int64_t changed_us = info.change_ns / 1000 + clocks_differ_us;
    if (others_.older != 0 && written_us < dataset.uuid.time_us) return true;
    return others_.newer_in_place != 0 || changed_us >= others_.next_begun_us;
  }

  Status remove_if_no_others(const FileMark& mark, const std::string& path) {
    switch (answer_) {
      case Answer::not_asked:
        doubts_.insert(mark);
        return {};
      case Answer::unknown:
        ++kept_.doubtful;
        return {};
      case Answer::known:
        break;
    }
    if (!taken_.contains(mark.name)) return site_.files.remove_file(path);
    ++kept_.shared;
    return {};
  }

  Status ask_others() {
    Blob blob;
    if (site_.keeper != nullptr) blob = encode(site_.keeper->listing());
    bcast_blob(comm_, blob, 0);
    CAIRN_TRY(on_keeper(comm_, site_, [](Keeper& keeper) {
      return refuse_unread(keeper.unread(), "whether other datasets have files of the same names");
    }));
    CAIRN_ASSIGN(const Listing others, decode_listing(blob));
    auto taken = files_of(comm_, site_.files, site_.folder, doubts_, others);
    if (!taken && !is_damage(taken.error().code)) return tl::unexpected(taken.error());
    answer_ = taken ? Answer::known : Answer::unknown;
    if (taken) taken_ = *std::move(taken);
    return {};
  }

  Communicator& comm_;
  const Site& site_;
  const DeletedManifests& deleted_;
  Others others_;
  KeptFiles kept_;             ///< of this rank
  std::set<FileMark> doubts_;  ///< those that may be another dataset's
  Answer answer_ = Answer::not_asked;
  NameHashes taken_;  ///< those that are
};

}  // namespace

std::string said_of_kept(const KeptFiles& kept) {
  const std::vector<std::pair<std::int64_t, std::string_view>> reasons = {
      {kept.changed, "they were written again since (by size and time of change)"},
      {kept.unknown,
       "their times were not kept (SCR_COPY_METADATA=0), so that nobody knows whether they were "
       "written again since"},
      {kept.shared, "another dataset has files of the same names, sizes and times"},
      {kept.doubtful, "they may be another dataset's as well: records that would tell are damaged"},
      {kept.led_out, "a link leads from the prefix directory to where they are"},
  };
  std::vector<std::string> said;
  for (const auto& [count, why] : reasons)
    if (count > 0) said.push_back(fmt::format("{} of its files stay, as {}", count, why));
  return fmt::format("{}", fmt::join(said, "; "));
}

Result<KeptFiles> remove_files(Communicator& comm, const Site& site,
                               const DeletedManifests& deleted) {
  return Removal(comm, site, deleted).run();
}

Result<KeptFiles> remove_files(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               std::uint32_t ranks_in_each) {
  DeletedManifests deleted{dataset.uuid, site.folder.deleted(site.epoch, dataset), {}};
  deleted.numbers.resize((dataset.ranks + ranks_in_each - 1) / ranks_in_each);
  std::iota(deleted.numbers.begin(), deleted.numbers.end(), 0);
  CAIRN_ASSIGN(const KeptFiles kept, remove_files(comm, site, deleted));
  CAIRN_TRY(on_keeper(comm, site, [&](Keeper&) { return remove_all(site.files, deleted.folder); }));
  return kept;
}

}  // namespace cairn
