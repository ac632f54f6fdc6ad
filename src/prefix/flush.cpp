#include "prefix/flush.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "prefix/copy_files.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/letters.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

class Flush {
 public:
  Flush(Communicator& comm, const Site& site, const RankRecord& mine,
        const std::vector<std::string>& cached)
      : comm_(comm),
        site_(site),
        files_(site.files),
        mine_(mine),
        cached_(cached),
        pending_(site.folder.pending(site.epoch, mine.dataset)) {}

  Result<FlushAccount> run(const std::string& job_id, Status& settle_status) {
    const DatasetRecord record = describe(comm_, site_, mine_.dataset, {mine_}, job_id);
    if (Status staged = stage(record); !staged) {
      give_up();
      return tl::unexpected(std::move(staged).error());
    }
    if (Status published =
            on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.publish(record); });
        !published) {
      give_up();
      return tl::unexpected(std::move(published).error());
    }
    FlushAccount account{record.files, record.bytes, {}};
    settle_status = settle(record, account);
    return account;
  }

 private:
  Status stage(const DatasetRecord& record) {
    CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.begin(mine_.dataset); }));
    // What is about to be staged is known first, so that whoever finds it can remove it.
    Status told = write_manifests(comm_, files_, pending_, mine_);
    const Status single = refuse_double_names(comm_, {mine_});
    if (told) told = single;
    CAIRN_TRY(agree(comm_, std::move(told)));
    // Only an older dataset comes late; a newer one may take the names of what is there.
    const bool late = site_.keeper != nullptr && site_.keeper->has_newer_than(mine_.dataset.uuid);
    if (allreduce(comm_, late ? 1 : 0, Reduce::max) != 0)
      CAIRN_TRY(refuse_late_names(comm_, site_, {mine_}));
    Status done = site_.keeper != nullptr ? site_.keeper->plan(record) : Status{};
    in_turns(comm_, site_.limits.width, [&] {
      if (done) done = do_part();
    });
    return agree(comm_, std::move(done));
  }

  Status do_part() {
    if (const auto seen = files_.info(pending_); !seen)
      return fail(Code::io,
                  "the nodes do not share {}: this node does not see what rank 0 created there "
                  "({}); set SCR_PREFIX to a directory that all nodes share",
                  site_.folder.prefix, seen.error().text);
    CAIRN_TRY(stage_part(site_, mine_, cached_));
    // For whoever carries on if this run dies; the ranks of this one agree by messages.
    return DoneMarkers(files_, pending_, mine_.dataset.ranks).mark(mine_.rank);
  }

  /// The manifests stay where some staged file does: by them a later run finds it. Whoever has
  /// taken over meanwhile has the plan, and all that was staged for it.
  void give_up() {
    const Status withdrawn =
        on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.withdraw(pending_); });
    if (!withdrawn) return;
    const Status unstaged = agree(comm_, remove_part(files_, site_.folder, pending_, mine_));
    if (unstaged && site_.keeper != nullptr) (void)site_.keeper->abandon(mine_.dataset);
  }

  Status settle(const DatasetRecord& record, FlushAccount& account) {
    const bool took = takes_names(files_, site_.folder, mine_);
    CAIRN_TRY(agree(comm_, settle_rank(files_, site_.folder, mine_)));
    account.replaced = mark_replaced(comm_, site_, site_.folder.dataset(record.info), took);
    return on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.mark_settled(record); });
  }

  Communicator& comm_;
  const Site& site_;
  Files& files_;
  const RankRecord& mine_;
  const std::vector<std::string>& cached_;
  const std::string pending_;
};

}  // namespace

Status refuse_double_names(Communicator& comm, const std::vector<RankRecord>& records) {
  std::map<int, Encoder> told;
  for (const RankRecord& record : records)
    for (const FileEntry& file : record.files) {
      const std::uint64_t hash = hash_of_name(file.name);
      Encoder& out = told[static_cast<int>(hash % static_cast<std::uint64_t>(comm.size()))];
      out.text(file.name);
      out.u32(static_cast<std::uint32_t>(record.rank));
    }
  std::map<std::string, std::uint32_t> writers;
  Status status;
  exchange_letters(comm, std::move(told), [&](int, Decoder& in) {
    std::string name = in.text();
    const std::uint32_t rank = in.u32();
    const auto [known, is_first] = writers.emplace(std::move(name), rank);
    if (!is_first && status)
      status = fail(Code::invalid,
                    "ranks {} and {} both have a file named {}, and in the cache each has its own: "
                    "if the ranks write one file together, set SCR_CACHE_BYPASS=1, and they write "
                    "it in the prefix directory; else put the rank into the name",
                    known->second, rank, known->first);
  });
  return status;
}

Status refuse_late_names(Communicator& comm, const Site& site,
                         const std::vector<RankRecord>& records) {
  Status status;
  for (const RankRecord& record : records)
    for (const FileEntry& file : record.files) {
      const std::string path = site.folder.file(file);
      if (status && is_written_since(site.files, file, path))
        status =
            fail(Code::invalid,
                 "{} was written again after this dataset, and is not overwritten; move it away to "
                 "copy this dataset, and give the files of each dataset different names",
                 path);
    }
  return agree(comm, std::move(status));
}

DatasetRecord describe(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                       const std::vector<RankRecord>& records, const std::string& job_id) {
  std::array<std::int64_t, 2> sums{};
  for (const RankRecord& each : records) {
    sums[0] += std::count_if(each.files.begin(), each.files.end(),
                             [](const FileEntry& file) { return file.begins_here(); });
    sums[1] += static_cast<std::int64_t>(each.data_bytes());
  }
  comm.allreduce(sums, Reduce::sum);
  DatasetRecord record;
  record.info = dataset;
  record.job_id = job_id;
  record.files = static_cast<std::uint64_t>(sums[0]);
  record.bytes = static_cast<std::uint64_t>(sums[1]);
  record.ranks_per_manifest = ranks_per_manifest;
  record.flushed_us = site.clock.now_us();
  return record;
}

Result<FlushAccount> flush(Communicator& comm, const Site& site, const RankRecord& mine,
                           const std::vector<std::string>& cached, const std::string& job_id,
                           Status& settle_status) {
  return Flush(comm, site, mine, cached).run(job_id, settle_status);
}

Status settle_rank(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  for (std::size_t i = 0; i < record.files.size(); ++i) {
    Status named = files.rename(folder.staged(record, i), folder.file(record.files[i]));
    if (!named && named.error().code != Code::not_found) return named;  // else it has its name
  }
  for (const std::string& path : folders_of(folder, record))
    CAIRN_TRY(sync_folder_in(files, folder, path));
  return DoneMarkers(files, folder.dataset(record.dataset), record.dataset.ranks)
      .remove(record.rank);
}

}  // namespace cairn
