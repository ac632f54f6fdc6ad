#include "small_job.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "support/job_settings.hpp"

namespace cairn::sim {

JobShape SmallJob::shape_of(std::uint64_t seed, const Nodes& nodes, int ranks) {
  JobShape shape;
  shape.seed = seed;
  shape.nodes = nodes;
  shape.first_placement.assign(nodes.begin(), nodes.begin() + ranks);
  shape.settings = settings_of_job(prefix_mount, memory_mount);
  shape.settings.encode_bytes = 4096;
  return shape;
}

SmallJob::SmallJob(JobShape its_shape, bool print)
    : chance(its_shape.seed),
      trace(print),
      shape(std::move(its_shape)),
      cluster(shape.nodes),
      prefix(std::make_shared<Volume>(Volume::Medium::disk)),
      scheduler(chance.fork()),
      seam(scheduler, trace),
      watch(cluster, prefix, shape.settings),
      placement(shape.first_placement) {}

bool SmallJob::run(const Program& program, Postboxes* behind, std::uint64_t ends_after) {
  constexpr std::int64_t pause_between_runs_us = 60'000'000;
  scheduler.pass_time_us(pause_between_runs_us);
  const int ranks = shape.ranks();
  Postboxes boxes(ranks, seam, chance.fork());
  std::deque<HelperBackground> helpers;
  for (int rank = 0; rank < ranks; ++rank)
    helpers.emplace_back(scheduler, rank, Stepping{true, 100, chance.next()});
  seam.begin(ranks);
  watch.begin_run();
  bool has_ended = false;
  if (ends_after > 0)
    seam.after(ends_after, [&] {
      has_ended = true;
      scheduler.end_all();
    });
  run_ranks(scheduler, helpers, [&](int rank) {
    be_process(program, boxes, behind, rank, helpers[static_cast<std::size_t>(rank)]);
  });
  watch.look();
  return has_ended;
}

void SmallJob::be_process(const Program& program, Postboxes& boxes, Postboxes* behind, int rank,
                          HelperBackground& background) {
  Settings settings = shape.settings;
  settings.node_name = placement[static_cast<std::size_t>(rank)];
  Mounts mounts = cluster.mounts_of(settings.node_name);
  mounts[settings.prefix] = prefix;
  const FileHook observe = [this](const FileOperation& operation) -> Status {
    watch.see(operation);
    return {};
  };
  RankProcess process({seam,
                       chance,
                       boxes,
                       background,
                       rank,
                       std::move(settings),
                       std::move(mounts),
                       observe,
                       {},
                       behind});
  require(process.init(), "Init");
  program(process);
  background.finish();  // what it does uses the files of the process
}

// --- what a rank does ---

void SmallJob::require(const Status& status, std::string_view call) {
  if (!status) throw Violation(fmt::format("(g) {} fails: {}", call, status.error().text));
}

void SmallJob::write(RankProcess& process, int key, const std::function<void()>& written) const {
  const std::string name = fmt::format("d{}", key);
  require(process.session->start_output(name, flag_checkpoint), "Start");
  for (const FileShape& file : files.of_rank(key, process.env.rank)) {
    const auto path = process.session->route_file(file.name);
    require(path.map([](const auto&) {}), "Route_file");
    require(process.write(*path, file, files.content(key, process.env.rank, file)), "write");
  }
  if (written) written();
  require(process.session->complete_output(true), "Complete");
}

int SmallJob::restart(RankProcess& process) const {
  const auto offer = process.session->have_restart();
  require(offer.map([](const auto&) {}), "Have_restart");
  if (!*offer) return 0;
  const int key = std::stoi((*offer)->substr(1));
  require(process.session->start_restart().map([](const auto&) {}), "Start_restart");
  for (const FileShape& file : files.of_rank(key, process.env.rank)) {
    const auto path = process.session->route_file(file.name);
    require(path.map([](const auto&) {}), "Route_file");
    check_content(*process.files, *path, key, process.env.rank, file);
  }
  require(process.session->complete_restart(true), "Complete_restart");
  return key;
}

void SmallJob::finalize(RankProcess& process) { require(process.session->finalize(), "Finalize"); }

void SmallJob::check_content(Files& at, const std::string& path, int key, int rank,
                             const FileShape& file) const {
  const auto content = read_file(at, path, std::uint64_t{1} << 30);
  if (!content || *content != files.content(key, rank, file))
    throw Violation(fmt::format("(a) {} is not as rank {} wrote it", path, rank));
}

// --- what is lost ---

void SmallJob::lose(const std::string& node) const {
  for (const Place& place : cluster.places())
    if (place.node == node) place.volume->wipe();
}

void SmallJob::lose_all_caches() {
  cluster.wipe();
  watch.forget_caches();
}

void SmallJob::replace(const std::string& node, const std::string& spare) {
  std::replace(placement.begin(), placement.end(), node, spare);
}

void SmallJob::fail_power() {
  watch.fail_power([this] {
    for (const Place& place : cluster.places()) place.volume->power_failure(chance);
    prefix->power_failure(chance);
  });
}

}  // namespace cairn::sim
