// A simulated job for the tests of the session: ranks are threads, nodes are folders, files are
// real.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "session/session.hpp"

namespace cairn {

/// Under sanitizers everything takes ten times as long: loops over crash points take larger steps.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// The node of every rank.
using Nodes = std::vector<std::string>;

inline Nodes four_nodes() { return {"n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3"}; }

/// The same ranks with one node in another's place.
inline Nodes replaced(Nodes nodes, const std::string& node, const std::string& spare) {
  std::replace(nodes.begin(), nodes.end(), node, spare);
  return nodes;
}

// --- faults ---

/// Thrown by a hook: the rank is dead, and the job with it.
struct Crash {};

/// The hook lets `count` operations on paths that begin so pass, then crashes. Changes count, and
/// the first operation after each change: before it, other ranks may still be where they were.
inline FileHook crash_after(int count, const std::string& within = {}) {
  return [=, has_changed = true](const FileOperation& operation) mutable -> Status {
    if (!operation.path.starts_with(within)) return {};
    const bool changes = changes_files(operation);
    if ((changes || std::exchange(has_changed, false)) && count-- == 0) throw Crash();
    has_changed = has_changed || changes;
    return {};
  };
}

/// The hook lets `count` operations pass, then one fails; `failed` is its name, or "spare" where it
/// is about a spare.
inline FileHook fail_after(int count, Code code, std::string& failed) {
  return [count, code, &failed](const FileOperation& operation) mutable -> Status {
    if (count-- != 0) return {};
    const bool spare = operation.path.find("/spare.") != std::string_view::npos;
    failed = spare ? "spare" : operation.name;
    return fail(code, "injected: cannot {} {}", operation.name, operation.path);
  };
}

// --- what the application writes ---

inline constexpr int files_per_rank = 2;

/// Unequal, and one is empty.
inline std::size_t size_of(int rank, int file, int dataset) {
  if (rank == 3 && file == 1) return 0;
  return static_cast<std::size_t>(700 * (rank % 3) + 311 * file + 97 * dataset + 40 * rank);
}

inline std::string content_of(int rank, int file, int dataset) {
  std::minstd_rand random(static_cast<unsigned>(1 + rank * 100 + file * 10 + dataset * 10007));
  std::string content(size_of(rank, file, dataset), '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// One rank of a run. `hook` is asked before each of its file operations, and may be set at any
/// time.
struct JobRank {
  JobRank(Communicator& its_comm, Settings its_settings, Clock& its_clock, Log its_log)
      : comm(its_comm),
        settings(std::move(its_settings)),
        clock(its_clock),
        log(std::move(its_log)),
        posix(make_posix_files()),
        files(make_hooked_files(*posix, [this](const FileOperation& operation) {
          return hook ? hook(operation) : Status{};
        })) {}

  int number() const { return comm.rank(); }

  /// Collective.
  Status init() {
    CAIRN_ASSIGN(session, Session::init({comm, *files, clock, *background, log}, settings));
    return {};
  }

  std::string file_name(int file, int dataset) const {
    return fmt::format("{}/ckpt.{}/rank {}.{}", settings.prefix, dataset, number(), file);
  }

  /// The files of a dataset that is begun.
  Status write_files(int dataset) {
    for (int file = 0; file < files_per_rank; ++file) {
      CAIRN_ASSIGN(const std::string path, session->route_file(file_name(file, dataset)));
      CAIRN_ASSIGN(const auto out, files->create(path, 0640));
      const std::string content = content_of(number(), file, dataset);
      CAIRN_TRY(out->write_at(0, std::as_bytes(std::span(content))));
    }
    return {};
  }

  void expect_files(int dataset) {
    for (int file = 0; file < files_per_rank; ++file) {
      const auto path = session->route_file(file_name(file, dataset));
      ASSERT_TRUE(path) << path.error().text;
      ASSERT_TRUE(read_all(*path) == content_of(number(), file, dataset))
          << "wrong bytes in " << *path;
    }
  }

  /// Collective. Dataset "ckpt.<dataset>" from Start to Complete.
  Status write(int dataset, std::uint32_t flags = flag_checkpoint) {
    CAIRN_TRY(session->start_output(fmt::format("ckpt.{}", dataset), flags));
    return session->complete_output(write_files(dataset).has_value());
  }

  void expect_written(int dataset, std::uint32_t flags = flag_checkpoint) {
    const Status written = write(dataset, flags);
    ASSERT_TRUE(written) << written.error().text;
  }

  /// Whole in the cache, but not in the prefix directory, where it was due.
  void expect_not_copied(int dataset, std::uint32_t flags = flag_checkpoint) {
    const Status written = write(dataset, flags);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Code::not_copied) << written.error().text;
  }

  /// At the end of a run, of what is left in the cache only.
  void expect_not_all_copied() {
    const Status ended = session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::not_copied) << ended.error().text;
  }

  /// Collective. Restarts as an application does, all bytes compared; from which dataset, 0 for
  /// none.
  int restart() {
    while (true) {
      const auto name = session->have_restart();
      if (!name) ADD_FAILURE() << name.error().text;
      if (!name || !*name) return 0;
      if (!session->start_restart()) continue;
      const int dataset = std::stoi((*name)->substr((*name)->rfind('.') + 1));
      expect_files(dataset);
      EXPECT_TRUE(session->complete_restart(true));
      return dataset;
    }
  }

  Communicator& comm;
  Settings settings;
  Clock& clock;
  Log log;
  FileHook hook;
  std::unique_ptr<Files> posix;
  std::unique_ptr<Files> files;
  /// A thread of its own could not be crashed by a hook; the simulation can.
  std::unique_ptr<Background> background = make_foreground();
  std::unique_ptr<Session> session;
};

/// The storage of all nodes, and the runs of a job on them.
class Cluster {
 public:
  using RankMain = std::function<void(JobRank&)>;

  /// In main memory where there is such a folder, as most stores are.
  static std::string memory() {
    return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "";
  }

  explicit Cluster(const std::string& base = memory()) : folder_(base) {
    std::filesystem::create_directory(folder_ / "nodes");
    settings.prefix = "/prefix";
    settings.user = "tester";
    settings.job_id = "job";
    settings.control_base = folder_ / "nodes/%n";
    settings.block_bytes = 512;
    settings.encode_bytes = 16 << 10;
    StoreSettings& store = settings.stores.emplace_back();
    store.path = settings.control_base;
    CheckpointSettings& checkpoint = settings.checkpoints.emplace_back();
    checkpoint.store = store.path;
    checkpoint.set_size = 4;
  }

  Settings settings;  ///< of the next run; the nodes' names are put in
  std::unique_ptr<Clock> clock = make_system_clock();

  /// One run; each rank gets a JobRank that is not yet initialised. False if a Crash has ended it.
  bool run(const Nodes& nodes, const RankMain& rank_main) {
    lines_.clear();
    try {
      Team(static_cast<int>(nodes.size())).run([&](Communicator& comm) {
        Settings mine = settings;
        mine.node_name = nodes[static_cast<std::size_t>(comm.rank())];
        JobRank rank(comm, std::move(mine), *clock, log());
        rank_main(rank);
      });
    } catch (const Crash&) {
      return false;
    }
    return true;
  }

  /// A run whose ranks all initialise well, then do `rank_main`.
  void run_well(const Nodes& nodes, const RankMain& rank_main) {
    EXPECT_TRUE(run(nodes, [&](JobRank& rank) {
      const Status ready = rank.init();
      ASSERT_TRUE(ready) << ready.error().text;
      rank_main(rank);
    }));
  }

  /// A run that writes these datasets.
  void write(const Nodes& nodes, const std::vector<int>& datasets) {
    run_well(nodes, [&](JobRank& rank) {
      for (const int dataset : datasets) rank.expect_written(dataset);
    });
  }

  /// A run that restarts, then does `more`; from which dataset, the same on all ranks, 0 for none.
  int restart(
      const Nodes& nodes, const RankMain& more = [](JobRank&) {}) {
    std::vector<int> from(nodes.size(), -1);
    run_well(nodes, [&](JobRank& rank) {
      from[static_cast<std::size_t>(rank.number())] = rank.restart();
      more(rank);
    });
    EXPECT_EQ(from, std::vector<int>(nodes.size(), from[0]));
    return from[0];
  }

  std::string node(const std::string& name) const { return folder_ / ("nodes/" + name); }
  /// The job's folder on a node, whether it is there or not: its name is that of the folder last
  /// used on any node.
  std::string job_folder(const std::string& name) const {
    const auto files = make_posix_files();
    JobFolders all;
    JobFolder last;
    for (const auto& any : std::filesystem::directory_iterator(node("")))
      find_job_folders(*files, any.path(), settings, all);
    for (JobFolder& folder : all.found)
      if (last.path.empty() || folder.used_ns > last.used_ns) last = std::move(folder);
    return node(name) + "/tester/" + name_of_path(last.path);
  }
  void lose(const std::string& name) { std::filesystem::remove_all(node(name)); }

  /// Keeps the present state of a node, or of all of them ("").
  void save(const std::string& as, const std::string& name = {}) { copy(node(name), folder_ / as); }
  void bring_back(const std::string& as, const std::string& name = {}) {
    copy(folder_ / as, node(name));
  }
  /// Where a node is in what was saved of all.
  std::string saved(const std::string& as, const std::string& name) const {
    return folder_ / (as + "/" + name);
  }

  /// The rank folders of dataset `number` on a node, or those of all datasets.
  std::vector<std::string> parts(const std::string& name, int number = 0) const {
    std::vector<std::string> found;
    const std::string job = job_folder(name);
    if (!std::filesystem::exists(job)) return found;
    const std::string wanted = number == 0 ? "dataset." : fmt::format("dataset.{}.", number);
    for (const auto& dataset : std::filesystem::directory_iterator(job))
      if (dataset.path().filename().string().starts_with(wanted))
        for (const auto& part : std::filesystem::directory_iterator(dataset))
          found.push_back(part.path());
    std::sort(found.begin(), found.end());
    return found;
  }

  /// What the last run has logged, a line each.
  std::string said() const { return lines_; }
  bool said(const std::string& text) const { return lines_.find(text) != std::string::npos; }

  Log log() {
    return Log([this](Severity, const std::string& text) {
      const std::scoped_lock lock(mutex_);
      lines_ += text + "\n";
    });
  }

 private:
  static void copy(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(to);
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  }

  TemporaryFolder folder_;
  std::mutex mutex_;  ///< guards lines_
  std::string lines_;
};

}  // namespace cairn
