#include "session/space.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/units.hpp"
#include "comm/group.hpp"

namespace cairn {
namespace {

/// What all ranks that share a store keep in it.
struct Demand {
  const Store* store;
  Space space;
  std::uint64_t per_dataset;
  std::uint64_t copies;  ///< at the peak
  std::uint64_t cached;  ///< of these, already there

  std::uint64_t peak_bytes() const { return copies * per_dataset; }
  std::uint64_t present_bytes() const { return std::min(copies, cached) * per_dataset; }
};

std::string describe(const Demand& demand) {
  return fmt::format("{}: up to {} datasets of {} (data and parity)", demand.store->root(),
                     demand.copies, format_bytes(demand.per_dataset));
}

/// `demands` are those of the stores on one file system.
Status check_file_system(const std::vector<Demand>& demands, const Settings& settings) {
  std::uint64_t peak = 0;
  std::uint64_t available = demands[0].space.free_bytes;
  std::vector<std::string> described;
  for (const Demand& demand : demands) {
    peak += demand.peak_bytes();
    available += demand.present_bytes();
    described.push_back(describe(demand));
  }
  if (peak <= available) return {};
  return fail(Code::no_space,
              "node {} has too little space for what its ranks keep in {}; {} in all, and there "
              "are {}; lower SCR_CACHE_SIZE, choose a larger SCR_CACHE_BASE{}",
              settings.node_name, fmt::join(described, ", "), format_bytes(peak),
              format_bytes(available), settings.keep_old ? ", or set CAIRN_KEEP_OLD=0" : "");
}

Status check_demands(const std::vector<Demand>& demands, const Settings& settings) {
  std::map<std::uint64_t, std::vector<Demand>> by_file_system;
  for (const Demand& demand : demands)
    if (demand.per_dataset > 0) by_file_system[demand.space.file_system].push_back(demand);
  for (const auto& [file_system, sharing] : by_file_system)
    CAIRN_TRY(check_file_system(sharing, settings));
  return {};
}

/// What this rank writes for one dataset under the level that takes most.
std::uint64_t largest_share(const std::vector<Level>& levels, std::size_t store,
                            std::uint64_t data_bytes) {
  std::uint64_t bytes = 0;
  for (const Level& level : levels)
    if (level.store == store) bytes = std::max(bytes, cached_bytes(data_bytes, level.encoding));
  return bytes;
}

}  // namespace

std::uint64_t cached_bytes(std::uint64_t data_bytes, Encoding encoding) {
  encoding.member_bytes.assign(encoding.members.size(), data_bytes);
  return data_bytes + SetLayout(encoding).parity_bytes(0);
}

Status check_space(Communicator& comm, const std::vector<Store>& stores,
                   const std::vector<Level>& levels, const Placement& placement,
                   const Settings& settings, const std::vector<CachedDataset>& datasets,
                   std::uint64_t data_bytes) {
  Group node(comm, placement.beside(comm.rank()));
  std::vector<Demand> demands;
  for (std::size_t store = 0; store < stores.size(); ++store) {
    const auto share = static_cast<std::int64_t>(largest_share(levels, store, data_bytes));
    Communicator& sharing = stores[store].shared() ? comm : static_cast<Communicator&>(node);
    const auto cached =
        std::count_if(datasets.begin(), datasets.end(), [store](const CachedDataset& dataset) {
          return dataset.store == store && dataset.usable() && !dataset.info.is_output();
        });
    const int count = stores[store].settings().count;
    demands.push_back({&stores[store],
                       {},
                       static_cast<std::uint64_t>(allreduce(sharing, share, Reduce::sum)),
                       static_cast<std::uint64_t>(count) + (settings.keep_old ? 1 : 0),
                       static_cast<std::uint64_t>(cached)});
  }
  const auto fits = [&]() -> Status {
    for (Demand& demand : demands) {
      CAIRN_ASSIGN(demand.space, demand.store->space());
    }
    return check_demands(demands, settings);
  };
  return agree(comm, fits());
}

}  // namespace cairn
