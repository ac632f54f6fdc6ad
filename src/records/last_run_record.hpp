// The record of a run, with which commands find its job from the prefix directory alone
// (docs/format/last-run-record.md).
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "files/process_identity.hpp"

namespace cairn {

/// A node that had ranks. With simulated nodes, two names may be one host.
struct NodeOfRun {
  std::string name;  ///< SCR_NODE_NAME
  std::string host;
  std::uint64_t ranks = 0;

  bool operator==(const NodeOfRun&) const = default;
};

/// A store in the settings of the run.
struct StoreOfRun {
  std::string path;  ///< may contain %n
  bool shared = false;

  bool operator==(const StoreOfRun&) const = default;
};

struct LastRunRecord {
  std::string job_id;
  std::string user;
  std::string version;  ///< of Cairn
  bool by_cairn_run = false;
  std::string prefix;            ///< the path of the prefix directory, to detect a copy of it
  std::vector<NodeOfRun> nodes;  ///< in the order of their first ranks
  std::string cache_base;        ///< SCR_CACHE_BASE
  std::string control_base;      ///< SCR_CNTL_BASE
  std::vector<StoreOfRun> stores;
  std::string host;             ///< where rank 0 ran
  ProcessIdentity process;      ///< of rank 0
  std::int64_t started_us = 0;  ///< end of SCR_Init, since 1970
  std::int64_t ended_us = 0;    ///< end of SCR_Finalize, or 0

  std::uint64_t ranks() const;
  bool operator==(const LastRunRecord&) const = default;
};

inline constexpr std::uint32_t last_run_version = 1;

Blob encode(const LastRunRecord& record);
Result<LastRunRecord> decode_last_run_record(Bytes content);

}  // namespace cairn
