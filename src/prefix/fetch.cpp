#include "prefix/fetch.hpp"

#include <set>

#include "prefix/check.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/manifest.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t private_folder = 0700;
constexpr std::uint32_t private_file = 0600;

Result<RankRecord> read_own_record(const Site& site, const DatasetRecord& dataset, int rank) {
  const std::string folder = site.folder.dataset(dataset.info);
  CAIRN_ASSIGN(RankRecord record,
               read_from_manifest(site.files, folder, rank, dataset.ranks_per_manifest));
  if (record.dataset.uuid != dataset.info.uuid || record.dataset.ranks != dataset.info.ranks)
    return fail(Code::corrupt, "{} has records of another dataset", folder);
  return record;
}

Status copy_in(const Site& site, const DatasetRecord& dataset, const RankRecord& record,
               const RankFolder& into) {
  std::vector<std::string> from;
  std::vector<std::string> to;
  for (std::size_t i = 0; i < record.files.size(); ++i) {
    from.push_back(place_of(site.files, site.folder, dataset, record, i));
    to.push_back(into.file(record.files[i].name));
    CAIRN_TRY(make_folders(site.files, folder_of(to.back()), private_folder));
  }
  Throttle throttle(site.clock, site.bytes_per_s_rank());
  CAIRN_TRY(copy_files(site.files, record, from, to, private_file, false, throttle));
  for (std::size_t i = 0; i < to.size(); ++i)
    CAIRN_TRY(site.files.set_attributes(to[i], record.files[i].mode, record.files[i].times));
  return {};
}

/// Where this node does not have the file system, nothing is wrong with the dataset.
bool sees(const Site& site, const DatasetRecord& dataset) {
  return site.files.info(PrefixFolder::record(site.folder.dataset(dataset.info))).has_value();
}

}  // namespace

Result<RankRecord> fetch(Communicator& comm, const Site& site, const DatasetRecord& dataset,
                         const RankFolder& into) {
  auto record = read_own_record(site, dataset, comm.rank());
  Status status = record ? Status{} : Status(tl::unexpected(record.error()));
  in_turns(comm, site.limits.width, [&] {
    if (status) status = copy_in(site, dataset, *record, into);
  });
  if (!status && !sees(site, dataset))
    status = fail(Code::io, "{} is not seen here: {}", site.folder.dataset(dataset.info),
                  status.error().text);
  CAIRN_TRY(agree(comm, std::move(status)));
  return *std::move(record);
}

}  // namespace cairn
