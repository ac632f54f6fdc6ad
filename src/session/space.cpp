#include "session/space.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/count.hpp"
#include "base/units.hpp"
#include "comm/group.hpp"
#include "session/async_flushing.hpp"
#include "session/sharing.hpp"

namespace cairn {
namespace {

/// What all ranks that share a store keep in it.
struct Demand {
  const Store* store;
  Space space;
  std::uint64_t per_dataset;
  std::uint64_t copies;         ///< at the peak
  std::uint64_t present_bytes;  ///< of the datasets there, which give their room to new ones

  std::uint64_t peak_bytes() const { return copies * per_dataset; }
};

std::string describe(const Demand& demand) {
  return fmt::format("{}: up to {} of {} (data and parity)", demand.store->root(),
                     count_text(demand.copies, "dataset"), format_bytes(demand.per_dataset));
}

/// `demands` are those of the stores on one file system.
Status check_file_system(const std::vector<Demand>& demands, const Settings& settings) {
  std::uint64_t peak = 0;
  std::uint64_t available = demands[0].space.free_bytes;
  std::vector<std::string> described;
  for (const Demand& demand : demands) {
    peak += demand.peak_bytes();
    available += demand.present_bytes;
    described.push_back(describe(demand));
  }
  if (peak <= available) return {};
  return fail(
      Code::no_space,
      "node {} has too little space for {}; they need {}, and {} are free; lower "
      "SCR_CACHE_SIZE, choose a larger SCR_CACHE_BASE{}{}",
      settings.node_name, fmt::join(described, ", "), format_bytes(peak), format_bytes(available),
      settings.keep_old ? ", or set CAIRN_KEEP_OLD=0" : "",
      flushes_any_async(settings)
          ? fmt::format(", or copy without SCR_FLUSH_ASYNC, which keeps {} more", most_in_flight)
          : "");
}

Status check_demands(const std::vector<Demand>& demands, const Settings& settings) {
  std::map<std::uint64_t, std::vector<Demand>> by_file_system;
  for (const Demand& demand : demands)
    if (demand.per_dataset > 0) by_file_system[demand.space.file_system].push_back(demand);
  for (const auto& [file_system, sharing] : by_file_system)
    CAIRN_TRY(check_file_system(sharing, settings));
  return {};
}

/// Collective. How much data each member of a set has.
std::vector<std::uint64_t> bytes_of_members(Communicator& comm, const std::vector<int>& members,
                                            std::uint64_t mine) {
  std::vector<std::uint64_t> bytes(members.size());
  Group(comm, members).allgather(bytes_of(mine), std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Collective. What this rank writes for one dataset under the level that takes most.
std::uint64_t largest_share(Communicator& comm, const std::vector<Level>& levels, std::size_t store,
                            std::uint64_t data_bytes) {
  std::uint64_t largest = 0;
  for (const Level& level : levels) {
    if (level.store != store || level.settings.bypass) continue;
    Encoding encoding = level.encoding;
    encoding.member_bytes = bytes_of_members(comm, encoding.members, data_bytes);
    const auto me = std::find(encoding.members.begin(), encoding.members.end(), comm.rank());
    largest =
        std::max(largest, cached_bytes(encoding, static_cast<int>(me - encoding.members.begin())));
  }
  return largest;
}

/// This rank's part of the newest `copies` checkpoints that a store holds.
std::uint64_t present_bytes(const std::vector<CachedDataset>& datasets, std::size_t store,
                            std::uint64_t copies) {
  std::uint64_t bytes = 0;
  for (const CachedDataset& dataset : datasets) {
    if (!dataset.is_in(store) || !dataset.usable() || dataset.info.is_output()) continue;
    if (copies-- == 0) break;
    bytes += cached_bytes(dataset.record.encoding, dataset.record.index_in_set());
  }
  return bytes;
}

/// Collective, over the ranks that share the store.
Demand demand_of(Communicator& sharing, const Store& store, std::uint64_t copies,
                 std::uint64_t share, std::uint64_t present) {
  std::array<std::int64_t, 2> sums = {static_cast<std::int64_t>(share),
                                      static_cast<std::int64_t>(present)};
  sharing.allreduce(sums, Reduce::sum);
  return {
      &store, {}, static_cast<std::uint64_t>(sums[0]), copies, static_cast<std::uint64_t>(sums[1])};
}

}  // namespace

std::uint64_t cached_bytes(const Encoding& encoding, int member) {
  const SetLayout layout(encoding);
  return layout.data_bytes(member) + layout.parity_bytes(member);
}

Status check_space(Communicator& comm, const std::vector<Store>& stores,
                   const std::vector<Level>& levels, const Placement& placement,
                   const Settings& settings, const std::vector<CachedDataset>& datasets,
                   std::uint64_t data_bytes) {
  std::vector<Demand> demands;
  for (std::size_t place = 0; place < stores.size(); ++place) {
    const Store& store = stores[place];
    // Settings and placement are the same everywhere, so all ranks fail here or none does.
    CAIRN_ASSIGN(std::vector<int> ranks, ranks_sharing(store, comm.rank(), placement, settings));
    const auto count = static_cast<std::uint64_t>(store.settings().count);
    // What is in flight stays until it has arrived.
    const std::uint64_t copies =
        count + (settings.keep_old ? 1 : 0) + (flushes_any_async(settings) ? most_in_flight : 0);
    const std::uint64_t share = largest_share(comm, levels, place, data_bytes);
    const std::uint64_t present = present_bytes(datasets, place, copies);
    if (store.shared()) {
      demands.push_back(demand_of(comm, store, copies, share, present));
    } else {
      Group sharing(comm, std::move(ranks));
      demands.push_back(demand_of(sharing, store, copies, share, present));
    }
  }
  const auto fits = [&]() -> Status {
    for (Demand& demand : demands) {
      CAIRN_ASSIGN(demand.space, demand.store->space());
    }
    return check_demands(demands, settings);
  };
  return agree(comm, fits());
}

std::string outputs_held(const std::vector<CachedDataset>& datasets, std::size_t store) {
  const auto outputs =
      std::count_if(datasets.begin(), datasets.end(), [store](const CachedDataset& dataset) {
        const bool can_be_deleted = !is_left_alone(dataset.state);
        return dataset.awaits_copy() && can_be_deleted && dataset.is_in(store);
      });
  if (outputs == 0) return "";
  return fmt::format(
      "; the store holds {} {} that {} not in the prefix directory yet: SCR_Delete frees their "
      "space",
      outputs, outputs == 1 ? "output" : "outputs", outputs == 1 ? "is" : "are");
}

}  // namespace cairn
