#include "session/space.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "comm/group.hpp"

namespace cairn {
namespace {

/// `per_dataset` is what all ranks that share the store write for one dataset.
Status check_store(const Store& store, std::uint64_t per_dataset, std::uint64_t cached_datasets,
                   const Settings& settings) {
  const auto copies =
      static_cast<std::uint64_t>(store.settings().count) + (settings.keep_old ? 1 : 0);
  const std::uint64_t need = copies * per_dataset;
  CAIRN_ASSIGN(const Space space, store.space());
  const std::uint64_t available = space.free_bytes + cached_datasets * per_dataset;
  if (need <= available) return {};
  return fail(
      Code::no_space,
      "{} on node {} is too small: its ranks keep up to {} datasets of {} (data and parity), {} in "
      "all, and there are {}; lower SCR_CACHE_SIZE, choose a larger SCR_CACHE_BASE{}",
      store.root(), settings.node_name, copies, format_bytes(per_dataset), format_bytes(need),
      format_bytes(available), settings.keep_old ? ", or set CAIRN_KEEP_OLD=0" : "");
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
  Status status;
  for (std::size_t store = 0; store < stores.size(); ++store) {
    const auto share = static_cast<std::int64_t>(largest_share(levels, store, data_bytes));
    Communicator& sharing = stores[store].shared() ? comm : static_cast<Communicator&>(node);
    const auto per_dataset = static_cast<std::uint64_t>(allreduce(sharing, share, Reduce::sum));
    const auto cached = std::count_if(
        datasets.begin(), datasets.end(),
        [store](const auto& dataset) { return dataset.store == store && dataset.usable(); });
    if (status && per_dataset > 0)
      status =
          check_store(stores[store], per_dataset, static_cast<std::uint64_t>(cached), settings);
  }
  return agree(comm, std::move(status));
}

}  // namespace cairn
