#include "redundancy/damage.hpp"

#include <algorithm>
#include <set>

#include "comm/blobs.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

void put(Encoder& out, const BlockRanges& ranges) {
  out.u64(ranges.size());
  for (const auto& [from, to] : ranges) {
    out.u64(from);
    out.u64(to);
  }
}

BlockRanges get_ranges(Decoder& in) {
  BlockRanges ranges(in.count(16));
  for (auto& range : ranges) range = {in.u64(), in.u64()};
  return ranges;
}

std::vector<Erasures> exchange_erasures(Communicator& set, const Erasures& mine) {
  Encoder out;
  put(out, mine.data);
  put(out, mine.parity);
  std::vector<Erasures> all;
  for (const Blob& blob : allgather_blobs(set, out.take())) {
    Decoder in(blob);
    Erasures& erasures = all.emplace_back();
    erasures.data = get_ranges(in);
    erasures.parity = get_ranges(in);
  }
  return all;
}

bool contains(const BlockRanges& ranges, std::uint64_t index) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), index,
                       [](std::uint64_t value, const auto& range) { return value < range.first; });
  return after != ranges.begin() && index < std::prev(after)->second;
}

/// All members compute the same damage from the same erasures.
class DamageReport {
 public:
  DamageReport(const Encoding& encoding, const std::vector<Erasures>& erasures)
      : encoding_(encoding), layout_(encoding), erasures_(erasures) {}

  /// Damaged stripes in order, or the error that names the first one that cannot be repaired.
  Result<std::vector<DamagedRows>> find() const {
    std::vector<DamagedRows> damages;
    const std::vector<std::uint64_t> limits = changes();
    for (std::size_t i = 0; i + 1 < limits.size(); ++i) {
      DamagedRows rows{limits[i], limits[i + 1], {}};
      for (int position = 0; position < layout_.members(); ++position) {
        DamagedStripe stripe{position, lost_slots(rows.begin, position)};
        if (static_cast<int>(stripe.lost.size()) > layout_.parity()) return too_much(stripe);
        if (!stripe.lost.empty()) rows.stripes.push_back(std::move(stripe));
      }
      if (!rows.stripes.empty()) damages.push_back(std::move(rows));
    }
    return damages;
  }

 private:
  /// The rows that may miss other blocks than the row before, ascending.
  std::vector<std::uint64_t> changes() const {
    std::set<std::uint64_t> rows;
    const auto add = [&rows](const BlockRanges& ranges, int per_row) {
      const auto width = static_cast<std::uint64_t>(per_row);
      for (const auto& [from, to] : ranges)  // which may begin and end within a row
        rows.insert(
            {from / width, (from + width - 1) / width, to / width, (to + width - 1) / width});
    };
    for (const Erasures& erasures : erasures_) {
      add(erasures.data, layout_.columns());
      add(erasures.parity, layout_.parity());
    }
    return {rows.begin(), rows.end()};
  }

  std::vector<int> lost_slots(std::uint64_t row, int position) const {
    std::vector<int> lost;
    for (int slot = 0; slot < layout_.columns(); ++slot)
      if (contains(of(layout_.contributor(position, slot)).data, layout_.data_index(row, slot)))
        lost.push_back(slot);
    for (int i = 0; i < layout_.parity(); ++i)
      if (contains(of(layout_.owner(position, i)).parity, layout_.parity_index(row, i)))
        lost.push_back(layout_.columns() + i);
    return lost;
  }

  const Erasures& of(int member) const { return erasures_[static_cast<std::size_t>(member)]; }

  tl::unexpected<Error> too_much(const DamagedStripe& stripe) const {
    std::string names;
    for (const int slot : stripe.lost) {
      const auto member = static_cast<std::size_t>(member_at(layout_, stripe.position, slot));
      names += fmt::format("{}rank {} (written on {})", names.empty() ? "" : ", ",
                           encoding_.members[member], encoding_.member_nodes[member]);
    }
    return fail(Code::lost,
                "data of {} in the set of ranks {} are missing or damaged at the same place, and "
                "the redundancy scheme can rebuild only {}",
                names, fmt::join(encoding_.members, ","), encoding_.failures);
  }

  const Encoding& encoding_;
  const SetLayout layout_;
  const std::vector<Erasures>& erasures_;
};

}  // namespace

int member_at(const SetLayout& layout, int position, int slot) {
  return slot < layout.columns() ? layout.contributor(position, slot)
                                 : layout.owner(position, slot - layout.columns());
}

Result<std::vector<DamagedRows>> find_damages(Communicator& set, const Encoding& encoding,
                                              const Erasures& mine) {
  const std::vector<Erasures> erasures = exchange_erasures(set, mine);
  return DamageReport(encoding, erasures).find();
}

}  // namespace cairn
