#include "wrapped/plain_steps.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "agreement/step_order.hpp"

namespace cairn {
namespace {

using FindStep = std::function<std::string_view(std::string_view name)>;
/// Of the prefix directory, each listed once.
using Listings = std::map<std::string, std::vector<std::string>>;

const std::vector<std::string>& listed(Files& files, const std::string& path, Listings& listings) {
  const auto [entry, is_new] = listings.try_emplace(path);
  if (is_new)
    if (auto names = files.list(path)) entry->second = *std::move(names);
  return entry->second;
}

struct Newest {
  std::int64_t step = LaterSteps::none;
  std::string file;
};

/// Matching a pattern is slow, so only names that differ in a later number are matched.
Newest newest_after(Files& files, const std::string& prefix, const std::string& name,
                    const FindStep& find_step, Listings& listings) {
  const std::string_view step = find_step(name);
  auto last = number_in(step).value();
  // The part of the path that has the step in it is another one in each step.
  const auto begin = static_cast<std::size_t>(step.data() - name.data());
  const std::size_t from = begin == 0 ? 0 : name.rfind('/', begin - 1) + 1;  // 0 if there is none
  const std::size_t to = std::min(name.find('/', begin), name.size());
  const std::string before = name.substr(from, begin - from);
  const std::string after = name.substr(begin + step.size(), to - begin - step.size());
  Newest newest;
  for (const std::string& part : listed(files, prefix + "/" + name.substr(0, from), listings)) {
    if (part.size() <= before.size() + after.size() || !part.starts_with(before) ||
        !part.ends_with(after))
      continue;
    const std::string its_step =
        part.substr(before.size(), part.size() - before.size() - after.size());
    const auto number = number_in(its_step);
    if (!number || *number <= last) continue;
    const std::string other = name.substr(0, from) + part + name.substr(to);
    if (find_step(other) != its_step || !files.info(prefix + "/" + other)) continue;
    last = *number;
    newest = {*number, other};
  }
  return newest;
}

}  // namespace

LaterSteps later_steps(Files& files, const std::string& prefix,
                       const std::vector<std::string>& names, const FindStep& find_step) {
  LaterSteps later;
  Listings listings;
  for (const std::string& name : names) {
    if (!number_in(find_step(name))) continue;
    const Newest found = newest_after(files, prefix, name, find_step, listings);
    if (found.step < later.oldest) {
      later.oldest = found.step;
      later.lacking = name;
    }
    if (found.step <= later.newest) continue;
    later.newest = found.step;
    later.file = found.file;
  }
  return later;
}

std::string lacking_of_all(Communicator& comm, const LaterSteps& mine, std::int64_t oldest) {
  const std::int64_t rank = mine.oldest == oldest ? comm.rank() : comm.size();
  const auto first = static_cast<int>(allreduce(comm, rank, Reduce::min));
  const Bytes name = std::as_bytes(std::span(mine.lacking));
  Blob blob(name.begin(), name.end());
  bcast_blob(comm, blob, first);
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

}  // namespace cairn
