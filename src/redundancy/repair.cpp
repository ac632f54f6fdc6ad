#include "redundancy/repair.hpp"

#include <algorithm>
#include <array>

#include "base/checksum.hpp"
#include "comm/blobs.hpp"
#include "records/wire.hpp"
#include "redundancy/buffers.hpp"
#include "redundancy/rank_blocks.hpp"
#include "redundancy/stripes.hpp"

namespace cairn {
namespace {

constexpr int block_tag = 103;
constexpr int rebuilt_tag = 104;

/// What one member has told the others.
struct MemberState {
  std::uint64_t data_bytes = 0;
  Erasures erasures;
};

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

std::vector<MemberState> exchange_states(Communicator& set, const RankRecord& record,
                                         const Erasures& mine) {
  Encoder out;
  out.u64(record.data_bytes());
  put(out, mine.data);
  put(out, mine.parity);
  std::vector<MemberState> states;
  for (const Blob& blob : allgather_blobs(set, out.take())) {
    Decoder in(blob);
    MemberState state;
    state.data_bytes = in.u64();
    state.erasures.data = get_ranges(in);
    state.erasures.parity = get_ranges(in);
    states.push_back(std::move(state));
  }
  return states;
}

bool contains(const BlockRanges& ranges, std::uint64_t index) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), index,
      [](std::uint64_t value, const auto& range) { return value < range.first; });
  return after != ranges.begin() && index < std::prev(after)->second;
}

/// One stripe with one block missing: whose it is. holder == position means the parity itself.
struct Damage {
  std::uint64_t row;
  int position;
  int holder;
};

/// All members compute the same damage from the same states.
class DamageReport {
 public:
  DamageReport(const RankRecord& record, const std::vector<MemberState>& states)
      : encoding_(record.encoding), states_(states), stripes_{static_cast<int>(states.size())} {}

  /// Damaged stripes in order, or the error that names the first one that cannot be repaired.
  Result<std::vector<Damage>> find() const {
    std::vector<Damage> damages;
    for (const std::uint64_t row : damaged_rows())
      for (int position = 0; position < stripes_.members; ++position) {
        const std::vector<int> holders = holders_of_damage(row, position);
        if (holders.size() > encoding_.failures) return too_much(holders);
        if (!holders.empty()) damages.push_back({row, position, holders[0]});
      }
    return damages;
  }

 private:
  std::vector<std::uint64_t> damaged_rows() const {
    std::vector<std::uint64_t> rows;
    const auto add = [&rows](const BlockRanges& ranges, std::uint64_t per_row) {
      for (const auto& [from, to] : ranges)
        for (std::uint64_t row = from / per_row; row <= (to - 1) / per_row; ++row) rows.push_back(row);
    };
    for (const MemberState& state : states_) {
      add(state.erasures.data, stripes_.columns());
      add(state.erasures.parity, std::max(stripes_.parity_columns(), 1U));
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }

  std::vector<int> holders_of_damage(std::uint64_t row, int position) const {
    std::vector<int> holders;
    for (int member = 0; member < stripes_.members; ++member) {
      const Erasures& erasures = states_[static_cast<std::size_t>(member)].erasures;
      const bool damaged =
          stripes_.members == 1 ? contains(erasures.data, row)
          : member == position  ? contains(erasures.parity, row)
                                : contains(erasures.data, stripes_.data_index(row, member, position));
      if (damaged) holders.push_back(member);
    }
    return holders;
  }

  tl::unexpected<Error> too_much(const std::vector<int>& holders) const {
    std::string names;
    for (const int member : holders) {
      const auto index = static_cast<std::size_t>(member);
      names += fmt::format("{}rank {} (written on {})", names.empty() ? "" : ", ",
                           encoding_.members[index], encoding_.member_nodes[index]);
    }
    return fail(Code::lost,
                "data of {} in the set of ranks {} are missing or damaged, and the scheme holds {} "
                "lost at the same place",
                names, fmt::join(encoding_.members, ","), encoding_.failures);
  }

  const Encoding& encoding_;
  const std::vector<MemberState>& states_;
  const Stripes stripes_;
};

/// Rebuilds damaged stripes. The member at a stripe's position collects what is left of it, adds it
/// up, and sends the sum to the member that misses it; so the work on one lost member is spread evenly
/// over the others.
class Repairer {
 public:
  Repairer(Communicator& set, RankBlocks& blocks, const RankRecord& record,
           const std::vector<MemberState>& states)
      : set_(set),
        blocks_(blocks),
        record_(record),
        geometry_(record.encoding.geometry),
        states_(states),
        stripes_{set.size()} {}

  /// `damages` are the same on all members; each batch holds what fits into `encode_bytes`.
  Result<Healed> run(const std::vector<Damage>& damages, std::uint64_t encode_bytes) {
    const std::uint64_t stripe_bytes =
        std::uint64_t{geometry_.block_bytes} * static_cast<std::uint64_t>(set_.size() + 1);
    const auto batch = std::max<std::size_t>(1, encode_bytes / stripe_bytes);
    for (std::size_t from = 0; from < damages.size(); from += batch)
      repair(std::span(damages).subspan(from, std::min(batch, damages.size() - from)));
    if (!status_) return tl::unexpected(status_.error());
    return healed_;
  }

 private:
  struct Gather {
    const Damage* damage;
    std::vector<BlockBuffer> parts;
    std::vector<std::size_t> lengths;
    BlockBuffer sum;
  };

  void note(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  std::size_t length_at(const Damage& damage, int member) const {
    if (member == damage.position) return geometry_.width(damage.row);
    return geometry_.data_length(stripes_.data_index(damage.row, member, damage.position),
                                 states_[static_cast<std::size_t>(member)].data_bytes);
  }

  void repair(std::span<const Damage> damages) {
    std::vector<Gather> gathers;
    std::vector<Blob> scratch;
    std::vector<Request> requests;  // after the buffers they point into
    gathers.reserve(damages.size());
    scratch.reserve(damages.size());
    for (const Damage& damage : damages)
      if (damage.position == set_.rank()) {
        start_gather(damage, gathers, requests);
      } else if (damage.holder != set_.rank()) {
        send_part(damage, scratch, requests);
      }
    wait_all(set_, requests);
    requests.clear();
    for (Gather& gather : gathers) finish_gather(gather, requests);
    for (const Damage& damage : damages)
      if (damage.holder == set_.rank() && damage.position != set_.rank()) receive_rebuilt(damage);
    wait_all(set_, requests);
  }

  void start_gather(const Damage& damage, std::vector<Gather>& gathers,
                    std::vector<Request>& requests) {
    Gather& gather = gathers.emplace_back(Gather{&damage, {}, {}, BlockBuffer(geometry_.block_bytes)});
    gather.parts.reserve(static_cast<std::size_t>(set_.size()));
    for (int member = 0; member < set_.size(); ++member) {
      const std::size_t length = length_at(damage, member);
      if (member == damage.position || member == damage.holder || length == 0) continue;
      gather.parts.emplace_back(geometry_.block_bytes);
      gather.lengths.push_back(length);
      requests.push_back(set_.irecv(gather.parts.back().first(length), member, block_tag));
    }
  }

  void send_part(const Damage& damage, std::vector<Blob>& scratch, std::vector<Request>& requests) {
    const std::size_t length = length_at(damage, set_.rank());
    if (length == 0) return;
    Blob& buffer = scratch.emplace_back(geometry_.block_bytes);
    const auto index = stripes_.data_index(damage.row, set_.rank(), damage.position);
    Result<Bytes> block = blocks_.data(index, buffer);
    if (!block) {
      note(tl::unexpected(block.error()));
      block = Bytes(buffer).first(length);
    }
    requests.push_back(set_.isend(*block, damage.position, block_tag));
  }

  void finish_gather(Gather& gather, std::vector<Request>& requests) {
    const Damage& damage = *gather.damage;
    const MutableBytes sum = gather.sum.first(geometry_.width(damage.row));
    std::fill(sum.begin(), sum.end(), std::byte{0});
    for (std::size_t i = 0; i < gather.parts.size(); ++i)
      xor_into(sum, gather.parts[i].first(gather.lengths[i]));
    if (damage.holder == damage.position) {
      accept(damage, sum);
      return;
    }
    Blob scratch(geometry_.block_bytes);
    if (const auto parity = blocks_.parity(damage.row, scratch))
      xor_into(sum, *parity);
    else
      note(tl::unexpected(parity.error()));
    requests.push_back(
        set_.isend(sum.first(length_at(damage, damage.holder)), damage.holder, rebuilt_tag));
  }

  void receive_rebuilt(const Damage& damage) {
    BlockBuffer buffer(geometry_.block_bytes);
    const MutableBytes block = buffer.first(length_at(damage, damage.holder));
    recv(set_, block, damage.position, rebuilt_tag);
    accept(damage, block);
  }

  /// Writes a rebuilt block of this rank, if it is what the record says.
  void accept(const Damage& damage, Bytes block) {
    const bool is_parity = damage.position == set_.rank();
    const std::uint64_t index =
        is_parity ? damage.row : stripes_.data_index(damage.row, set_.rank(), damage.position);
    const auto& crcs = is_parity ? record_.parity_crcs : record_.data_crcs;
    if (crc32c(block) != crcs[index]) {
      note(fail(Code::corrupt, "rebuilt {} block {} of rank {} does not match its checksum",
                is_parity ? "parity" : "data", index, record_.rank));
      return;
    }
    note(is_parity ? blocks_.write_parity(index, block) : blocks_.write_data(index, block));
    ++healed_.repaired_blocks;
    healed_.repaired_bytes += block.size();
  }

  Communicator& set_;
  RankBlocks& blocks_;
  const RankRecord& record_;
  const Geometry geometry_;
  const std::vector<MemberState>& states_;
  const Stripes stripes_;
  Healed healed_;
  Status status_;
};

/// True if any member needs `mine`, so that all do the same.
bool any_member(Communicator& set, bool mine) {
  return allreduce(set, mine ? 1 : 0, Reduce::max) != 0;
}

Status settle(RankBlocks& blocks, const HealOptions& options) {
  if (options.copy_metadata) CAIRN_TRY(blocks.restore_attributes());
  return options.durable ? blocks.sync() : Status{};
}

}  // namespace

Result<Healed> heal(Communicator& set, Files& files, const RankFolder& folder,
                    const RankRecord& record, const HealOptions& options) {
  RankBlocks blocks(files, folder, record);
  const bool complete = blocks.looks_complete();
  if (!any_member(set, options.read_everything || !complete)) return Healed{};
  const Erasures mine = find_erasures(blocks, record);
  if (!any_member(set, !mine.none() || !complete)) return Healed{true, 0, 0};

  const std::vector<MemberState> states = exchange_states(set, record, mine);
  CAIRN_ASSIGN(const std::vector<Damage> damages, DamageReport(record, states).find());
  const bool touched = !mine.none() || !complete;
  Status ready = touched ? blocks.make_room() : Status{};
  CAIRN_TRY(agree(set, std::move(ready)));
  Result<Healed> healed = Repairer(set, blocks, record, states).run(damages, options.encode_bytes);
  Status settled = healed ? (touched ? settle(blocks, options) : Status{})
                          : Status(tl::unexpected(healed.error()));
  CAIRN_TRY(agree(set, std::move(settled)));
  healed->checked = true;
  return healed;
}

}  // namespace cairn
