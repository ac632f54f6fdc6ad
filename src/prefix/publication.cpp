#include "prefix/publication.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "prefix/flush_plan.hpp"
#include "prefix/manifest.hpp"

namespace cairn {

DatasetRecord record_of(const DatasetInfo& dataset, const std::string& job_id) {
  DatasetRecord record;
  record.info = dataset;
  record.job_id = job_id;
  return record;
}

FlushTotals totals_of(Communicator& comm, std::span<const RankRecord> records) {
  std::array<std::int64_t, 2> sums{};
  for (const RankRecord& each : records) {
    sums[0] += std::count_if(each.files.begin(), each.files.end(),
                             [](const FileEntry& file) { return file.begins_here(); });
    sums[1] += static_cast<std::int64_t>(each.data_bytes());
  }
  comm.allreduce(sums, Reduce::sum);
  return {static_cast<std::uint64_t>(sums[0]), static_cast<std::uint64_t>(sums[1])};
}

Status see_shared(const Site& site, const std::string& path) {
  const auto seen = site.files.info(path);
  if (seen) return {};
  return fail(Code::io,
              "the nodes do not share {}: this node does not see what rank 0 created there ({}); "
              "set SCR_PREFIX to a directory that all nodes share",
              site.folder.prefix, seen.error().text);
}

Status Staging::describe(Communicator& comm, const std::string& /*folder*/, Status seen) {
  return agree(comm, std::move(seen));
}

Result<bool> Staging::visit_staged(Communicator& comm, const std::string& /*folder*/,
                                   const Treat& treat) {
  Status treated;
  for (const RankRecord& record : records())
    if (treated) treated = treat(record);
  CAIRN_TRY(agree(comm, std::move(treated)));
  return true;
}

Publication::Publication(const Site& site, Staging& staging, DatasetRecord record)
    : site_(site),
      staging_(staging),
      record_(std::move(record)),
      folder_(site.folder.pending(site.epoch, record_.info)) {}

Publication::Publication(const Site& site, Staging& staging, DatasetRecord record, State state,
                         std::string folder)
    : site_(site),
      staging_(staging),
      record_(std::move(record)),
      state_(state),
      folder_(std::move(folder)),
      is_left_over_(true),
      took_(state == State::published) {}

Status Publication::advance(Communicator& comm) {
  switch (state_) {
    case State::none:
    case State::left:
      return begin(comm);
    case State::begun:
      return plan(comm);
    case State::planned:
      return stage(comm);
    case State::staged:
      return make_visible(comm);
    case State::published:
      return settle(comm);
    case State::settled:
    case State::withdrawn:
      return {};
  }
  return {};
}

Result<FlushAccount> Publication::run(Communicator& comm) {
  Status done;
  while (done && state_ < State::published) {
    const State before = state_;
    done = advance(comm);
    if (done && state_ == before)
      done = fail(Code::lost, "not all parts of {} could be copied", record_.label());
  }
  if (!done) {
    if (state_ != State::none) (void)withdraw(comm);
    return tl::unexpected(std::move(done).error());
  }
  Status settled = advance(comm);
  record_.settled = settled.has_value();
  return FlushAccount{record_, std::move(settled), replaced_};
}

Status Publication::reach(State state, Status done) {
  if (done) state_ = state;
  return done;
}

Status Publication::begin(Communicator& comm) {
  if (state_ == State::none)
    return reach(State::begun, on_keeper(comm, site_, [&](Keeper& keeper) {
                   return keeper.begin(record_.info);
                 }));
  CAIRN_TRY(on_keeper(comm, site_, [&](Keeper& keeper) {
    return keeper.epoch_folder().adopt(folder_, record_.info);
  }));
  folder_ = site_.folder.pending(site_.epoch, record_.info);
  return reach(State::planned, {});
}

/// Records what will be staged before staging, so that a later owner can remove it.
Status Publication::plan(Communicator& comm) {
  CAIRN_TRY(staging_.describe(comm, folder_, see_shared(site_, folder_)));
  const FlushTotals totals = staging_.totals(comm);
  record_.files = totals.files;
  record_.bytes = totals.bytes;
  record_.ranks_per_manifest = ranks_per_manifest;
  record_.flushed_us = site_.clock.now_us();
  if (site_.keeper != nullptr) planned_ = site_.keeper->epoch_folder().plan(record_);
  if (comm.size() == 1) CAIRN_TRY(std::exchange(planned_, {}));  // no other rank needs it
  return reach(State::planned, {});
}

Status Publication::stage(Communicator& comm) {
  CAIRN_ASSIGN(const bool whole, staging_.stage(comm, record_, planned_));
  return whole ? reach(State::staged, {}) : Status{};
}

Status Publication::make_visible(Communicator& comm) {
  CAIRN_TRY(on_keeper(comm, site_, [&](Keeper& keeper) {
    return planned_ ? keeper.publish(record_, staging_.seen()) : planned_;
  }));
  folder_ = site_.folder.dataset(record_.info);
  return reach(State::published, {});
}

Status Publication::settle(Communicator& comm) {
  took_ = took_ || staging_.has_replaced_files();
  CAIRN_TRY(staging_
                .visit_staged(comm, folder_,
                              [&](const RankRecord& record) {
                                took_ = took_ || takes_names(site_.files, site_.folder, record);
                                return settle_rank(site_.files, site_.folder, record,
                                                   is_left_over_ && site_.copy_metadata);
                              })
                .map([](bool) {}));
  replaced_ = mark_replaced(comm, site_, folder_, took_);
  return reach(State::settled, on_keeper(comm, site_, [&](Keeper& keeper) {
                 return keeper.mark_settled(record_.info.uuid);
               }));
}

/// The plan first: otherwise a later owner could continue it, and count a part as done by its
/// marker although its files are gone.
Result<bool> Publication::withdraw(Communicator& comm) {
  const bool is_own = state_ != State::left;
  CAIRN_TRY(on_keeper(comm, site_,
                      [&](Keeper& keeper) { return keeper.epoch_folder().withdraw(folder_); }));
  state_ = State::withdrawn;
  CAIRN_ASSIGN(const bool clean,
               staging_.visit_staged(comm, folder_, [&](const RankRecord& record) {
                 return remove_part(site_.files, site_.folder, folder_, record);
               }));
  if (clean && is_own)
    CAIRN_TRY(on_keeper(
        comm, site_, [&](Keeper& keeper) { return keeper.epoch_folder().abandon(record_.info); }));
  return clean;
}

}  // namespace cairn
