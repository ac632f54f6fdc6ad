#include "interpose/listing.hpp"

#include <algorithm>
#include <unordered_set>

namespace cairn::interpose {

std::vector<ListedFile> added_names(const std::vector<std::string>& real,
                                    std::vector<ListedFile> redirected) {
  const std::unordered_set<std::string_view> known(real.begin(), real.end());
  std::erase_if(redirected, [&](const ListedFile& file) { return known.contains(file.name); });
  std::sort(redirected.begin(), redirected.end(),
            [](const ListedFile& one, const ListedFile& other) { return one.name < other.name; });
  return redirected;
}

}  // namespace cairn::interpose
