#include "support/job_bed.hpp"

#include <atomic>
#include <optional>
#include <thread>

#include "cache/job_folder.hpp"
#include "prefix/keeper.hpp"
#include "support/file_contents.hpp"
#include "support/job_settings.hpp"
#include "support/second_team.hpp"

namespace cairn {

Nodes replaced(Nodes nodes, const std::string& node, const std::string& spare) {
  std::replace(nodes.begin(), nodes.end(), node, spare);
  return nodes;
}

JobBed::JobBed(const std::string& base) : folder_(base) {
  std::filesystem::create_directory(folder_ / "nodes");
  settings = settings_of_job("/prefix", folder_ / "nodes/%n");
  settings.encode_bytes = 16 << 10;
  add_level(settings, settings.control_base).set_size = 4;
}

int JobBed::logged_events(const std::string& name) const {
  const std::string log = read_all(PrefixFolder{settings.prefix}.job().json_log());
  const std::string field = '"' + name + '"';
  int events = 0;
  for (std::size_t at = 0; (at = log.find(field, at)) != std::string::npos; ++at) ++events;
  return events;
}

namespace {

void wait_until_broken(Communicator& comm) {
  constexpr int unused_tag = 14999;
  try {
    while (true) (void)comm.irecv({}, comm.rank(), unused_tag);
  } catch (const TeamStopped&) {
    return;
  }
}

}  // namespace

bool JobBed::run(const Nodes& nodes, const RankMain& rank_main) {
  logged_.clear();
  const auto ranks = static_cast<int>(nodes.size());
  std::optional<SecondTeam> behind;
  if (!settings.checkpoints.empty() && settings.checkpoints[0].behind) behind.emplace(ranks);
  try {
    Team(ranks).run([&](Communicator& comm) {
      Settings mine = settings;
      mine.node_name = nodes[static_cast<std::size_t>(comm.rank())];
      Communicator* second = behind ? &behind->of(comm.rank()) : nullptr;
      std::exception_ptr died;
      try {
        JobRank rank(comm, std::move(mine), *clock, log());
        rank.second_comm = second;
        rank.break_behind = [&] {
          behind->break_off();
          wait_until_broken(*second);
        };
        try {
          rank_main(rank);
        } catch (...) {
          if (behind) behind->break_off();  // before this rank waits for its thread
          throw;
        }
      } catch (...) {
        died = std::current_exception();
      }
      if (behind) behind->end(comm.rank());
      if (died) std::rethrow_exception(died);
    });
  } catch (const Crash&) {
    return false;
  }
  return true;
}

void JobBed::run_well(const Nodes& nodes, const RankMain& rank_main) {
  EXPECT_TRUE(run(nodes, [&](JobRank& rank) {
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
    rank_main(rank);
  }));
}

void JobBed::write(const Nodes& nodes, const std::vector<int>& datasets) {
  run_well(nodes, [&](JobRank& rank) {
    for (const int dataset : datasets) rank.expect_written(dataset);
  });
}

void JobBed::die_exposed(const Nodes& nodes, int dataset) {
  std::atomic<bool> is_written = false;
  EXPECT_FALSE(run(nodes, [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name == "rename" && operation.to.ends_with("/record")) is_written = true;
      const bool is_parity = operation.path.find("/parity.") != std::string::npos;
      if (is_written && operation.name == "create" && is_parity) throw Crash{};
      return {};
    };
    (void)rank.write(dataset);
  }));
}

int JobBed::restart(const Nodes& nodes, const RankMain& more) {
  return agreed(nodes, [&](JobRank& rank) {
    const int dataset = rank.restart();
    more(rank);
    return dataset;
  });
}

int JobBed::agreed(const Nodes& nodes, const std::function<int(JobRank&)>& rank_main,
                   const RankMain& prepare) {
  std::vector<int> returned(nodes.size(), -1);
  EXPECT_TRUE(run(nodes, [&](JobRank& rank) {
    prepare(rank);
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
    returned[static_cast<std::size_t>(rank.number())] = rank_main(rank);
  }));
  EXPECT_EQ(returned, std::vector<int>(nodes.size(), returned[0]));
  return returned[0];
}

std::string JobBed::job_folder(const std::string& name) const {
  const auto files = make_posix_files();
  JobFolders all;
  JobFolder last;
  for (const auto& any : std::filesystem::directory_iterator(node("")))
    find_job_folders(*files, any.path(), settings, all);
  for (JobFolder& folder : all.found)
    if (last.path.empty() || folder.used_ns > last.used_ns) last = std::move(folder);
  return node(name) + "/tester/" + name_of_path(last.path);
}

std::vector<std::string> JobBed::parts(const std::string& name, int number) const {
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

ProcessFacts JobBed::process_on(const std::string& node_name) const {
  return {{{"USER", settings.user},
           {"SCR_JOB_ID", settings.job_id},
           {"SCR_NODE_NAME", node_name},
           {"SCR_PREFIX", settings.prefix},
           {"SCR_CACHE_BASE", node("%n")},
           {"SCR_CNTL_BASE", node("%n")}},
          node_name,
          settings.prefix,
          1000};
}

void JobBed::copy(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(from))
    if (entry.is_regular_file())
      fs::last_write_time(fs::path(to) / fs::relative(entry.path(), from), entry.last_write_time());
}

PrefixJobBed::PrefixJobBed() {
  settings.prefix = node("pfs");
  std::filesystem::create_directories(settings.prefix);
  settings.flush = true;
  settings.flush_interval = 2;
  settings.fetch = true;
}

void PrefixJobBed::lose_all_nodes() {
  for (const std::string name : {"n0", "n1", "n2", "n3"}) lose(name);
}

void PrefixJobBed::lose_node_that_has_flushed() {
  settings.checkpoints[0].scheme = Scheme::single;
  write(four_nodes(), {1, 2, 3});
  std::atomic<int> done = 0;
  EXPECT_FALSE(run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (is_done_marker(operation, 6) || is_done_marker(operation, 7)) ++done;
      if (!is_done_marker(operation, 0)) return {};
      while (done < 2) std::this_thread::yield();
      throw Crash{};
    };
    (void)rank.write(4);
  }));
  lose("n3");
}

void PrefixJobBed::write_and_finalize(const std::vector<int>& datasets, std::uint32_t flags) {
  run_well(four_nodes(), [&](JobRank& rank) {
    for (const int dataset : datasets) rank.expect_written(dataset, flags);
    EXPECT_TRUE(rank.session->finalize());
  });
}

std::string PrefixJobBed::file(int dataset, int rank, int number) const {
  return fmt::format("{}/ckpt.{}/rank {}.{}", settings.prefix, dataset, rank, number);
}

void PrefixJobBed::expect_own_files(int dataset) const {
  for (int rank = 0; rank < 8; ++rank)
    for (int number = 0; number < files_per_rank; ++number)
      EXPECT_EQ(read_all(file(dataset, rank, number)), content_of(rank, number, dataset));
}

Names PrefixJobBed::listed() const {
  Names names;
  Names damaged;
  const auto files = make_posix_files();
  const Listing listing = *read_listing(*files, {settings.prefix}, damaged);
  for (const DatasetRecord& record : listing) names.push_back(record.info.name);
  EXPECT_TRUE(damaged.empty());
  return names;
}

bool is_done_marker(const FileOperation& operation, int rank) {
  return operation.name == "create" && operation.path.ends_with(fmt::format("/done/0.{}", rank));
}

}  // namespace cairn
