#include "interpose/listing.hpp"

#include <algorithm>

namespace cairn::interpose {

AddedNames::AddedNames(std::vector<ListedFile> files) : files_(std::move(files)) {
  std::sort(files_.begin(), files_.end(),
            [](const ListedFile& one, const ListedFile& other) { return one.name < other.name; });
}

bool AddedNames::hides(std::string_view name) const {
  const auto found = std::lower_bound(
      files_.begin(), files_.end(), name,
      [](const ListedFile& file, std::string_view wanted) { return file.name < wanted; });
  return found != files_.end() && found->name == name;
}

}  // namespace cairn::interpose
