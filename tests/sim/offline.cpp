#include "offline.hpp"

#include <algorithm>

#include "recovery/remains.hpp"

namespace cairn::sim {
namespace {

constexpr const char* spare_mount = "/rebuilt";

class OfflineRebuild {
 public:
  explicit OfflineRebuild(World& world) : world_(world) {
    const std::string job =
        fmt::format("/{}/cairn.{}", world.shape.settings.user, world.shape.settings.job_id);
    mounts_[spare_mount] = std::make_shared<Volume>(Volume::Medium::memory);
    for (const Place& place : world.cluster.places()) {
      const std::string mount = fmt::format("/left.{}.{}", place.node, place.mount.substr(1));
      mounts_[mount] = std::make_shared<Volume>(place.volume->copy());
      if (place.volume->find(job)) roots_.push_back(mount + job);
    }
    files_ = make_memory_files(mounts_, [this] { return world_.scheduler.now_us() * 1000; });
  }

  void carry_out() {
    const auto found = find_remains(*files_, roots_);
    if (!found) throw Violation(fmt::format("(e) {}", found.error().text));
    std::set<int> whole;
    for (const Remains& remains : *found)
      if (remains.ranks > 0 && rebuild(remains))
        whole.insert(world_.model.key_of(name_of(remains)));
    world_.model.rebuilt_offline(whole);
  }

 private:
  static std::string name_of(const Remains& remains) {
    return fmt::format("dataset.{}.{}", remains.number, text_of(remains.uuid));
  }

  /// True if it is whole now, and then all its bytes are right.
  bool rebuild(const Remains& remains) {
    const auto ranks = static_cast<int>(remains.ranks);
    Postboxes boxes(ranks, world_.seam, world_.chance.fork());
    Settings settings;
    settings.encode_bytes = world_.shape.settings.encode_bytes;
    std::set<Rebuild::Outcome> outcomes;
    world_.seam.begin(ranks);
    world_.scheduler.run(ranks, [&](int rank) {
      ScheduledCommunicator comm(boxes, rank);
      const auto files = make_hooked_files(*files_, [this](const FileOperation& operation) {
        world_.seam.pass(operation.name, operation.path, operation.to);
        return Status{};
      });
      const Log log([&, rank](Severity, const std::string& text) {
        world_.trace.say("offline rank {} says: {}", rank, text);
      });
      const Rebuild mine = rebuild_remains(comm, *files, remains, spare_mount, settings, log);
      if (rank == 0)
        world_.trace.say("offline {}: {}", name_of(remains),
                         mine.reason.empty() ? "whole" : mine.reason);
      outcomes.insert(mine.outcome);
      if (mine.outcome == Rebuild::Outcome::whole) read_back(remains, rank, mine.folder);
    });
    if (outcomes.size() != 1)
      throw Violation(fmt::format("(e) ranks disagree on {}", name_of(remains)));
    return outcomes.contains(Rebuild::Outcome::whole);
  }

  void read_back(const Remains& remains, int rank, const RankFolder& folder) {
    const int key = world_.model.key_of(name_of(remains));
    if (key == 0)
      throw Violation(
          fmt::format("(e) {} is rebuilt, which was never committed", name_of(remains)));
    for (const FileShape& file : files_of(world_.shape, key, rank)) {
      std::string relative;
      lies_below(file.name, world_.shape.settings.prefix, &relative);
      const auto content = read_file(*files_, folder.file(relative), file.bytes + 1);
      if (!content || *content != content_of(world_.shape, key, rank, file))
        throw Violation(
            fmt::format("(e) d{}: {} of rank {} is not as it was written", key, relative, rank));
    }
  }

  World& world_;
  Mounts mounts_;
  std::vector<std::string> roots_;
  std::unique_ptr<Files> files_;
};

}  // namespace

void check_offline_rebuild(World& world) { OfflineRebuild(world).carry_out(); }

}  // namespace cairn::sim
