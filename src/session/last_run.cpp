#include "session/last_run.hpp"

#include <map>

#include "comm/blobs.hpp"
#include "config/gather.hpp"
#include "prefix/last_run_file.hpp"
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

void AnnouncedRun::begin(Communicator& comm, Files& files, Clock& clock, const Log& log,
                         const Placement& placement, const ResolvedSettings& resolved) {
  const ProcessFacts facts = current_process();
  run_ = describe_run(comm, placement, resolved.settings, facts.host_name);
  if (comm.rank() != 0) return;
  const auto mark = facts.environment.find("STARTED_BY_CAIRN_RUN");
  run_.by_cairn_run = mark != facts.environment.end() && mark->second == "1";
  run_.version = CAIRN_VERSION;
  run_.cache_base = resolved.value_of("SCR_CACHE_BASE").value_or("");
  run_.control_base = resolved.value_of("SCR_CNTL_BASE").value_or("");
  run_.started_us = clock.now_us();
  const Status kept = keep_last_run(files, clock, PrefixFolder{resolved.settings.prefix}, run_);
  // Of a prefix directory that does not exist there is a message of its own.
  if (!kept && kept.error().code != Code::not_found)
    log.warning(
        "cairn's commands cannot find this job by its prefix directory: {}; give them "
        "SCR_JOB_ID={}",
        kept.error().text, run_.job_id);
}

void AnnouncedRun::end(Files& files, Clock& clock, const Log& log) const {
  const Status marked = mark_last_run_ended(files, clock, PrefixFolder{run_.prefix}, run_);
  if (!marked)
    log.warning("cairn's commands will not know that this run has ended: {}", marked.error().text);
}

}  // namespace cairn
