// What all nodes together still have, against what the model knows of losses.
#include <algorithm>

#include "model.hpp"
#include "records/set_layout.hpp"
#include "redundancy/replicas.hpp"

namespace cairn::sim {

void Model::rebuilt_offline(const std::set<int>& whole) const {
  const auto is_whole = [&](int key) { return whole.contains(key); };
  for (const auto& [key, dataset] : datasets_)
    if (!is_whole(key) && must_be_left(dataset, is_whole))
      throw Violation(fmt::format("(e) d{} is not rebuilt offline", key));
}

/// On all nodes together: nothing is there for which it may have gone.
bool Model::must_be_left(const Dataset& dataset, const std::function<bool(int)>& is_whole) const {
  const std::vector<int> newer = superseded_by(dataset);
  return std::none_of(newer.begin(), newer.end(), is_whole) &&
         must_come_back(dataset, {shape_.nodes.begin(), shape_.nodes.end()});
}

void Model::derived_offline(
    const std::map<int, CacheState>& derived,
    const std::function<std::set<int>(const std::string&)>& ranks_in) const {
  const auto is_whole = [&](int key) {
    const auto found = derived.find(key);
    return found != derived.end() && found->second == CacheState::protected_;
  };
  for (const auto& [key, dataset] : datasets_) {
    if (!is_whole(key) && must_be_left(dataset, is_whole))
      throw Violation(fmt::format("(j) d{} is not derived to be protected, and must survive", key));
    if (is_whole(key) && is_surely_lost(key, ranks_in(dataset.folder)))
      throw Violation(
          fmt::format("(j) d{} is derived to be protected, and too much of it is gone", key));
  }
}

/// Which of the committed divisions counts only the records say. What is written or settled alone
/// survives no more than what a set protects.
bool Model::is_surely_lost(int key, const std::set<int>& there) const {
  const Dataset& dataset = datasets_.at(key);
  std::set<int> gone;
  for (int rank = 0; rank < shape_.ranks(); ++rank)
    if (!there.contains(rank)) gone.insert(rank);
  if (shared(dataset)) return !gone.empty();
  const auto is_lost = [&](const std::vector<RedundancySet>& sets) {
    return std::any_of(sets.begin(), sets.end(),
                       [&](const RedundancySet& set) { return is_beyond_repair(key, set, gone); });
  };
  const auto& divisions = dataset.committed_divisions;
  return !divisions.empty() && std::all_of(divisions.begin(), divisions.end(), is_lost);
}

/// No copy is left of a record, or a stripe misses more data than it has parity. A member that has
/// written little, or nothing, has no data in most stripes.
bool Model::is_beyond_repair(int key, const RedundancySet& set, const std::set<int>& gone) const {
  Encoding encoding = make_encoding(level_of(datasets_.at(key)), set, shape_.settings.block_bytes);
  for (const int rank : set) encoding.member_bytes.push_back(data_bytes_of(shape_, key, rank));
  const SetLayout layout(encoding);
  const auto is_gone = [&](int member) {
    return gone.contains(set[static_cast<std::size_t>(member)]);
  };
  const auto is_beyond = [&](std::uint64_t row, int position) {
    int missing = 0;
    for (int slot = 0; slot < layout.columns(); ++slot) {
      const int member = layout.contributor(position, slot);
      const bool has_data = layout.data_index(row, slot) < layout.data_blocks(member);
      missing += has_data && is_gone(member) ? 1 : 0;
    }
    for (int i = 0; i < layout.parity(); ++i) missing -= is_gone(layout.owner(position, i)) ? 0 : 1;
    return missing > 0;
  };
  std::set<int> recorded;  // members of which a record is left
  for (int member = 0; member < layout.members(); ++member) {
    if (is_gone(member)) continue;
    recorded.insert(member);
    for (const int kept : records_kept_by(encoding, member)) recorded.insert(kept);
  }
  for (int member = 0; member < layout.members(); ++member) {
    if (!recorded.contains(member)) return true;
    for (std::uint64_t i = 0; is_gone(member) && i < layout.data_blocks(member); ++i)
      if (is_beyond(i / static_cast<std::uint64_t>(layout.columns()),
                    layout.position_of_data(member, i)))
        return true;
  }
  return false;
}

}  // namespace cairn::sim
