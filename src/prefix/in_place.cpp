#include "prefix/in_place.hpp"

#include <algorithm>
#include <map>

#include "prefix/letters.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"
#include "redundancy/closed_files.hpp"
#include "redundancy/protect.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

/// One rank's claim to a file.
struct Claim {
  int rank = 0;
  std::uint64_t file = 0;  ///< its number among those of the rank
  std::uint64_t size = 0;  ///< as the rank sees it
};

/// By name; in the order of ranks.
using Claims = std::map<std::string, std::vector<Claim>>;

/// Each rank hears of the names whose hash falls to it.
Claims gather_claims(Communicator& comm, const RankRecord& mine) {
  std::map<int, Encoder> told;
  for (std::size_t i = 0; i < mine.files.size(); ++i) {
    const std::uint64_t hash = hash_of_name(mine.files[i].name);
    Encoder& out = told[static_cast<int>(hash % static_cast<std::uint64_t>(comm.size()))];
    out.text(mine.files[i].name);
    out.u64(i);
    out.u64(mine.files[i].size);
  }
  Claims claims;
  exchange_letters(comm, std::move(told), [&](int rank, Decoder& in) {
    std::vector<Claim>& of_file = claims[in.text()];
    const std::uint64_t file = in.u64();
    of_file.push_back({rank, file, in.u64()});
  });
  return claims;
}

Status check_sizes(const std::string& name, const std::vector<Claim>& sharers) {
  for (const Claim& claim : sharers)
    if (claim.size != sharers[0].size)
      return fail(
          Code::invalid,
          "{} has {} bytes for rank {} and {} for rank {}: all ranks that share a file must "
          "close it before the call that completes the dataset",
          name, sharers[0].size, sharers[0].rank, claim.size, claim.rank);
  return {};
}

/// Collective. Gives each rank its part of the files that it shares. The error is local.
Status divide_shared(Communicator& comm, RankRecord& mine) {
  Status status;
  std::map<int, Encoder> answers;
  for (const auto& [name, sharers] : gather_claims(comm, mine)) {
    if (sharers.size() == 1) continue;
    if (status) status = check_sizes(name, sharers);
    for (std::size_t i = 0; i < sharers.size(); ++i) {
      Encoder& out = answers[sharers[i].rank];
      out.u64(sharers[i].file);
      out.u64(i);
      out.u64(sharers.size());
    }
  }
  exchange_letters(comm, std::move(answers), [&](int, Decoder& in) {
    FileEntry& file = mine.files[in.u64()];
    const std::uint64_t index = in.u64();
    file.part = part_of(file.size, mine.encoding.block_bytes, index, in.u64());
  });
  return status;
}

class Publication {
 public:
  Publication(Communicator& comm, const Site& site, RankRecord& mine)
      : comm_(comm),
        site_(site),
        files_(site.files),
        mine_(mine),
        pending_(site.folder.pending(site.epoch, mine.dataset)) {}

  Result<FlushAccount> run(const std::string& job_id, Status& settle_status, bool took) {
    Status prepared = prepare();
    DatasetRecord record = describe(comm_, site_, mine_.dataset, {mine_}, job_id);
    if (prepared)
      prepared = on_keeper(comm_, site_, [&](Keeper& keeper) {
        const Status planned = keeper.plan(record);
        return planned ? keeper.publish(record) : planned;
      });
    if (!prepared) {
      // Should this fail too, a later run finds it, and that nothing of it was staged.
      if (site_.keeper != nullptr) (void)site_.keeper->abandon(mine_.dataset);
      return tl::unexpected(std::move(prepared).error());
    }
    FlushAccount account{record.files, record.bytes, {}, open_elsewhere_};
    account.replaced = mark_replaced(comm_, site_, site_.folder.dataset(record.info), took);
    settle_status =
        on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.mark_settled(record); });
    return account;
  }

 private:
  Status prepare() {
    CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.begin(mine_.dataset); }));
    CAIRN_TRY(agree(comm_, divide_shared(comm_, mine_)));
    Status durable;
    in_turns(comm_, site_.limits.width, [&] { durable = make_durable(); });
    CAIRN_TRY(agree(comm_, std::move(durable)));
    return agree(comm_, write_manifests(comm_, files_, pending_, mine_));
  }

  Status make_durable() {
    if (const auto seen = files_.info(pending_); !seen)
      return fail(Code::io,
                  "the nodes do not share {}: this node does not see what rank 0 created there "
                  "({}); set SCR_PREFIX to a directory that all nodes share",
                  site_.folder.prefix, seen.error().text);
    return seal_in_place(files_, site_.folder, mine_, &open_elsewhere_);
  }

  Communicator& comm_;
  const Site& site_;
  Files& files_;
  RankRecord& mine_;
  const std::string pending_;
  std::string open_elsewhere_;
};

}  // namespace

Result<FlushAccount> publish_in_place(Communicator& comm, const Site& site, RankRecord& mine,
                                      const std::string& job_id, Status& settle_status, bool took) {
  return Publication(comm, site, mine).run(job_id, settle_status, took);
}

Status seal_in_place(Files& files, const PrefixFolder& folder, RankRecord& record,
                     std::string* open_elsewhere) {
  std::vector<std::string> paths;
  for (const FileEntry& file : record.files) paths.push_back(folder.file(file));
  CAIRN_TRY(check_closed(files, record, paths, open_elsewhere));
  record.encoding.member_bytes = {record.data_bytes()};
  RankBlocks blocks(files, paths, record);
  CAIRN_TRY(take_checksums(blocks, record));
  // Of a shared file, too, each node may hold what its ranks have written. The times as well: by
  // them it is known later whether the program has written a file again.
  for (const std::string& path : paths) {
    CAIRN_ASSIGN(const auto file, files.open(path));
    CAIRN_TRY(file->sync_all());
  }
  CAIRN_TRY(sync_folders(files, folder, record));
  return check_unchanged(files, record, paths);
}

FilePart part_of(std::uint64_t size, std::uint64_t block_bytes, std::uint64_t index,
                 std::uint64_t sharers) {
  const std::uint64_t blocks = (size + block_bytes - 1) / block_bytes;
  const auto start = [&](std::uint64_t of) {
    return std::min(size, (blocks * of + sharers - 1) / sharers * block_bytes);
  };
  return {start(index), start(index + 1) - start(index)};
}

}  // namespace cairn
