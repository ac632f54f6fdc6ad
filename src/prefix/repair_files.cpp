#include "prefix/repair_files.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "files/modes.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/own_names.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {
namespace {

class FileRepair {
 public:
  FileRepair(Files& files, const PrefixFolder& folder, const RankRecord& record,
             const std::vector<RankFolder>& sources, const RepairOptions& options)
      : files_(files),
        folder_(folder),
        record_(record),
        options_(options),
        geometry_(SetLayout(record.encoding).geometry()),
        scratch_(geometry_.widest()) {
    std::vector<std::string> own;
    for (const FileEntry& file : record.files) own.push_back(folder.file(file));
    places_.emplace_back(files, own, record);
    for (const RankFolder& source : sources) {
      std::vector<std::string> cached;
      for (const FileEntry& file : record.files) cached.push_back(source.file(file.name));
      places_.emplace_back(files, cached, record);
    }
  }

  Status can_repair(std::size_t file) {
    CAIRN_TRY(check_owned(file));
    CAIRN_TRY(visit(file, [](std::uint64_t, Bytes) { return Status{}; }));
    return check_unchanged(file);
  }

  Status repair(std::size_t file) {
    CAIRN_TRY(check_owned(file));
    CAIRN_TRY(check_unchanged(file));
    const FileEntry& entry = record_.files[file];
    const std::string staged = folder_.staged(record_, file);
    CAIRN_TRY(files_.remove_file(staged));  // of an earlier attempt
    CAIRN_ASSIGN(const auto copy,
                 files_.create(staged, options_.copy_metadata ? file_for_owner : file_for_all));
    Status made = visit(
        file, [&](std::uint64_t offset, Bytes bytes) { return copy->write_at(offset, bytes); });
    if (made && options_.copy_metadata) made = copy->set_attributes(entry.mode, entry.times);
    if (made) made = copy->sync_all();
    if (made) made = files_.rename(staged, folder_.file(entry));
    if (!made) (void)files_.remove_file(staged);
    return made;
  }

 private:
  /// A file in place may belong to several ranks, and was never in a cache.
  Status check_owned(std::size_t file) const {
    const FileEntry& entry = record_.files[file];
    const std::string path = folder_.file(entry);
    if (entry.part) return fail(Code::lost, "{} was written in place, so no cache has it", path);
    if (options_.not_to_touch.contains(entry.name))
      return fail(Code::lost, "{} now belongs to a newer dataset, and was not changed", path);
    return {};
  }

  /// Independent of the present settings, as those of the flushing run are not recorded.
  Status check_unchanged(std::size_t file) const {
    const std::string path = folder_.file(record_.files[file]);
    if (!is_written_since(files_, record_.files[file], path)) return {};
    return fail(Code::wrong_state,
                "{} was written again since it was flushed, or it was flushed without its times "
                "(SCR_COPY_METADATA=0), so it is not overwritten; a cache has what was flushed: to "
                "restore that, move the file away and repair again",
                path);
  }

  /// Calls `take` with all bytes of a file, in order.
  template <class Take>
  Status visit(std::size_t file, Take take) {
    for (std::uint64_t block = 0; block < record_.data_crcs.size(); ++block)
      for (const FileRange& range : places_of(record_, block, block + 1)) {
        if (range.file != file) continue;
        CAIRN_ASSIGN(const Bytes whole, read(block, file));
        const std::uint64_t from = start_of(file) + range.begin - geometry_.data_offset(block);
        CAIRN_TRY(
            take(range.begin, whole.subspan(static_cast<std::size_t>(from),
                                            static_cast<std::size_t>(range.end - range.begin))));
      }
    return {};
  }

  /// From the first place that has the intact block: the prefix directory, then the caches.
  Result<Bytes> read(std::uint64_t block, std::size_t file) {
    for (RankBlocks& place : places_) {
      const auto bytes = place.data(block, scratch_);
      if (bytes && crc32c(*bytes) == record_.data_crcs[block]) return *bytes;
    }
    return fail(Code::lost, "no cache has an intact copy of block {} of {}", block,
                folder_.file(record_.files[file]));
  }

  std::uint64_t start_of(std::size_t file) const {
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < file; ++i) start += record_.files[i].length();
    return start;
  }

  Files& files_;
  const PrefixFolder& folder_;
  const RankRecord& record_;
  const RepairOptions& options_;
  const Geometry geometry_;
  Blob scratch_;
  std::vector<RankBlocks> places_;
};

/// Files behind a link are not repaired: the directory itself must exist.
Status refuse_as_lost(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  const Status refused = refuse_led_out(files, folder, record);
  if (refused || !is_damage(refused.error().code)) return refused;
  return fail(Code::lost, "{}", refused.error().text);
}

}  // namespace

std::vector<std::size_t> damaged_files(const RankRecord& record, const RankCheck& found) {
  std::set<std::size_t> wrong(found.wrong_files.begin(), found.wrong_files.end());
  for (const auto& [first, end] : found.bad)
    for (const FileRange& range : places_of(record, first, end)) wrong.insert(range.file);
  return {wrong.begin(), wrong.end()};
}

Result<std::set<std::string>> names_taken(Files& files, const PrefixFolder& folder,
                                          const DatasetRecord& dataset, const Listing& listing,
                                          const std::set<std::string>& names) {
  std::set<std::string> taken;
  for (const DatasetRecord& newer : listing) {
    if (newer.info.uuid <= dataset.info.uuid) continue;
    std::vector<std::string> unread;
    CAIRN_TRY(visit_ranks(files, folder.dataset(newer.info), newer, unread,
                          [&](const RankRecord& record) {
                            for (const FileEntry& file : record.files)
                              if (names.contains(file.name)) taken.insert(file.name);
                          }));
    if (!unread.empty())
      return fail(Code::corrupt, "it is unknown whether {} has files of the same names: {}",
                  newer.label(), unread.front());
  }
  return taken;
}

Status can_repair_files(Files& files, const PrefixFolder& folder, const RankRecord& record,
                        const RankCheck& found, const std::vector<RankFolder>& sources,
                        const RepairOptions& options) {
  CAIRN_TRY(refuse_as_lost(files, folder, record));
  FileRepair repair(files, folder, record, sources, options);
  for (const std::size_t file : damaged_files(record, found)) CAIRN_TRY(repair.can_repair(file));
  return {};
}

Status repair_files(Files& files, const PrefixFolder& folder, const RankRecord& record,
                    const RankCheck& found, const std::vector<RankFolder>& sources,
                    const RepairOptions& options) {
  CAIRN_TRY(refuse_as_lost(files, folder, record));
  CAIRN_TRY(make_folders(files, folder, record));
  FileRepair repair(files, folder, record, sources, options);
  for (const std::size_t file : damaged_files(record, found)) CAIRN_TRY(repair.repair(file));
  return sync_folders(files, folder, record);
}

std::vector<std::size_t> files_with_other_attributes(Files& files, const PrefixFolder& folder,
                                                     const RankRecord& record) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < record.files.size(); ++i)
    if (has_other_attributes(files, record.files[i], folder.file(record.files[i])))
      found.push_back(i);
  return found;
}

Result<std::size_t> restore_attributes(Files& files, const PrefixFolder& folder,
                                       const RankRecord& record,
                                       const std::set<std::string>& not_to_touch) {
  CAIRN_TRY(refuse_led_out(files, folder, record));
  std::size_t restored = 0;
  for (const std::size_t i : files_with_other_attributes(files, folder, record)) {
    const FileEntry& entry = record.files[i];
    if (not_to_touch.contains(entry.name)) continue;
    CAIRN_ASSIGN(const auto file, files.open(folder.file(entry)));
    CAIRN_TRY(file->set_attributes(entry.mode, entry.times));
    CAIRN_TRY(file->sync_all());
    ++restored;
  }
  return restored;
}

}  // namespace cairn
