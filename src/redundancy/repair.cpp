#include "redundancy/repair.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "codec/erasure_code.hpp"
#include "comm/blobs.hpp"
#include "records/wire.hpp"
#include "redundancy/buffers.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {
namespace {

constexpr int block_tag = 103;
constexpr int rebuilt_tag = 104;

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

/// The member that has a slot of the erasure code in a position.
int member_at(const SetLayout& layout, int position, int slot) {
  return slot < layout.columns() ? layout.contributor(position, slot)
                                 : layout.owner(position, slot - layout.columns());
}

/// One stripe with blocks missing.
struct Damage {
  std::uint64_t row;
  int position;
  std::vector<int> lost;  ///< slots of the erasure code, ascending
};

/// All members compute the same damage from the same erasures.
class DamageReport {
 public:
  DamageReport(const Encoding& encoding, const std::vector<Erasures>& erasures)
      : encoding_(encoding), layout_(encoding), erasures_(erasures) {}

  /// Damaged stripes in order, or the error that names the first one that cannot be repaired.
  Result<std::vector<Damage>> find() const {
    std::vector<Damage> damages;
    for (const std::uint64_t row : damaged_rows())
      for (int position = 0; position < layout_.members(); ++position) {
        Damage damage{row, position, lost_slots(row, position)};
        if (static_cast<int>(damage.lost.size()) > layout_.parity()) return too_much(damage);
        if (!damage.lost.empty()) damages.push_back(std::move(damage));
      }
    return damages;
  }

 private:
  std::vector<std::uint64_t> damaged_rows() const {
    std::vector<std::uint64_t> rows;
    const auto add = [&rows](const BlockRanges& ranges, int per_row) {
      for (const auto& [from, to] : ranges) {
        const auto width = static_cast<std::uint64_t>(per_row);
        for (std::uint64_t row = from / width; row <= (to - 1) / width; ++row) rows.push_back(row);
      }
    };
    for (const Erasures& erasures : erasures_) {
      add(erasures.data, layout_.columns());
      add(erasures.parity, layout_.parity());
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
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

  tl::unexpected<Error> too_much(const Damage& damage) const {
    std::string names;
    for (const int slot : damage.lost) {
      const auto member = static_cast<std::size_t>(member_at(layout_, damage.position, slot));
      names += fmt::format("{}rank {} (written on {})", names.empty() ? "" : ", ",
                           encoding_.members[member], encoding_.member_nodes[member]);
    }
    return fail(Code::lost,
                "data of {} in the set of ranks {} are missing or damaged, and the scheme holds {} "
                "lost at the same place",
                names, fmt::join(encoding_.members, ","), encoding_.failures);
  }

  const Encoding& encoding_;
  const SetLayout layout_;
  const std::vector<Erasures>& erasures_;
};

/// Rebuilds damaged stripes. The member that keeps a stripe's first parity collects what is left of
/// it, combines it, and sends each lost block to the member that misses it; so the work on one lost
/// member is spread evenly over the others.
class Repairer {
 public:
  Repairer(Communicator& set, RankBlocks& blocks, const RankRecord& record)
      : set_(set),
        blocks_(blocks),
        record_(record),
        layout_(record.encoding),
        code_(layout_.columns(), layout_.parity()) {}

  /// `damages` are the same on all members; each batch holds what fits into `encode_bytes`.
  Result<Healed> run(const std::vector<Damage>& damages, std::uint64_t encode_bytes) {
    const std::uint64_t stripe_bytes =
        std::uint64_t{record_.encoding.block_bytes} * static_cast<std::uint64_t>(set_.size() + 1);
    const auto batch = std::max<std::size_t>(1, encode_bytes / stripe_bytes);
    for (std::size_t from = 0; from < damages.size(); from += batch)
      repair(std::span(damages).subspan(from, std::min(batch, damages.size() - from)));
    if (!status_) return tl::unexpected(status_.error());
    return healed_;
  }

 private:
  /// What the coordinator of a stripe holds while it is repaired.
  struct Gather {
    const Damage* damage;
    StripeRepair plan;
    std::vector<BlockBuffer> parts;    ///< by source; own ones are filled at once
    std::vector<std::size_t> lengths;  ///< of the parts
    std::vector<BlockBuffer> rebuilt;  ///< by target
  };

  void note(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  int coordinator(const Damage& damage) const { return layout_.owner(damage.position, 0); }

  std::size_t length_at(const Damage& damage, int slot) const {
    if (slot >= layout_.columns()) return layout_.stripe_length(damage.row, damage.position);
    return layout_.data_length(layout_.contributor(damage.position, slot),
                               layout_.data_index(damage.row, slot));
  }

  void repair(std::span<const Damage> damages) {
    std::vector<Gather> gathers;
    std::vector<Blob> scratch;
    std::vector<Request> requests;  // after the buffers they point into
    gathers.reserve(damages.size());
    for (const Damage& damage : damages) {
      StripeRepair plan = code_.repair(damage.lost);
      if (coordinator(damage) == set_.rank())
        start_gather(damage, std::move(plan), gathers, requests);
      else
        send_parts(damage, plan, scratch, requests);
    }
    wait_all(set_, requests);
    requests.clear();
    for (Gather& gather : gathers) finish_gather(gather, requests);
    for (const Damage& damage : damages)
      if (coordinator(damage) != set_.rank()) receive_rebuilt(damage);
    wait_all(set_, requests);
  }

  void start_gather(const Damage& damage, StripeRepair plan, std::vector<Gather>& gathers,
                    std::vector<Request>& requests) {
    Gather& gather = gathers.emplace_back(Gather{&damage, std::move(plan), {}, {}, {}});
    for (const int slot : gather.plan.sources) {
      const std::size_t length = length_at(damage, slot);
      const int member = member_at(layout_, damage.position, slot);
      BlockBuffer& part = gather.parts.emplace_back(record_.encoding.block_bytes);
      gather.lengths.push_back(length);
      if (length == 0) continue;
      if (member != set_.rank()) {
        requests.push_back(set_.irecv(part.first(length), member, block_tag));
        continue;
      }
      const Bytes own = own_block(damage, slot, part.first(length));
      if (own.data() != part.all().data()) std::copy(own.begin(), own.end(), part.all().begin());
    }
  }

  /// This member's block of a stripe, of `scratch`'s length; zeros, and an error noted, if it
  /// cannot be read.
  Bytes own_block(const Damage& damage, int slot, MutableBytes scratch) {
    const Result<Bytes> block =
        slot < layout_.columns()
            ? blocks_.data(layout_.data_index(damage.row, slot), scratch)
            : blocks_.parity(layout_.parity_index(damage.row, slot - layout_.columns()), scratch);
    if (block) return *block;
    note(tl::unexpected(block.error()));
    std::fill(scratch.begin(), scratch.end(), std::byte{0});
    return scratch;
  }

  void send_parts(const Damage& damage, const StripeRepair& plan, std::vector<Blob>& scratch,
                  std::vector<Request>& requests) {
    for (const int slot : plan.sources) {
      const std::size_t length = length_at(damage, slot);
      if (length == 0 || member_at(layout_, damage.position, slot) != set_.rank()) continue;
      const Bytes block = own_block(damage, slot, scratch.emplace_back(length));
      requests.push_back(set_.isend(block, coordinator(damage), block_tag));
    }
  }

  void finish_gather(Gather& gather, std::vector<Request>& requests) {
    const Damage& damage = *gather.damage;
    std::vector<MutableBytes> outputs;
    gather.rebuilt.reserve(gather.plan.targets.size());
    for (std::size_t i = 0; i < gather.plan.targets.size(); ++i) {
      gather.rebuilt.emplace_back(record_.encoding.block_bytes);
      outputs.push_back(
          gather.rebuilt.back().first(layout_.stripe_length(damage.row, damage.position)));
      std::fill(outputs.back().begin(), outputs.back().end(), std::byte{0});
    }
    for (std::size_t i = 0; i < gather.parts.size(); ++i)
      gather.plan.combination.add(static_cast<int>(i), gather.parts[i].first(gather.lengths[i]),
                                  outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const int slot = gather.plan.targets[i];
      const int member = member_at(layout_, damage.position, slot);
      const Bytes block = outputs[i].first(length_at(damage, slot));
      if (member == set_.rank())
        accept(damage, slot, block);
      else
        requests.push_back(set_.isend(block, member, rebuilt_tag));
    }
  }

  void receive_rebuilt(const Damage& damage) {
    for (const int slot : damage.lost) {
      if (member_at(layout_, damage.position, slot) != set_.rank()) continue;
      BlockBuffer buffer(record_.encoding.block_bytes);
      const MutableBytes block = buffer.first(length_at(damage, slot));
      recv(set_, block, coordinator(damage), rebuilt_tag);
      accept(damage, slot, block);
    }
  }

  /// Writes a rebuilt block of this rank, if it is what the record says.
  void accept(const Damage& damage, int slot, Bytes block) {
    const bool is_data = slot < layout_.columns();
    const std::uint64_t index = is_data
                                    ? layout_.data_index(damage.row, slot)
                                    : layout_.parity_index(damage.row, slot - layout_.columns());
    if (crc32c(block) != (is_data ? record_.data_crcs : record_.parity_crcs)[index]) {
      note(fail(Code::corrupt, "rebuilt {} block {} of rank {} does not match its checksum",
                is_data ? "data" : "parity", index, record_.rank));
      return;
    }
    note(is_data ? blocks_.write_data(index, block) : blocks_.write_parity(index, block));
    ++healed_.repaired_blocks;
    healed_.repaired_bytes += block.size();
  }

  Communicator& set_;
  RankBlocks& blocks_;
  const RankRecord& record_;
  const SetLayout layout_;
  const ErasureCode code_;
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

  const std::vector<Erasures> erasures = exchange_erasures(set, mine);
  CAIRN_ASSIGN(const std::vector<Damage> damages, DamageReport(record.encoding, erasures).find());
  const bool touched = !mine.none() || !complete;
  Status ready = touched ? blocks.make_room() : Status{};
  CAIRN_TRY(agree(set, std::move(ready)));
  Result<Healed> healed = Repairer(set, blocks, record).run(damages, options.encode_bytes);
  Status settled = healed ? (touched ? settle(blocks, options) : Status{})
                          : Status(tl::unexpected(healed.error()));
  CAIRN_TRY(agree(set, std::move(settled)));
  healed->checked = true;
  return healed;
}

}  // namespace cairn
