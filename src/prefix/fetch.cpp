#include "prefix/fetch.hpp"

#include <set>

#include "base/checksum.hpp"
#include "prefix/check.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t private_folder = 0700;
constexpr std::uint32_t private_file = 0600;

Result<RankRecord> read_record(const Site& site, const DatasetRecord& dataset, int rank) {
  const std::string folder = site.folder.dataset(dataset.info);
  CAIRN_ASSIGN(RankRecord record,
               read_from_manifest(site.files, folder, rank, dataset.ranks_per_manifest));
  if (record.dataset.uuid != dataset.info.uuid || record.dataset.ranks != dataset.info.ranks)
    return fail(Code::corrupt, "{} has records of another dataset", folder);
  return record;
}

Status copy_in(const Site& site, const DatasetRecord& dataset, const RankRecord& record,
               const RankFolder& into) {
  CAIRN_ASSIGN(const auto from, places_of_files(site.files, site.folder, dataset, record));
  std::vector<std::string> to;
  std::string made;  // the folder of the file before
  for (const FileEntry& file : record.files) {
    to.push_back(into.file(file.name));
    std::string folder = folder_of(to.back());
    if (folder == made) continue;
    CAIRN_TRY(make_folders(site.files, folder, private_folder));
    made = std::move(folder);
  }
  Throttle throttle(site.clock, site.bytes_per_s_rank(site.limits.read_width));
  return copy_files(site.files, site.io, record, from, to, {private_file, true, false}, throttle);
}

/// Reads every block where it is.
Status compare(const Site& site, const RankRecord& record) {
  CAIRN_TRY(refuse_led_out(site.files, site.folder, record));
  std::vector<std::string> paths;
  for (const FileEntry& file : record.files) {
    paths.push_back(site.folder.file(file));
    CAIRN_TRY(check_size(site.files, file, paths.back()));
  }
  RankBlocks source(site.files, paths, record);
  const SetLayout layout(record.encoding);
  Blob scratch(layout.geometry().widest());
  Throttle throttle(site.clock, site.bytes_per_s_rank(site.limits.read_width));
  for (std::uint64_t index = 0; index < record.data_crcs.size(); ++index) {
    CAIRN_ASSIGN(const Bytes block, source.data(index, scratch));
    throttle.take(block.size());
    if (crc32c(block) != record.data_crcs[index])
      return fail(Code::corrupt, "{} does not match its checksum",
                  names_at(record, layout.geometry().data_offset(index), block.size(), paths));
  }
  return {};
}

/// Where this node does not have the file system, nothing is wrong with the dataset.
bool sees(const Site& site, const DatasetRecord& dataset) {
  return site.files.info(DatasetFolder::record(site.folder.dataset(dataset.info))).has_value();
}

/// Collective. The records of this rank's share, of which `read` reads the files: its own, where as
/// many ranks have written.
template <class Read>
Result<std::vector<RankRecord>> read_share(Communicator& comm, const Site& site,
                                           const DatasetRecord& dataset, Read read) {
  std::vector<RankRecord> records;
  const auto read_all = [&]() -> Status {
    for (auto rank = static_cast<std::uint32_t>(comm.rank()); rank < dataset.info.ranks;
         rank += static_cast<std::uint32_t>(comm.size())) {
      CAIRN_ASSIGN(RankRecord record, read_record(site, dataset, static_cast<int>(rank)));
      CAIRN_TRY(read(record));
      records.push_back(std::move(record));
    }
    return {};
  };
  Status status;
  in_turns(comm, site.limits.read_width, [&] { status = read_all(); });
  if (!status && !sees(site, dataset))
    status = fail(Code::io, "this node does not see {}: {}", site.folder.dataset(dataset.info),
                  status.error().text);
  CAIRN_TRY(agree(comm, std::move(status)));
  return records;
}

}  // namespace

Result<RankRecord> fetch(Communicator& comm, const Site& site, const DatasetRecord& dataset,
                         const RankFolder& into) {
  CAIRN_ASSIGN(std::vector<RankRecord> records,
               read_share(comm, site, dataset, [&](const RankRecord& record) {
                 return copy_in(site, dataset, record, into);
               }));
  return std::move(records.at(0));
}

Result<std::vector<RankRecord>> check_in_place(Communicator& comm, const Site& site,
                                               const DatasetRecord& dataset) {
  // Files in place never had other names.
  if (!dataset.settled && !dataset.info.in_place())
    return fail(Code::io, "some of its files still have temporary names");
  return read_share(comm, site, dataset,
                    [&](const RankRecord& record) { return compare(site, record); });
}

}  // namespace cairn
