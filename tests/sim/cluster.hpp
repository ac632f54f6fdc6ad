// The storage of all nodes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

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
  explicit Cluster(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes)
      own_[node] = {{memory_mount, std::make_shared<Volume>(Volume::Medium::memory)},
                    {disk_mount, std::make_shared<Volume>(Volume::Medium::disk)}};
  }

  Mounts mounts_of(const std::string& node) const {
    Mounts mounts = own_.at(node);
    mounts.emplace(shared_mount, shared_);
    return mounts;
  }

  std::vector<Place> places() const {
    std::vector<Place> all = {{"", shared_mount, shared_.get()}};
    for (const auto& [node, mounts] : own_)
      for (const auto& [mount, volume] : mounts) all.push_back({node, mount, volume.get()});
    return all;
  }

  Volume& volume(const std::string& node, const std::string& mount) const {
    return mount == shared_mount ? *shared_ : *own_.at(node).at(mount);
  }

 private:
  std::map<std::string, Mounts> own_;
  std::shared_ptr<Volume> shared_ = std::make_shared<Volume>(Volume::Medium::disk);
};

}  // namespace cairn::sim
