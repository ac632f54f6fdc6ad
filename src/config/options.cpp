#include "config/options.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <vector>

namespace cairn {
namespace {

using namespace std::string_view_literals;

constexpr std::array copy_types = {"SINGLE"sv, "PARTNER"sv, "XOR"sv, "RS"sv, "FILE"sv};
constexpr std::span<const std::string_view> schemes = std::span(copy_types).first(4);
constexpr std::array views = {"PRIVATE"sv, "GLOBAL"sv};
constexpr std::array remote_ways = {"auto"sv, "ssh"sv, "pdsh"sv};
constexpr std::array fetch_answers = {"stop"sv, "older"sv, "fresh"sv};
constexpr std::array at_end_answers = {"wait"sv, "leave"sv};
constexpr std::array protect_times = {"now"sv, "behind"sv};
constexpr std::array mismatch_answers = {"refuse"sv, "fresh"sv};

constexpr std::uint64_t max_int = std::numeric_limits<int>::max();
constexpr Rule boolean{ValueType::boolean};
constexpr Rule text{ValueType::text};
constexpr Rule path{ValueType::path};
constexpr Rule path_from_here{ValueType::path_from_here};
constexpr Rule component{ValueType::component};
constexpr Rule group{ValueType::group};
constexpr Rule percent{ValueType::percent};
constexpr Rule at_least_0{ValueType::integer, 0, max_int};
constexpr Rule at_least_1{ValueType::integer, 1, max_int};
constexpr Rule epoch_s{ValueType::integer};
constexpr Rule set_size{ValueType::integer, 2,
                        128};  // sets of up to twice as many; GF(2^8) ends at 256
constexpr Rule set_failures{ValueType::integer, 1, 8};
constexpr Rule partner_hop{ValueType::integer, 1, 255};
constexpr Rule block_size{ValueType::bytes, 4 << 10, 1 << 20, true};
constexpr Rule encode_memory{ValueType::bytes, 1 << 20, 64ULL << 30};
constexpr Rule io_threads{ValueType::integer, 1, 64};
constexpr Rule io_size{ValueType::bytes, 1 << 20, 1ULL << 30};
constexpr Rule any_size{ValueType::bytes};

constexpr Rule one_of(std::span<const std::string_view> words) {
  return Rule{ValueType::word, 0, 0, false, words};
}

constexpr Flags usual{};
constexpr Flags outside_files{.not_in_files = true};
constexpr Flags of_process{.not_by_app = true, .not_in_files = true, .per_rank = true};
constexpr Flags environment_only{.not_by_app = true, .not_in_files = true};
constexpr Flags later{.use = Use::later};
constexpr Flags never{.use = Use::never};
constexpr Flags never_secret{.use = Use::never, .not_by_app = true, .secret = true};

bool is_on(const Value& value) { return value.number != 0; }

/// "a,b" -> a and b; skips empty parts.
std::vector<std::string> split_at_commas(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}
int as_int(const Value& value) { return static_cast<int>(value.number); }

constexpr Option table[] = {
    // --- the run ---
    {"SCR_ENABLE", boolean, "", "1",
     "0 switches checkpoint/restart off: every call returns at once", usual,
     [](Settings& s, const Value& v) { s.enable = is_on(v); }},
    {"SCR_DEBUG", Rule{ValueType::integer, 0, 9}, "", "0",
     "1 or more: print a line on stderr for every dataset, not only for the first", usual,
     [](Settings& s, const Value& v) { s.debug = as_int(v); }},
    {"SCR_PREFIX", path_from_here, "", "",
     "the prefix directory; a relative path begins at rank 0's working directory, the default",
     usual, [](Settings& s, const Value& v) { s.prefix = v.text; }},
    {"SCR_CONF_FILE", path_from_here, "", "",
     "the user's configuration file; default: .scrconf in the prefix directory", outside_files},
    {"SCR_USER_NAME", component, "", "",
     "the user's name in paths; default: $USER, else that of the user database, else the user id",
     usual, [](Settings& s, const Value& v) { s.user = v.text; }},
    {"SCR_JOB_ID", component, "", "",
     "the job's id in paths; default: the resource manager's, else defjobid", usual,
     [](Settings& s, const Value& v) { s.job_id = v.text; }},
    {"SCR_NODE_NAME", component, "", "",
     "this node's name; default: the host name. Ranks with one name share a node", of_process,
     [](Settings& s, const Value& v) { s.node_name = v.text; }},

    // --- when to checkpoint ---
    {"SCR_CHECKPOINT_INTERVAL", at_least_0, "", "0",
     "SCR_Need_checkpoint says yes at each n-th call", usual,
     [](Settings& s, const Value& v) { s.checkpoint_interval = as_int(v); }},
    {"SCR_CHECKPOINT_SECONDS", at_least_0, "s", "0",
     "SCR_Need_checkpoint says yes when the last checkpoint is this old", usual,
     [](Settings& s, const Value& v) { s.checkpoint_seconds = as_int(v); }},
    {"SCR_CHECKPOINT_OVERHEAD", percent, "%", "0",
     "SCR_Need_checkpoint says yes while checkpoints cost less of the run time than this", usual,
     [](Settings& s, const Value& v) { s.checkpoint_overhead = v.real; }},
    {"SCR_HALT_SECONDS", at_least_0, "s", "0",
     "stop this long before the allocation ends; cairn halt --seconds overrides it", usual,
     [](Settings& s, const Value& v) { s.halt_seconds = as_int(v); }},
    {"SCR_HALT_EXIT", boolean, "", "0",
     "1: SCR_Init, and the Complete of a checkpoint, end a program that should stop", usual,
     [](Settings& s, const Value& v) { s.halt_exit = is_on(v); }},
    {"SCR_END_TIME", epoch_s, "s", "0",
     "when the allocation ends, in seconds since 1970; 0: unknown", usual,
     [](Settings& s, const Value& v) { s.end_time_s = static_cast<std::int64_t>(v.number); }},

    // --- the cache ---
    {"SCR_CNTL_BASE", path, "", "/dev/shm",
     "node-local directory that holds the control directory; %n is the node's name", usual,
     [](Settings& s, const Value& v) { s.control_base = v.text; }},
    {"SCR_CACHE_BASE", path, "", "/dev/shm", "the default store; %n is the node's name"},
    {"SCR_CACHE_SIZE", at_least_1, "", "1", "checkpoints kept in the default store"},
    {"SCR_CACHE_BYPASS", boolean, "", "0",
     "1 lets the program write straight to the prefix directory: nothing is cached or protected"},
    {"SCR_CACHE_PURGE", boolean, "", "0",
     "1 deletes all cached datasets at the start, also those of a newer format", usual,
     [](Settings& s, const Value& v) { s.cache_purge = is_on(v); }},
    {"SCR_DISTRIBUTE", boolean, "", "1",
     "0: cached datasets of earlier runs are not offered, moved or deleted", usual,
     [](Settings& s, const Value& v) { s.distribute = is_on(v); }},
    {"SCR_COPY_METADATA", boolean, "", "1", "keep the mode and times of files", usual,
     [](Settings& s, const Value& v) { s.copy_metadata = is_on(v); }},
    {"CAIRN_KEEP_OLD", boolean, "", "1",
     "1 keeps the old checkpoint until the new one is protected; 0 needs less space, but a failure "
     "meanwhile loses both",
     usual, [](Settings& s, const Value& v) { s.keep_old = is_on(v); }},
    {"CAIRN_ON_MISMATCH", one_of(mismatch_answers), "", "refuse",
     "if another number of ranks wrote the newest checkpoint, fail (the default), or start from "
     "scratch (fresh)",
     usual, [](Settings& s, const Value& v) { s.on_mismatch = static_cast<OnMismatch>(v.number); }},

    {"CAIRN_ELASTIC", boolean, "", "0",
     "1: also restart from checkpoints of another number of ranks, in the prefix directory; any "
     "rank then reads any file",
     usual, [](Settings& s, const Value& v) { s.elastic = is_on(v); }},
    {"CAIRN_BROADCAST", text, "", "",
     "file names, or patterns as in the shell, separated by commas: at a restart each node gets a "
     "copy for all its ranks",
     usual, [](Settings& s, const Value& v) { s.broadcast = split_at_commas(v.text); }},

    // --- the prefix directory ---
    {"SCR_FLUSH", at_least_0, "", "10",
     "copies each n-th checkpoint to the prefix directory, and the newest at SCR_Finalize; 0: "
     "none. "
     "Outputs are always copied",
     usual,
     [](Settings& s, const Value& v) {
       s.flush = true;
       s.flush_interval = as_int(v);
     }},
    {"SCR_FLUSH_WIDTH", at_least_1, "", "256", "ranks that copy to it at the same time", usual,
     [](Settings& s, const Value& v) { s.flush_width = as_int(v); }},
    {"SCR_FLUSH_ASYNC", boolean, "", "0",
     "1: the program goes on while a dataset is copied; the cache then needs room for two more",
     usual, [](Settings& s, const Value& v) { s.flush_async = is_on(v); }},
    {"SCR_FLUSH_ASYNC_BW", any_size, "bytes/s", "0",
     "limit for such copies, per node and second; 0: that of CAIRN_FLUSH_BANDWIDTH", usual,
     [](Settings& s, const Value& v) { s.async_bytes_per_s = v.number; }},
    {"SCR_FLUSH_ASYNC_PERCENT", percent, "%", "0",
     "share of the time in which the thread of such copies works; 0 or 100: no limit", usual,
     [](Settings& s, const Value& v) { s.async_percent = v.real; }},
    {"CAIRN_FLUSH_AT_END", one_of(at_end_answers), "", "wait",
     "SCR_Finalize waits for copies that are not finished (wait), or leaves them to cairn run or "
     "cairn drain (leave)",
     usual,
     [](Settings& s, const Value& v) { s.flush_at_end = static_cast<FlushAtEnd>(v.number); }},
    {"CAIRN_FLUSH_AT_END_TIMEOUT", at_least_0, "s", "0",
     "how long SCR_Finalize waits for copies at most; 0: until shortly before the end of the "
     "allocation, if it is known",
     usual, [](Settings& s, const Value& v) { s.flush_at_end_seconds = as_int(v); }},
    {"SCR_FETCH_WIDTH", at_least_1, "", "256", "ranks that copy from it at the same time", usual,
     [](Settings& s, const Value& v) { s.fetch_width = as_int(v); }},
    {"CAIRN_FLUSH_BANDWIDTH", any_size, "bytes/s", "0",
     "limit for copies to or from it, per node and second; 0: no limit", usual,
     [](Settings& s, const Value& v) { s.flush_bytes_per_s = v.number; }},
    {"CAIRN_IO_THREADS", io_threads, "", "2", "threads by which a rank copies to or from it", usual,
     [](Settings& s, const Value& v) { s.io_threads = as_int(v); }},
    {"CAIRN_IO_SIZE", io_size, "bytes", "16MB", "size of the pieces that a thread copies", usual,
     [](Settings& s, const Value& v) { s.io_piece_bytes = v.number; }},
    {"SCR_FLUSH_ON_RESTART", boolean, "", "0",
     "1 copies all cached datasets there at the start, before a restart reads one", usual,
     [](Settings& s, const Value& v) { s.flush_on_restart = is_on(v); }},
    {"SCR_PREFIX_SIZE", at_least_0, "", "0", "checkpoints kept there; 0: all", usual,
     [](Settings& s, const Value& v) { s.prefix_size = as_int(v); }},
    {"SCR_PREFIX_PURGE", boolean, "", "0",
     "1 deletes all datasets there at the start, with their files: for one run only", usual,
     [](Settings& s, const Value& v) { s.prefix_purge = is_on(v); }},
    {"SCR_DROP_AFTER_CURRENT", boolean, "", "0",
     "1 lets SCR_Current drop the newer checkpoints there; their files stay", usual,
     [](Settings& s, const Value& v) { s.drop_after_current = is_on(v); }},
    {"SCR_FETCH", boolean, "", "1", "1 looks for a checkpoint there if the caches have none", usual,
     [](Settings& s, const Value& v) { s.fetch = is_on(v); }},
    {"SCR_FETCH_BYPASS", boolean, "", "0",
     "1 restarts from the files in the prefix directory, without a copy in the cache", usual,
     [](Settings& s, const Value& v) { s.fetch_bypass = is_on(v); }},
    // After the settings that it overrides.
    {"SCR_GLOBAL_RESTART", boolean, "", "0",
     "1 restarts only from the prefix directory: like SCR_FLUSH_ON_RESTART, SCR_FETCH_BYPASS and "
     "SCR_FETCH set to 1",
     usual,
     [](Settings& s, const Value& v) {
       s.global_restart = is_on(v);
       if (s.global_restart) s.fetch = s.fetch_bypass = s.flush_on_restart = true;
     }},
    {"SCR_CURRENT", text, "", "", "name of the checkpoint to fetch first", usual,
     [](Settings& s, const Value& v) { s.current = v.text; }},
    {"CAIRN_ON_FETCH_FAIL", one_of(fetch_answers), "", "older",
     "if one cannot be fetched: stop, use the next older one, or start fresh", usual,
     [](Settings& s, const Value& v) { s.on_fetch_fail = static_cast<OnFetchFail>(v.number); }},
    {"CAIRN_RESTART_ATTEMPTS", at_least_0, "", "3",
     "failed restarts from one checkpoint before an older one is used; 0: any number", usual,
     [](Settings& s, const Value& v) { s.restart_attempts = as_int(v); }},

    // --- the log ---
    {"SCR_JOB_NAME", text, "", "", "name of the job in the START entry of the log", usual,
     [](Settings& s, const Value& v) { s.job_name = v.text; }},
    {"SCR_LOG_ENABLE", boolean, "", "0",
     "1 logs the events of the run, where the next two settings say", usual,
     [](Settings& s, const Value& v) { s.log = is_on(v); }},
    {"SCR_LOG_TXT_ENABLE", boolean, "", "1", "1: in .cairn/log of the prefix directory", usual,
     [](Settings& s, const Value& v) { s.log_text = is_on(v); }},
    {"SCR_LOG_SYSLOG_ENABLE", boolean, "", "1", "1: in the system's log (LOCAL7, INFO)", usual,
     [](Settings& s, const Value& v) { s.log_syslog = is_on(v); }},
    {"CAIRN_LOG_JSON", boolean, "", "0",
     "1 logs in .cairn/log.json of the prefix directory, one JSON object in a line", usual,
     [](Settings& s, const Value& v) { s.log_json = is_on(v); }},

    // --- shared files (rbIO) ---
    {"CAIRN_RBIO", text, "", "",
     "options that override those of rbio_open, as in \"mode=sync files=1\"", environment_only},

    // --- redundancy ---
    {"SCR_COPY_TYPE", one_of(copy_types), "", "XOR",
     "how checkpoints are protected; FILE: as set by the CKPT lines"},
    {"SCR_GROUP", group, "", "NODE", "ranks that are likely to fail together"},
    {"SCR_SET_SIZE", set_size, "", "8", "smallest number of members of a redundancy set"},
    {"SCR_SET_FAILURES", set_failures, "", "2", "lost members of a set that RS can rebuild"},
    {"CAIRN_PARTNER_COPIES", set_failures, "", "1", "copies that PARTNER keeps on other members"},
    {"CAIRN_PARTNER_HOP", partner_hop, "", "1",
     "distance in the set from a member to its first PARTNER copy, and from each copy to the next"},
    {"CAIRN_PROTECT", one_of(protect_times), "", "now",
     "now: a call that completes a checkpoint returns when it is protected; behind: it returns "
     "when "
     "it is written, and Cairn protects it while the program computes"},
    {"CAIRN_BLOCK_SIZE", block_size, "bytes", "256KB",
     "size of a block, the piece that has one checksum and is repaired as a whole", usual,
     [](Settings& s, const Value& v) { s.block_bytes = v.number; }},
    {"CAIRN_ENCODE_MEMORY", encode_memory, "bytes", "32MB",
     "memory of each rank for encoding and rebuilding", usual,
     [](Settings& s, const Value& v) { s.encode_bytes = v.number; }},
    {"CAIRN_CHECKPOINT_SIZE", any_size, "bytes", "0",
     "expected size of a checkpoint per rank, to check the free space at the start; 0: unknown",
     usual, [](Settings& s, const Value& v) { s.checkpoint_bytes = v.number; }},

    // --- of `cairn run`, which the program does not use ---
    {"SCR_RUNS", text, "", "1", "launches in one allocation; -1: no limit", usual},
    {"SCR_RETRIES", text, "", "", "older setting: the number of SCR_RUNS, minus 1; -1: no limit",
     usual},
    {"SCR_MIN_NODES", at_least_1, "", "", "stop when fewer nodes are healthy", usual},
    {"SCR_EXCLUDE_NODES", text, "", "", "nodes never used"},
    {"SCR_NODE_TESTS", text, "", "ping,echo,dir_capacity", "health tests of nodes", usual},
    {"SCR_NODELIST", text, "", "", "nodes of the allocation", usual},
    {"CAIRN_REMOTE", one_of(remote_ways), "", "auto",
     "how commands reach nodes if the resource manager cannot run them; auto: ssh, or pdsh if "
     "there is no ssh"},
    {"SCR_WATCHDOG", boolean, "", "0", "1 ends a run that makes no progress", usual},
    {"SCR_WATCHDOG_TIMEOUT", at_least_1, "s", "", "how long a run may make no progress"},
    {"SCR_WATCHDOG_TIMEOUT_PFS", at_least_1, "s", "",
     "the same while it copies to the prefix directory"},

    // --- of `cairn wrap`, which the program does not use ---
    {"SCR_CHECKPOINT_PATTERN", text, "", "",
     "checkpoint files of unmodified programs: `lo-hi:expression` for ranks, as in SCR (`cairn "
     "wrap`)"},
    {"SCR_CHECKPOINT_PATTERN_TOKEN", text, "", ",", "separates these patterns"},

    // --- of SCR, accepted without effect ---
    {"SCR_FETCH_TYPE", text, "", "SYNC", "how SCR fetches files; Cairn: SYNC only", later},
    {"SCR_FLUSH_TYPE", text, "", "SYNC", "how SCR flushes files; Cairn: SYNC only", later},
    {"SCR_FLUSH_ASYNC_USLEEP", text, "", "1000", "microseconds between looks at such a flush",
     later},
    {"SCR_FLUSH_POSTSTAGE", text, "", "0",
     "1: flushes may end after the job; Cairn: CAIRN_FLUSH_AT_END=leave", later},
    {"SCR_USE_CONTAINERS", text, "", "0", "1: few large files in the prefix directory", later},
    {"SCR_CONTAINER_SIZE", text, "", "100GB", "size of these files", later},
    {"SCR_CHECKPOINT_DIR_PATTERN", text, "", "", "checkpoint directories of unmodified programs",
     later},
    {"SCR_CLUSTER_NAME", text, "", "", "name of the cluster in SCR's database", never},
    {"SCR_LOG_DB_ENABLE", text, "", "0", "log in a database; Cairn: CAIRN_LOG_JSON", never},
    {"SCR_LOG_DB_DEBUG", text, "", "0", "messages about the database", never},
    {"SCR_LOG_DB_HOST", text, "", "", "host of the database", never},
    {"SCR_LOG_DB_NAME", text, "", "", "name of the database", never},
    {"SCR_LOG_DB_USER", text, "", "", "user of the database", never},
    {"SCR_LOG_DB_PASS", text, "", "", "password of the database", never_secret},
    {"SCR_MPI_BUF_SIZE", text, "", "", "bytes in a message; Cairn: CAIRN_BLOCK_SIZE", never},
    {"SCR_FILE_BUF_SIZE", text, "", "", "bytes that SCR copies at a time", never},
    {"SCR_AXL_MKDIR", text, "", "0", "which process makes directories at a flush", never},
    {"SCR_CRC_ON_COPY", text, "", "0", "checksums at copies; Cairn checks every byte", never},
    {"SCR_CRC_ON_FLUSH", text, "", "1", "checksums at flushes; Cairn checks every byte", never},
    {"SCR_CRC_ON_DELETE", text, "", "0", "checksums at deletion", never},
    {"REDSET_ENCODE", text, "", "CPU", "what encodes; Cairn: the processor, as CPU", never},
};

constexpr Leaf<StoreSettings> store_table[] = {
    {"GROUP", group, "", "NODE", "ranks that see the same files there",
     [](StoreSettings& s, const Value& v) { s.group = v.text; }},
    {"COUNT", at_least_1, "SCR_CACHE_SIZE", "", "checkpoints kept",
     [](StoreSettings& s, const Value& v) { s.count = as_int(v); }},
    {"ENABLED", boolean, "", "1", "0 switches the store off",
     [](StoreSettings& s, const Value& v) { s.enabled = is_on(v); }},
    {"MKDIR", boolean, "", "1", "1 creates the directory if it does not exist",
     [](StoreSettings& s, const Value& v) { s.mkdir = is_on(v); }},
    {"VIEW", one_of(views), "", "PRIVATE",
     "PRIVATE: each group has files of its own there; GLOBAL: all share them",
     [](StoreSettings& s, const Value& v) { s.view = static_cast<StoreView>(v.number); }},
    {"FLUSH", text, "", "SYNC", "how SCR flushes files from there; no effect in this version",
     nullptr},
};

constexpr Leaf<CheckpointSettings> checkpoint_table[] = {
    {"INTERVAL", at_least_1, "", "1",
     "protects each n-th checkpoint; among several, the descriptor with the largest matching "
     "interval counts",
     [](CheckpointSettings& c, const Value& v) { c.interval = as_int(v); }},
    {"ENABLED", boolean, "", "1", "0 switches the descriptor off",
     [](CheckpointSettings& c, const Value& v) { c.enabled = is_on(v); }},
    {"STORE", path, "SCR_CACHE_BASE", "", "where datasets are cached",
     [](CheckpointSettings& c, const Value& v) { c.store = v.text; }},
    {"GROUP", group, "SCR_GROUP", "", "ranks that are likely to fail together",
     [](CheckpointSettings& c, const Value& v) { c.group = v.text; }},
    {"TYPE", one_of(schemes), "SCR_COPY_TYPE", "", "the redundancy scheme",
     [](CheckpointSettings& c, const Value& v) { c.scheme = static_cast<Scheme>(v.number); }},
    {"SET_SIZE", set_size, "SCR_SET_SIZE", "", "smallest number of members of a redundancy set",
     [](CheckpointSettings& c, const Value& v) { c.set_size = as_int(v); }},
    {"SET_FAILURES", set_failures, "SCR_SET_FAILURES", "",
     "lost members of a set that RS can rebuild",
     [](CheckpointSettings& c, const Value& v) { c.set_failures = as_int(v); }},
    {"COPIES", set_failures, "CAIRN_PARTNER_COPIES", "",
     "copies that PARTNER keeps on other members",
     [](CheckpointSettings& c, const Value& v) { c.partner_copies = as_int(v); }},
    {"HOP", partner_hop, "CAIRN_PARTNER_HOP", "", "distance in the set to the first PARTNER copy",
     [](CheckpointSettings& c, const Value& v) { c.partner_hop = as_int(v); }},
    {"BYPASS", boolean, "SCR_CACHE_BYPASS", "",
     "1 lets the program write such checkpoints straight to the prefix directory",
     [](CheckpointSettings& c, const Value& v) { c.bypass = is_on(v); }},
    {"OUTPUT", boolean, "", "0", "1 uses this descriptor for output",
     [](CheckpointSettings& c, const Value& v) { c.output = is_on(v); }},
    {"PROTECT", one_of(protect_times), "CAIRN_PROTECT", "",
     "when a checkpoint is protected: now, or behind",
     [](CheckpointSettings& c, const Value& v) { c.behind = v.number != 0; }},
    {"FLUSH_ASYNC", boolean, "SCR_FLUSH_ASYNC", "",
     "1: the program goes on while such datasets are copied to the prefix directory; 0: it waits",
     [](CheckpointSettings& c, const Value& v) { c.flush_async = is_on(v); }},
};

constexpr Leaf<FolderNeeds> folder_table[] = {
    {"BYTES", any_size, "", "0",
     "free space that the directory must have on a node for a run there",
     [](FolderNeeds& f, const Value& v) { f.bytes = v.number; }},
};

constexpr DescriptorKey descriptor_table[] = {{"STORE", path},
                                              {"CKPT", at_least_0},
                                              {"GROUPS", component},
                                              {"CACHE", text, true, true},
                                              {"CACHEDIR", path, false, true},
                                              {"CNTLDIR", path, false, true}};

constexpr auto keys_of_all() {
  std::array<std::string_view, std::size(table) + std::size(descriptor_table)> keys;
  auto* next = keys.data();
  for (const Option& option : table) *next++ = option.key;
  for (const DescriptorKey& descriptor : descriptor_table) *next++ = descriptor.key;
  return keys;
}

constexpr auto all_keys = keys_of_all();

template <class Row>
const Row* find_row(std::span<const Row> rows, std::string_view key) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.key == key; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace

std::span<const Option> options() { return table; }
std::span<const Leaf<StoreSettings>> store_leaves() { return store_table; }
std::span<const Leaf<CheckpointSettings>> checkpoint_leaves() { return checkpoint_table; }
std::span<const Leaf<FolderNeeds>> folder_leaves() { return folder_table; }
std::span<const DescriptorKey> descriptor_keys() { return descriptor_table; }
std::span<const std::string_view> known_keys() { return all_keys; }

const Option* find_option(std::string_view key) { return find_row(options(), key); }

const DescriptorKey* find_descriptor_key(std::string_view key) {
  return find_row(descriptor_keys(), key);
}

}  // namespace cairn
