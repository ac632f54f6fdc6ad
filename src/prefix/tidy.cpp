#include "prefix/tidy.hpp"

#include "prefix/flush.hpp"
#include "prefix/manifest.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

using Remains = Keeper::Remains;

Blob encode_all(const std::vector<Remains>& all) {
  Encoder out;
  out.u64(all.size());
  for (const Remains& remains : all) {
    out.u32(static_cast<std::uint32_t>(remains.kind));
    out.u64(remains.manifests.size());
    for (const std::string& manifest : remains.manifests) out.text(manifest);
  }
  return out.take();
}

std::vector<Remains> decode_all(Bytes blob) {
  Decoder in(blob);
  std::vector<Remains> all(in.count(12));
  for (Remains& remains : all) {
    remains.kind = static_cast<Remains::Kind>(in.u32());
    remains.manifests.resize(in.count(4));
    for (std::string& manifest : remains.manifests) manifest = in.text();
  }
  return all;
}

/// A file that is no longer what the dataset wrote, because the program wrote it again since,
/// stays; so does one of which that cannot be known, as its times were not kept.
Status remove_own_file(Files& files, const std::string& path, const FileEntry& entry,
                       bool times_kept) {
  const auto info = files.info(path);
  if (!info && info.error().code == Code::not_found) return {};
  CAIRN_TRY(info);
  const bool same = times_kept && info->kind == Kind::file && info->size == entry.size &&
                    info->times.modify_ns == entry.times.modify_ns;
  return same ? files.remove_file(path) : Status{};
}

Status remove_rank_files(const Site& site, const RankRecord& record) {
  CAIRN_TRY(unstage_rank(site.files, site.folder, record));
  for (const FileEntry& entry : record.files) {
    const std::string path = site.folder.file(entry);
    // What was written in place has the times that the program gave it.
    const bool times_kept = site.copy_metadata || record.dataset.in_place();
    CAIRN_TRY(remove_own_file(site.files, path, entry, times_kept));
    // The folder, if that was the last file in it; the program's folders above stay.
    const std::string folder = folder_of(path);
    if (folder != site.folder.prefix) (void)site.files.remove_folder(folder);
  }
  return {};
}

Status treat(const Site& site, Remains::Kind kind, const RankRecord& record) {
  switch (kind) {
    case Remains::Kind::staged:
      return unstage_rank(site.files, site.folder, record);
    case Remains::Kind::deleted:
      return remove_rank_files(site, record);
    case Remains::Kind::unsettled:
      return settle_rank(site.files, site.folder, record);
  }
  return {};
}

Status treat_manifest(const Site& site, Remains::Kind kind, const std::string& path) {
  CAIRN_ASSIGN(const auto records, read_manifest(site.files, path));
  for (const RankRecord& record : records) CAIRN_TRY(treat(site, kind, record));
  return {};
}

/// What rank 0 has found, to all.
Result<std::vector<Remains>> share_remains(Communicator& comm, const Site& site) {
  Blob blob;
  Status looked;
  if (site.keeper != nullptr) {
    auto found = site.keeper->remains();
    if (found)
      blob = encode_all(*found);
    else
      looked = tl::unexpected(std::move(found).error());
  }
  CAIRN_TRY(agree(comm, std::move(looked)));
  bcast_blob(comm, blob, 0);
  return decode_all(blob);
}

Status note_settled(Keeper& keeper) {
  const Listing listing = keeper.listing();
  for (const DatasetRecord& record : listing)
    if (!record.settled) CAIRN_TRY(keeper.mark_settled(record));
  CAIRN_TRY(keeper.remove_closed());
  return keeper.save_listing();
}

}  // namespace

Status tidy(Communicator& comm, const Site& site) {
  CAIRN_ASSIGN(const auto all, share_remains(comm, site));
  std::size_t number = 0;
  for (const Remains& remains : all) {
    Status status;
    for (const std::string& manifest : remains.manifests)
      if (number++ % static_cast<std::size_t>(comm.size()) ==
              static_cast<std::size_t>(comm.rank()) &&
          status)
        status = treat_manifest(site, remains.kind, manifest);
    // One after the other: of files with one name, that of the newest dataset must come last.
    CAIRN_TRY(agree(comm, std::move(status)));
  }
  return on_keeper(comm, site, note_settled);
}

Status remove_files(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                    std::uint32_t ranks_in_each) {
  const std::string folder = site.folder.deleted(site.epoch, dataset);
  const std::uint32_t manifests = (dataset.ranks + ranks_in_each - 1) / ranks_in_each;
  Status status;
  for (auto number = static_cast<std::uint32_t>(comm.rank()); number < manifests;
       number += static_cast<std::uint32_t>(comm.size()))
    if (status)
      status = treat_manifest(site, Remains::Kind::deleted, PrefixFolder::manifest(folder, number));
  CAIRN_TRY(agree(comm, std::move(status)));
  return on_keeper(comm, site, [&](Keeper&) { return remove_all(site.files, folder); });
}

}  // namespace cairn
