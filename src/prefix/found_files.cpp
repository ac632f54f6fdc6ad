#include "prefix/found_files.hpp"

#include "prefix/check.hpp"
#include "prefix/flush.hpp"
#include "prefix/in_place.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"

namespace cairn {
namespace {

class Found {
 public:
  Found(Communicator& alone, const Site& site, FoundDataset found)
      : alone_(alone),
        site_(site),
        found_(std::move(found)),
        pending_(site.folder.pending(site.epoch, found_.record.info)) {
    found_.record.info.flags |= flag_in_place | flag_found;
  }

  Result<DatasetRecord> run() {
    CAIRN_TRY(look());
    divide_shared();
    const Status published = publish();
    if (!published) {
      (void)site_.keeper->abandon(found_.record.info);  // else the next owner removes it
      return tl::unexpected(published.error());
    }
    CAIRN_TRY(site_.keeper->mark_settled(found_.record));
    found_.record.settled = true;
    return std::move(found_.record);
  }

 private:
  Status look() {
    for (std::size_t rank = 0; rank < found_.files.size(); ++rank) {
      RankRecord& record = records_.emplace_back();
      record.dataset = found_.record.info;
      record.rank = static_cast<int>(rank);
      record.encoding.block_bytes = found_.block_bytes;
      record.encoding.members = {record.rank};
      record.encoding.member_nodes = {found_.node};
      for (const std::string& name : found_.files[rank]) CAIRN_TRY(look_at(name, record));
      CAIRN_TRY(refuse_folders_led_out(record));
    }
    return {};
  }

  Status refuse_folders_led_out(const RankRecord& record) {
    CAIRN_ASSIGN(const auto led_out, folders_led_out(site_.files, site_.folder, record));
    if (led_out.empty()) return {};
    return fail(Code::bad_argument,
                "{} is a link, or not a directory, and Cairn follows no links here: name the files "
                "by their real path, which must be below {}",
                *led_out.begin(), site_.folder.prefix);
  }

  Status look_at(const std::string& name, RankRecord& record) {
    if (!is_safe_name(name))
      return fail(Code::bad_argument, "\"{}\" is not the name of a file below {}", name,
                  site_.folder.prefix);
    if (is_own_name(name))
      return fail(
          Code::bad_argument,
          "{} in {} is one of Cairn's own files, which cannot be part of a dataset: leave it out",
          name, site_.folder.prefix);
    const std::string path = site_.folder.prefix + "/" + name;
    CAIRN_ASSIGN(const FileInfo info, site_.files.info(path));
    if (info.kind != Kind::file)
      return fail(Code::invalid, "{} is not a regular file, so Cairn cannot check its contents",
                  path);
    std::vector<Claim>& claims = claims_[name];
    if (!claims.empty() && claims.back().rank == record.rank)
      return fail(Code::bad_argument, "the file is listed twice for rank {}: {}", record.rank,
                  path);
    claims.push_back({record.rank, record.files.size()});
    record.files.push_back({name, info.size, info.mode, info.owner, info.group, info.times});
    return {};
  }

  void divide_shared() {
    for (const auto& [name, claims] : claims_)
      for (std::size_t i = 0; claims.size() > 1 && i < claims.size(); ++i) {
        FileEntry& file = records_[static_cast<std::size_t>(claims[i].rank)].files[claims[i].file];
        file.part = part_of(file.size, found_.block_bytes, i, claims.size());
      }
  }

  Status publish() {
    Keeper& keeper = *site_.keeper;
    CAIRN_TRY(keeper.begin(found_.record.info));
    for (RankRecord& record : records_) CAIRN_TRY(seal_in_place(site_.files, site_.folder, record));
    CAIRN_TRY(write_all_manifests());
    const DatasetRecord described =
        describe(alone_, site_, found_.record.info, records_, found_.record.job_id);
    found_.record.files = described.files;
    found_.record.bytes = described.bytes;
    found_.record.ranks_per_manifest = described.ranks_per_manifest;
    found_.record.flushed_us = described.flushed_us;
    CAIRN_TRY(keeper.plan(found_.record));
    return keeper.publish(found_.record);
  }

  Status write_all_manifests() {
    for (std::size_t first = 0; first < records_.size(); first += ranks_per_manifest) {
      Blob content;
      for (std::size_t i = first; i < std::min(first + ranks_per_manifest, records_.size()); ++i) {
        const Blob sealed = encode(records_[i]);
        content.insert(content.end(), sealed.begin(), sealed.end());
      }
      const auto number = static_cast<std::uint32_t>(first / ranks_per_manifest);
      CAIRN_TRY(write_manifest(site_.files, pending_, number, content));
    }
    return {};
  }

  struct Claim {
    int rank;
    std::size_t file;  ///< its number among those of the rank
  };

  Communicator& alone_;
  const Site& site_;
  FoundDataset found_;
  const std::string pending_;
  std::vector<RankRecord> records_;
  std::map<std::string, std::vector<Claim>> claims_;  ///< by name; in the order of ranks
};

}  // namespace

Result<DatasetRecord> publish_found(Communicator& alone, const Site& site, FoundDataset found) {
  return Found(alone, site, std::move(found)).run();
}

Result<FileOwners> owners_of_files(Files& files, const PrefixFolder& folder,
                                   const Listing& listing) {
  FileOwners owners;
  std::vector<std::string> troubles;  // what cannot be read has no files that are known
  for (const DatasetRecord& dataset : listing)
    CAIRN_TRY(visit_ranks(files, folder.dataset(dataset.info), dataset, troubles,
                          [&](const RankRecord& record) {
                            for (const FileEntry& file : record.files)
                              owners.emplace(file.name, dataset.info);
                          }));
  return owners;
}

}  // namespace cairn
