#include "leftovers.hpp"

#include <algorithm>
#include <memory>

#include "cache/catalog.hpp"
#include "memory_files.hpp"

namespace cairn::sim {
namespace {

class Inspection {
 public:
  Inspection(const World& world, const RunPlan& plan) : world_(world), plan_(plan) {}

  void look_at(const Place& place) {
    const std::string root = world_.cluster.job_folder(world_.shape.settings);
    const InodePtr job = place.volume->find(root);
    if (!job) return;
    for (const auto& [name, dataset] : job->names) {
      if (name == "lock" || name == "prefix" || name == "prefix.id") continue;
      const std::string path = place.mount + root + "/" + name;
      if (name.starts_with("spare.")) {
        look_at_spare(place, path);
        continue;
      }
      const int key = world_.model.committed_key(path);
      if (key == 0) left_behind(place, path);
      keys_[place.mount].insert(key);
      // What is left of an output stays as it is, whether it can be restored now or not: it is the
      // user's.
      if (world_.model.is_output(key)) continue;
      for (const auto& [part, rank] : dataset->names) look_at_part(place, path + "/" + part, *rank);
    }
  }

  /// Only where this run has written: a dataset that came back with its node goes with the next
  /// one.
  void count() {
    const std::string& mount = world_.model.store_of(plan_.datasets.back().key);
    const auto evictable = std::count_if(keys_[mount].begin(), keys_[mount].end(),
                                         [this](int key) { return !world_.model.is_output(key); });
    if (evictable > world_.model.count_of_store(mount))
      throw Violation(fmt::format("(h) {} checkpoints are kept in {}, {} are to be", evictable,
                                  mount, world_.model.count_of_store(mount)));
  }

 private:
  /// Of a rank that ran here; Finalize removes it.
  void look_at_spare(const Place& place, const std::string& path) const {
    const auto rank = static_cast<std::size_t>(std::stoi(path.substr(path.rfind('.') + 1)));
    const bool own = rank < plan_.nodes.size() && plan_.nodes[rank] == place.node;
    if (!own || plan_.finalize) left_behind(place, path);
  }

  void look_at_part(const Place& place, const std::string& path, const Inode& part) const {
    const auto rank = static_cast<std::size_t>(std::stoi(path.substr(path.rfind('.') + 1)));
    if (!place.node.empty() && plan_.nodes[rank] != place.node) left_behind(place, path);
    int parities = 0;
    for (const auto& [name, inode] : part.names) {
      if (name.starts_with("parity."))
        ++parities;
      else if (name != "record" && name != "files" && name != "elsewhere")
        left_behind(place, path + "/" + name);
    }
    if (parities > 1) left_behind(place, path + "/parity.*");
  }

  [[noreturn]] static void left_behind(const Place& place, const std::string& path) {
    throw Violation(fmt::format("(h) left behind on {}: {}", place.node, path));
  }

  const World& world_;
  const RunPlan& plan_;
  std::map<std::string, std::set<int>> keys_;
};

}  // namespace

void check_leftovers(const World& world, const RunPlan& plan) {
  if (plan.datasets.empty()) return;
  Inspection inspection(world, plan);
  for (const Place& place : world.cluster.places()) {
    const bool used = place.node.empty() || std::find(plan.nodes.begin(), plan.nodes.end(),
                                                      place.node) != plan.nodes.end();
    if (used) inspection.look_at(place);
  }
  inspection.count();
}

std::set<std::string> recorded_parts(const World& world) {
  std::set<std::string> found;
  for (const Place& place : world.cluster.places()) {
    const std::shared_ptr<Volume> volume(std::shared_ptr<void>(), place.volume);
    const auto files = make_memory_files({{place.mount, volume}}, [] { return 0; });
    const std::string job = place.mount + world.cluster.job_folder(world.shape.settings);
    for (const std::string& name : files->list(job).value_or(std::vector<std::string>{}))
      for (const std::string& part :
           files->list(job + "/" + name).value_or(std::vector<std::string>{})) {
        const RankFolder folder{job + "/" + name + "/" + part};
        const auto owner = owner_of(folder);
        if (owner && !read_part(*files, folder, *owner).own.empty())
          found.insert(place.node + ":" + folder.path);
      }
  }
  return found;
}

void check_kept(const World& world, const std::set<std::string>& parts) {
  const std::set<std::string> left = recorded_parts(world);
  for (const std::string& part : parts)
    if (!left.contains(part))
      throw Violation(fmt::format("(i) ranks that did not write it have removed {}", part));
}

}  // namespace cairn::sim
