#include "prefix/file_finder.hpp"

#include <algorithm>

#include "prefix/manifest.hpp"

namespace cairn {

FileFinder::FileFinder(Files& files, const PrefixFolder& folder, const DatasetRecord& dataset,
                       int rank, int ranks)
    : files_(files), folder_(folder), dataset_(dataset) {
  const std::uint64_t in_each = dataset.ranks_per_manifest;
  const std::uint64_t manifests = (dataset.info.ranks + in_each - 1) / in_each;
  for (std::uint64_t i = 0; i < manifests; ++i) unread_.push_back(i);
  const std::uint64_t mine =
      static_cast<std::uint64_t>(rank) * manifests / static_cast<std::uint64_t>(ranks);
  const auto distance = [mine](std::uint64_t i) { return i > mine ? i - mine : mine - i; };
  std::stable_sort(unread_.begin(), unread_.end(),
                   [&](std::uint64_t a, std::uint64_t b) { return distance(a) > distance(b); });
}

Result<bool> FileFinder::has(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  while (!names_.contains(name) && !unread_.empty()) CAIRN_TRY(read_next());
  return names_.contains(name);
}

Status FileFinder::read_next() {
  const std::string path = PrefixFolder::manifest(folder_.dataset(dataset_.info), unread_.back());
  CAIRN_ASSIGN(const Manifest manifest, read_manifest(files_, path));
  for (const RankRecord& record : manifest.records)
    for (const FileEntry& file : record.files) names_.insert(file.name);
  unread_.pop_back();
  return {};
}

}  // namespace cairn
