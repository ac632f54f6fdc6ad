#include "prefix/known_names.hpp"

#include <algorithm>
#include <cstring>

#include "topology/placement.hpp"

namespace cairn {
namespace {

void append(std::vector<std::uint64_t>& hashes, Bytes blob) {
  const std::size_t before = hashes.size();
  hashes.resize(before + blob.size() / sizeof(std::uint64_t));
  if (!blob.empty()) std::memcpy(hashes.data() + before, blob.data(), blob.size());
}

}  // namespace

KnownNames::KnownNames(Communicator& comm, const std::vector<RankRecord>& records) {
  std::vector<std::uint64_t> mine;
  for (const RankRecord& record : records)
    for (const FileEntry& file : record.files)
      if (file.begins_here()) mine.push_back(hash_of_name(file.name));
  const auto every_rank = static_cast<std::size_t>(comm.size());
  for (const Blob& of_rank : gather_first(comm, std::as_bytes(std::span(mine)), every_rank))
    append(hashes_, of_rank);
  std::sort(hashes_.begin(), hashes_.end());
  const Bytes sorted = std::as_bytes(std::span(hashes_));
  Blob all(sorted.begin(), sorted.end());
  bcast_blob(comm, all, 0);
  hashes_.clear();
  append(hashes_, all);
}

bool KnownNames::has(const std::string& name) const {
  return std::binary_search(hashes_.begin(), hashes_.end(), hash_of_name(name));
}

}  // namespace cairn
