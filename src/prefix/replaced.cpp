#include "prefix/replaced.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/checksum.hpp"
#include "prefix/check.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/dealt_manifests.hpp"
#include "prefix/own_names.hpp"
#include "redundancy/block_places.hpp"
#include "redundancy/rank_blocks.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

/// Files of one rank of an older dataset that have another size or time than it gave them.
struct SuspectFiles {
  RankRecord record;
  std::vector<std::size_t> files;  ///< ascending
};

/// What of a file belongs to one rank. Ranks that share a file have a part of it each.
struct PartOfFile {
  std::uint64_t name = 0;  ///< its hash
  std::uint64_t begin = 0;
  std::uint64_t length = 0;

  auto operator<=>(const PartOfFile&) const = default;
};

PartOfFile part_of(const FileEntry& file) {
  return {hash_of_name(file.name), file.begin(), file.length()};
}

/// Those that this rank has compared, and found to be what they were in a newer of the datasets.
using Unchanged = std::set<PartOfFile>;

/// Of the dataset in `folder` and the newest older ones that no other has replaced; newest first.
Listing choose(const Keeper& keeper, const PrefixFolder& prefix, const std::string& folder) {
  Listing chosen;
  for (const DatasetRecord& record : keeper.known().listing) {
    const bool is_newer = chosen.empty() && prefix.dataset(record.info) == folder;
    const bool is_older = !chosen.empty() && record.replaced_by.empty();
    if (is_newer || is_older) chosen.push_back(record);
    if (chosen.size() > datasets_compared) break;
  }
  return chosen;
}

/// What rank 0 chooses, on all ranks.
Result<Listing> share_choice(Communicator& comm, const Site& site, const std::string& folder) {
  Blob blob;
  if (site.keeper != nullptr) blob = encode(choose(*site.keeper, site.folder, folder));
  bcast_blob(comm, blob, 0);
  return decode_listing(blob);
}

/// The text of the first rank that has one, on all ranks.
std::string share_first(Communicator& comm, const std::string& mine) {
  const auto first = gather_first(comm, std::as_bytes(std::span(mine)), 1);
  Blob blob = first.empty() ? Blob{} : first.front();
  bcast_blob(comm, blob, 0);
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

/// Collective. Looks for files that `older` has lost to `newer`.
class Loss {
 public:
  Loss(Communicator& comm, const Site& site, const DatasetRecord& newer, const DatasetRecord& older,
       Unchanged& unchanged)
      : comm_(comm), site_(site), newer_(newer), older_(older), unchanged_(unchanged) {}

  /// The name of one; empty if there is none.
  Result<std::string> find() {
    std::vector<std::uint64_t> manifests(older_.manifests());
    std::iota(manifests.begin(), manifests.end(), 0);
    CAIRN_TRY(treat_dealt(comm_, site_.files, site_.folder.dataset(older_.info), manifests,
                          [&](const RankRecord& record) { return look(record); })
                  .map([](bool) {}));
    CAIRN_ASSIGN(const NameHashes taken,
                 files_of(comm_, site_.files, site_.folder, marks_, Listing{newer_}));
    return share_first(comm_, first_changed(taken));
  }

 private:
  Status look(const RankRecord& record) {
    if (!refuse_led_out(site_.files, site_.folder, record)) return {};
    SuspectFiles suspects;
    for (std::size_t i = 0; i < record.files.size(); ++i) {
      const FileEntry& entry = record.files[i];
      const auto now = site_.files.info(site_.folder.file(entry));
      if (!now || (now->size == entry.size && has_time_of(*now, entry))) continue;
      suspects.files.push_back(i);
      marks_.insert({hash_of_name(entry.name), now->size, now->times.modify_ns});
    }
    if (suspects.files.empty()) return {};
    suspects.record = record;
    suspects_.push_back(std::move(suspects));
    return {};
  }

  std::string first_changed(const NameHashes& taken) {
    for (SuspectFiles& suspects : suspects_) {
      std::erase_if(suspects.files, [&](std::size_t file) {
        return !taken.contains(hash_of_name(suspects.record.files[file].name));
      });
      if (const auto file = changed_file(suspects)) return suspects.record.files[*file].name;
    }
    return {};
  }

  std::optional<std::size_t> changed_file(SuspectFiles& suspects) {
    const RankRecord& record = suspects.record;
    std::vector<std::string> paths;
    for (const FileEntry& file : record.files) paths.push_back(site_.folder.file(file));
    for (const std::size_t file : suspects.files)
      if (!check_size(site_.files, record.files[file], paths[file])) return file;
    std::erase_if(suspects.files, [&](std::size_t file) {
      return unchanged_.contains(part_of(record.files[file]));
    });
    if (const auto file = file_with_other_bytes(suspects, paths)) return file;
    for (const std::size_t file : suspects.files) unchanged_.insert(part_of(record.files[file]));
    return std::nullopt;
  }

  std::optional<std::size_t> file_with_other_bytes(const SuspectFiles& suspects,
                                                   const std::vector<std::string>& paths) {
    const RankRecord& record = suspects.record;
    RankBlocks blocks(site_.files, paths, record);
    Blob scratch(SetLayout(record.encoding).geometry().widest());
    for (std::uint64_t index = 0; index < record.data_crcs.size(); ++index) {
      const auto file = suspect_in(suspects, index);
      if (!file) continue;
      const auto bytes = blocks.data(index, scratch);
      if (bytes && crc32c(*bytes) != record.data_crcs[index]) return file;
    }
    return std::nullopt;
  }

  static std::optional<std::size_t> suspect_in(const SuspectFiles& suspects, std::uint64_t block) {
    for (const FileRange& range : places_of(suspects.record, block, block + 1))
      if (std::binary_search(suspects.files.begin(), suspects.files.end(), range.file))
        return range.file;
    return std::nullopt;
  }

  Communicator& comm_;
  const Site& site_;
  const DatasetRecord& newer_;
  const DatasetRecord& older_;
  Unchanged& unchanged_;
  std::set<FileMark> marks_;  ///< of all suspects
  std::vector<SuspectFiles> suspects_;
};

}  // namespace

bool takes_names(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  return std::any_of(record.files.begin(), record.files.end(), [&](const FileEntry& entry) {
    return files.info(folder.file(entry)).has_value();
  });
}

Result<std::vector<Replaced>> mark_replaced(Communicator& comm, const Site& site,
                                            const std::string& folder, bool took) {
  std::vector<Replaced> replaced;
  if (allreduce(comm, took ? 1 : 0, Reduce::max) == 0) return replaced;
  CAIRN_ASSIGN(const Listing chosen, share_choice(comm, site, folder));
  Unchanged unchanged;
  for (std::size_t i = 1; i < chosen.size(); ++i) {
    const auto file = Loss(comm, site, chosen[0], chosen[i], unchanged).find();
    if (!file && is_damage(file.error().code)) continue;  // no restart takes that one
    CAIRN_TRY(file);
    if (file->empty()) continue;
    DatasetRecord record = chosen[i];
    record.replaced_by = chosen[0].label();
    CAIRN_TRY(on_keeper(comm, site, [&](Keeper& keeper) { return keeper.update(record); }));
    replaced.push_back({record.label(), record.replaced_by, *file});
  }
  return replaced;
}

}  // namespace cairn
