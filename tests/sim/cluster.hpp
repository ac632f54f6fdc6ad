// The storage of all nodes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/job_folder.hpp"
#include "memory_files.hpp"
#include "shape.hpp"

namespace cairn::sim {

/// One volume as somebody outside the job sees it.
struct Place {
  std::string node;  ///< empty: all of them
  std::string mount;
  Volume* volume;
};

class Cluster {
 public:
  static constexpr PrefixId prefix_id{0xc0ffee};

  explicit Cluster(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes)
      own_[node] = {{memory_mount, std::make_shared<Volume>(Volume::Medium::memory, node)},
                    {disk_mount, std::make_shared<Volume>(Volume::Medium::disk, node)}};
    const auto files = make_memory_files({{prefix_mount, prefix_}}, [] { return 0; });
    const std::string root = prefix_mount + std::string("/.cairn");
    const Status made = files->make_folder(root, 0700);
    const PrefixIdRecord record{prefix_id, prefix_mount, files->info(root)->id.number};
    const Status written = write_file_atomically(*files, root + "/id", encode(record), true);
    if (!made || !written) throw std::logic_error("the prefix directory cannot be made");
  }

  Mounts mounts_of(const std::string& node) const {
    Mounts mounts = own_.at(node);
    mounts.emplace(shared_mount, shared_);
    mounts.emplace(prefix_mount, prefix_);
    return mounts;
  }

  std::vector<Place> places() const {
    std::vector<Place> all = {{"", shared_mount, shared_.get()}};
    for (const auto& [node, mounts] : own_)
      for (const auto& [mount, volume] : mounts) all.push_back({node, mount, volume.get()});
    return all;
  }

  /// The storage of all nodes is replaced by empty one.
  void wipe() const {
    for (const Place& place : places()) place.volume->wipe();
  }

  /// In each store.
  static std::string job_folder(const Settings& settings) {
    return "/" + settings.user + "/" + job_folder_name(settings, prefix_id);
  }

  Volume& volume(const std::string& node, const std::string& mount) const {
    return mount == shared_mount ? *shared_ : *own_.at(node).at(mount);
  }

 private:
  std::map<std::string, Mounts> own_;
  /// Of jobs that flush nothing: it has only its id.
  std::shared_ptr<Volume> prefix_ = std::make_shared<Volume>(Volume::Medium::disk);
  std::shared_ptr<Volume> shared_ = std::make_shared<Volume>(Volume::Medium::disk);
};

}  // namespace cairn::sim
