#include "prefix/remove_files.hpp"

#include <fmt/ranges.h>

#include <limits>
#include <numeric>

#include "prefix/check.hpp"
#include "prefix/dealt_manifests.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/own_names.hpp"
#include "prefix/unread.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

/// Removes the directory if it is empty now, and its parents that become empty.
void remove_empty_folders(Files& files, const std::string& prefix, std::string folder) {
  while (folder.size() > prefix.size() && files.remove_folder(folder)) folder = folder_of(folder);
}

/// Collective. The sums over all ranks.
KeptFiles sum(Communicator& comm, KeptFiles kept) {
  for (std::int64_t* count : {&kept.changed, &kept.unknown, &kept.shared, &kept.led_out})
    *count = allreduce(comm, *count, Reduce::sum);
  return kept;
}

/// Facts about the other datasets that need no reading of their manifests.
struct Others {
  std::int64_t now_us = 0;
  std::int64_t clocks_differ_us = 60'000'000;  ///< at most, of nodes and file system
  std::int64_t older = 0;                      ///< not 0 if there are any
  std::int64_t older_in_place = 0;             ///< the same, in place or unreadable now
  std::int64_t newer_at_any_time = 0;          ///< not 0 if is_at_any_time() for one
  std::int64_t next_begun_us = std::numeric_limits<std::int64_t>::max();  ///< the first newer one

  /// True if its files may be older than its beginning: the program has made them, or a clock was
  /// ahead.
  bool is_at_any_time(const Uuid& newer, bool in_place) const {
    return in_place || newer.time_us > now_us;
  }

  void count(const Uuid& mine, const Uuid& other, bool in_place) {
    if (other < mine) {
      older = 1;
      if (in_place) older_in_place = 1;
    } else {
      if (is_at_any_time(other, in_place)) newer_at_any_time = 1;
      next_begun_us = std::min(next_begun_us, other.time_us);
    }
  }
};

/// The folder of the deleted dataset has just been moved. If that seems longer ago, the clock is
/// ahead of the file system's, or this finishes another owner's deletion.
Others others_than(const DeletedManifests& mine, const Site& site) {
  Others others;
  others.now_us = site.clock.now_us();
  const auto moved = site.files.info(mine.folder);
  const std::int64_t moved_us = moved ? moved->change_ns / 1000 : 0;
  others.clocks_differ_us += std::max(std::int64_t{0}, others.now_us - moved_us);
  for (const DatasetRecord& record : site.keeper->known().listing)
    others.count(mine.uuid, record.info.uuid, record.info.in_place());
  for (const UnreadDataset& unread : site.keeper->known().unread)
    others.count(mine.uuid, unread.uuid, true);
  return others;
}

/// The datasets that may have doubtful files.
struct Suspects {
  std::int64_t older = 0;
  std::int64_t begun_before_us = 0;  ///< limit for the newer ones
};

class Removal {
 public:
  Removal(Communicator& comm, const Site& site, const DeletedManifests& deleted)
      : comm_(comm), site_(site), deleted_(deleted) {}

  /// With doubtful files it runs again after they are decided. That is rare, so repeating the rest
  /// is acceptable.
  Result<KeptFiles> run() {
    if (site_.keeper != nullptr) others_ = others_than(deleted_, site_);
    comm_.bcast(mutable_bytes_of(others_), 0);
    CAIRN_TRY(remove_all_files());
    if (allreduce(comm_, doubts_.empty() ? 0 : 1, Reduce::max) != 0) {
      CAIRN_TRY(ask_others());
      CAIRN_TRY(remove_all_files());
    }
    return sum(comm_, kept_);
  }

 private:
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
        kept_.led_out += entry.begins_here() && site_.files.info(path) ? 1 : 0;
      else
        CAIRN_TRY(remove_own_file(record.dataset, entry, path));
    }
    // They must not reappear after a crash, when their manifest is gone.
    for (const std::string& folder : folders_of(site_.folder, record)) {
      if (led_out.contains(folder)) continue;
      const Status synced = sync_folder_in(site_.files, site_.folder, folder);
      if (!synced && synced.error().code != Code::not_found) return synced;
      if (!record.dataset.in_place())
        remove_empty_folders(site_.files, site_.folder.prefix, folder);
      else if (folder !=
               site_.folder.prefix)  // the program has made its parents, and may need them
        (void)site_.files.remove_folder(folder);
    }
    return {};
  }

  /// A file that the program has written again since stays; so does one for which that is unknown,
  /// as its times were not kept.
  Status remove_own_file(const DatasetInfo& dataset, const FileEntry& entry,
                         const std::string& path) {
    const auto info = site_.files.info(path);
    if (!info && info.error().code == Code::not_found) return {};
    CAIRN_TRY(info);
    // Files in place have the times of the program.
    const bool times_kept = site_.copy_metadata || dataset.in_place();
    const bool same = info->kind == Kind::file && info->size == entry.size;
    const std::int64_t one = entry.begins_here() ? 1 : 0;
    if (!same || !times_kept || !has_time_of(*info, entry)) {
      (times_kept || !same ? kept_.changed : kept_.unknown) += one;
      return {};
    }
    const std::uint64_t name = hash_of_name(entry.name);
    if (taken_ && taken_->contains(name)) {
      kept_.shared += one;
      return {};
    }
    if (!taken_ && suspect(*info, entry, dataset)) {
      doubts_.insert({name, info->size, info->times.modify_ns});
      return {};
    }
    return site_.files.remove_file(path);
  }

  /// True if other datasets may have the file too. Programs copy files with their times, and leave
  /// some files in place unchanged; and with times in whole seconds, two checkpoints of one second
  /// have equal times.
  bool suspect(const FileInfo& info, const FileEntry& entry, const DatasetInfo& dataset) {
    const std::int64_t written_us = entry.times.modify_ns / 1000;
    const std::int64_t begun_us = dataset.uuid.time_us;
    const std::int64_t changed_us = info.change_ns / 1000 + others_.clocks_differ_us;
    const bool older =
        (others_.older != 0 && written_us < begun_us) ||
        (others_.older_in_place != 0 && written_us < begun_us + others_.clocks_differ_us);
    if (older) suspects_.older = 1;
    if (changed_us >= others_.next_begun_us)
      suspects_.begun_before_us = std::max(suspects_.begun_before_us, changed_us);
    return older || others_.newer_at_any_time != 0 || changed_us >= others_.next_begun_us;
  }

  bool may_have_them(const DatasetInfo& other) const {
    if (other.uuid < deleted_.uuid) return suspects_.older != 0;
    return others_.is_at_any_time(other.uuid, other.in_place()) ||
           other.uuid.time_us <= suspects_.begun_before_us;
  }

  Status ask_others() {
    CAIRN_TRY(on_keeper(comm_, site_, [](Keeper& keeper) {
      return check_unread(UnreadMatters::remove_files, keeper.known().unread);
    }));
    suspects_.older = allreduce(comm_, suspects_.older, Reduce::max);
    suspects_.begun_before_us = allreduce(comm_, suspects_.begun_before_us, Reduce::max);
    Blob blob;
    if (site_.keeper != nullptr) {
      Listing asked = site_.keeper->known().listing;
      std::erase_if(asked, [&](const DatasetRecord& other) { return !may_have_them(other.info); });
      blob = encode(asked);
    }
    bcast_blob(comm_, blob, 0);
    CAIRN_ASSIGN(const Listing others, decode_listing(blob));
    CAIRN_ASSIGN(taken_, files_of(comm_, site_.files, site_.folder, doubts_, others));
    return {};
  }

  Communicator& comm_;
  const Site& site_;
  const DeletedManifests& deleted_;
  Others others_;
  KeptFiles kept_;                   ///< of this rank
  std::set<FileMark> doubts_;        ///< files that may belong to another dataset,
  Suspects suspects_;                ///< namely to one of these
  std::optional<NameHashes> taken_;  ///< after the check: the doubtful files that do
};

}  // namespace

std::string said_of_kept(const KeptFiles& kept) {
  const std::vector<std::pair<std::int64_t, std::string_view>> reasons = {
      {kept.changed, "they have changed (size or time of change)"},
      {kept.unknown,
       "their times were not kept (SCR_COPY_METADATA=0), so Cairn cannot know whether they have "
       "changed"},
      {kept.shared, "another dataset has files of the same names, sizes and times"},
      {kept.led_out, "a link leads out of the prefix directory to them"},
  };
  std::vector<std::string> said;
  for (const auto& [count, why] : reasons)
    if (count > 0) said.push_back(fmt::format("{} of its files stay, because {}", count, why));
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
