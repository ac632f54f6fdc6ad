// The settings of the user, typed and checked. Only the table of options (options.cpp) has names,
// defaults and ranges; parsing, `cairn config` and the manual page use it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

enum class Scheme { single, partner, xor_, rs };

/// "XOR" for Scheme::xor_, as in SCR_COPY_TYPE.
std::string_view name_of(Scheme scheme);

/// What Init does with cached datasets that another number of ranks wrote.
enum class OnMismatch { refuse, fresh };

/// What happens if a checkpoint of the prefix directory cannot be fetched.
enum class OnFetchFail { stop, older, fresh };

/// What SCR_Finalize does with copies to the prefix directory that are not finished.
enum class FlushAtEnd { wait, leave };

/// Which ranks see the files of a store: each member of its group its own ones, or all the same
/// ones.
enum class StoreView { private_, global };

/// STORE=path GROUP=NODE COUNT=1 ENABLED=1 MKDIR=1 VIEW=PRIVATE
struct StoreSettings {
  std::string path;  ///< may contain %n, the name of the node
  std::string group = "NODE";
  int count = 1;  ///< datasets kept
  bool enabled = true;
  bool mkdir = true;  ///< make the base directory if it is missing
  StoreView view = StoreView::private_;
  std::string origin = {};  ///< the setting that names the store, and its source

  /// All ranks see the same files there.
  bool shared() const { return view == StoreView::global || group == "WORLD"; }
};

/// CKPT=0 INTERVAL=1 GROUP=NODE STORE=/dev/shm TYPE=XOR SET_SIZE=8 SET_FAILURES=2 COPIES=1 HOP=1
/// BYPASS=0 OUTPUT=0 PROTECT=NOW FLUSH_ASYNC=0
struct CheckpointSettings {
  int id = 0;
  bool enabled = true;
  std::string store;  ///< path of a store
  std::string group = "NODE";
  Scheme scheme = Scheme::xor_;
  int interval = 1;
  int set_size = 8;
  int set_failures = 2;    ///< of RS
  int partner_copies = 1;  ///< of PARTNER
  int partner_hop = 1;     ///< of PARTNER: distance in the set
  bool bypass = false;
  bool output = false;
  bool behind = false;                   ///< CAIRN_PROTECT: protected while the program computes
  std::optional<bool> flush_async = {};  ///< none: as Settings::flush_async
};

/// GROUPS=host SWITCH=leaf3 RACK=r7: failure groups of one node by group name.
using NodeGroups = std::map<std::string, std::string>;

/// The id of all jobs without an id of their own.
inline constexpr std::string_view unnamed_job = "defjobid";

struct Settings {
  bool enable = true;
  int debug = 0;
  std::string prefix;         ///< absolute
  std::string prefix_origin;  ///< "SCR_PREFIX=/p (environment)", for messages, like the next ones
  std::string user;           ///< SCR_USER_NAME, USER, the user database, else the uid in digits
  std::string job_id;         ///< SCR_JOB_ID, else the resource manager's, else unnamed_job
  std::string job_name;
  std::string node_name;     ///< SCR_NODE_NAME, else the host name; differs between ranks
  std::string control_base;  ///< may hold %n
  std::string control_origin;

  int checkpoint_interval = 0;
  int checkpoint_seconds = 0;
  double checkpoint_overhead = 0;

  bool cache_purge = false;
  bool distribute = true;
  bool copy_metadata = true;
  bool keep_old = true;                         ///< CAIRN_KEEP_OLD
  OnMismatch on_mismatch = OnMismatch::refuse;  ///< CAIRN_ON_MISMATCH
  bool elastic = false;                         ///< CAIRN_ELASTIC: any number of ranks restarts
  std::vector<std::string> broadcast;           ///< CAIRN_BROADCAST: shell patterns of names
  std::uint64_t block_bytes = 256 << 10;        ///< CAIRN_BLOCK_SIZE: checksum, repair, messages
  std::uint64_t encode_bytes = 32 << 20;        ///< CAIRN_ENCODE_MEMORY per rank
  std::uint64_t checkpoint_bytes = 0;           ///< CAIRN_CHECKPOINT_SIZE per rank, 0 unknown

  /// False only in tests of the cache, which have no prefix directory. Otherwise outputs are always
  /// copied.
  bool flush = false;
  int flush_interval = 0;  ///< SCR_FLUSH, checkpoints; 0: only outputs
  int flush_width = 256;   ///< ranks that copy to it at a time
  int fetch_width = 256;   ///< and from it
  int io_threads = 2;      ///< of a rank that copies
  std::uint64_t io_piece_bytes = std::uint64_t{16} << 20;
  std::uint64_t flush_bytes_per_s = 0;  ///< CAIRN_FLUSH_BANDWIDTH of a node, 0: any
  bool flush_async = false;             ///< SCR_FLUSH_ASYNC: the program does not wait for it
  std::uint64_t async_bytes_per_s = 0;  ///< SCR_FLUSH_ASYNC_BW of a node, 0: flush_bytes_per_s
  double async_percent = 0;             ///< SCR_FLUSH_ASYNC_PERCENT of the time, 0: all of it
  FlushAtEnd flush_at_end = FlushAtEnd::wait;  ///< CAIRN_FLUSH_AT_END
  int flush_at_end_seconds = 0;  ///< CAIRN_FLUSH_AT_END_TIMEOUT, 0: until the allocation ends
  bool flush_on_restart = false;
  bool prefix_purge = false;
  bool drop_after_current = false;
  int prefix_size = 0;  ///< checkpoints kept, 0: all
  bool fetch = false;
  bool fetch_bypass = false;  ///< restart files are read where they are
  bool global_restart =
      false;            ///< never from the cache; sets fetch, fetch_bypass, flush_on_restart
  std::string current;  ///< SCR_CURRENT
  OnFetchFail on_fetch_fail = OnFetchFail::older;  ///< CAIRN_ON_FETCH_FAIL
  int restart_attempts = 3;                        ///< CAIRN_RESTART_ATTEMPTS, 0: any number

  int halt_seconds = 0;
  bool halt_exit = false;
  std::int64_t end_time_s = 0;  ///< SCR_END_TIME, seconds since 1970, 0 unknown

  bool log = false;        ///< SCR_LOG_ENABLE, for the next two
  bool log_text = true;    ///< SCR_LOG_TXT_ENABLE
  bool log_syslog = true;  ///< SCR_LOG_SYSLOG_ENABLE
  bool log_json = false;   ///< CAIRN_LOG_JSON

  std::vector<StoreSettings> stores;
  std::vector<CheckpointSettings> checkpoints;    ///< enabled ones, by id
  std::map<std::string, NodeGroups> node_groups;  ///< by node name; NODE and WORLD are built in
};

/// The program does not wait until a dataset of this descriptor is in the prefix directory.
bool flushes_async(const Settings& settings, const CheckpointSettings& checkpoint);

/// As that, for a dataset of any descriptor.
bool flushes_any_async(const Settings& settings);

/// Replaces every %n by the name of the node.
std::string expand_node(const std::string& path, const std::string& node_name);

}  // namespace cairn
