#include "session/last_run.hpp"

#include <map>

#include "comm/blobs.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

constexpr int tag = 1;

Blob to_blob(const NodeOfRun& node) {
  Encoder out;
  out.text(node.name);
  out.text(node.host);
  return out.take();
}

NodeOfRun node_of(const Blob& blob) {
  Decoder in(blob);
  return {in.text(), in.text(), 0};
}

/// On rank 0: from the first rank of each node.
std::vector<NodeOfRun> gather_nodes(Communicator& comm, const Placement& placement,
                                    const Settings& settings, const std::string& host) {
  const NodeOfRun mine{settings.node_name, host, 0};
  if (comm.rank() != 0) {
    if (placement.beside(comm.rank()).front() == comm.rank())
      send_blob(comm, to_blob(mine), 0, tag);
    return {};
  }
  std::map<std::uint64_t, std::uint64_t> ranks;  // on each node
  for (const std::uint64_t node : placement.node_of_rank) ++ranks[node];
  std::vector<NodeOfRun> nodes;
  for (const int first : placement.first_ranks()) {
    nodes.push_back(first == 0 ? mine : node_of(recv_blob(comm, first, tag)));
    nodes.back().ranks = ranks[placement.node_of_rank[static_cast<std::size_t>(first)]];
  }
  return nodes;
}

}  // namespace

LastRunRecord describe_run(Communicator& comm, const Placement& placement, const Settings& settings,
                           const std::string& host) {
  std::vector<NodeOfRun> nodes = gather_nodes(comm, placement, settings, host);
  if (comm.rank() != 0) return {};
  LastRunRecord record;
  record.job_id = settings.job_id;
  record.user = settings.user;
  record.prefix = settings.prefix;
  record.nodes = std::move(nodes);
  for (const StoreSettings& store : settings.stores)
    if (store.enabled) record.stores.push_back({store.path, store.shared()});
  record.host = host;
  record.process = this_process();
  return record;
}

}  // namespace cairn
