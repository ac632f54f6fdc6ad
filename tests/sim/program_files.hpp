// The files that the program of a job with a prefix directory writes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "cluster.hpp"
#include "files/files.hpp"
#include "shape.hpp"

namespace cairn::sim {

/// The key of a program's own file; 0 if it is none.
inline int key_of_file(const std::string& path) {
  const std::string name = name_of_path(path);
  const bool is_own = name.starts_with("d") && name.find(".rank") != std::string::npos;
  return is_own ? std::stoi(name.substr(1)) : 0;
}

inline bool has_file_of(const Volume& volume, int key) {
  const std::vector<std::string> files = volume.files_below();
  return std::any_of(files.begin(), files.end(),
                     [&](const std::string& path) { return key_of_file(path) == key; });
}

inline bool has_file_of(const Cluster& cluster, int key) {
  const std::vector<Place> places = cluster.places();
  return std::any_of(places.begin(), places.end(),
                     [&](const Place& place) { return has_file_of(*place.volume, key); });
}

class ProgramFiles {
 public:
  /// The shape must outlive this.
  explicit ProgramFiles(const JobShape& shape) : shape_(shape) {}

  /// The dataset has a file of all ranks too; rank 0 writes it.
  void share(int key) { shared_.insert(key); }

  std::vector<FileShape> of_rank(int key, int rank) const {
    std::vector<FileShape> files = files_of(shape_, key, rank);
    if (!shared_.contains(key)) return files;
    const auto blocks = static_cast<std::size_t>(key % 5);
    files.push_back({fmt::format("{}/shared/d{}.all", shape_.settings.prefix, key),
                     blocks * shape_.settings.block_bytes + blocks, 0640});
    return files;
  }

  static bool is_shared(const FileShape& file) { return file.name.ends_with(".all"); }

  Blob content(int key, int rank, const FileShape& file) const {
    return content_of(shape_, key, is_shared(file) ? 0 : rank, file);
  }

 private:
  const JobShape& shape_;
  std::set<int> shared_;
};

}  // namespace cairn::sim
