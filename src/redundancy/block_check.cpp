#include "redundancy/block_check.hpp"

#include <algorithm>

#include "base/checksum.hpp"

namespace cairn {

BlockCheck::BlockCheck(const RankRecord& record)
    : record_(record),
      data_(record.data_crcs.size(), Found::unknown),
      parity_(record.parity_crcs.size(), Found::unknown) {}

bool BlockCheck::compare(BlockKind kind, std::uint64_t index, Bytes block) {
  const auto& crcs = kind == BlockKind::data ? record_.data_crcs : record_.parity_crcs;
  const bool good = crc32c(block) == crcs[index];
  of(kind)[index] = good ? Found::good : Found::bad;
  return good;
}

bool BlockCheck::is_good(BlockKind kind, std::uint64_t index, const Result<Bytes>& block) {
  if (!block) {
    of(kind)[index] = Found::bad;
    const Error& why = block.error();
    const bool is_of_system =
        why.code == Code::io && why.error_number != 0;  // else it is too short
    if (readable_ && is_of_system) readable_ = tl::unexpected(why);
    return false;
  }
  return of(kind)[index] == Found::good || compare(kind, index, *block);
}

void BlockCheck::read_unknown(RankBlocks& blocks) {
  Blob scratch(SetLayout(record_.encoding).geometry().widest());
  for (std::uint64_t index = 0; index < data_.size(); ++index)
    if (data_[index] == Found::unknown)
      is_good(BlockKind::data, index, blocks.data(index, scratch));
  for (std::uint64_t index = 0; index < parity_.size(); ++index)
    if (parity_[index] == Found::unknown)
      is_good(BlockKind::parity, index, blocks.parity(index, scratch));
}

void BlockCheck::all_missing() {
  const SetLayout layout(record_.encoding);
  std::fill(data_.begin(), data_.end(), Found::bad);
  for (std::uint64_t index = 0; index < parity_.size(); ++index) {
    const bool empty = layout.parity_length(record_.index_in_set(), index) == 0;
    parity_[index] = empty ? Found::good : Found::bad;
  }
}

BlockRanges BlockCheck::ranges_of(Found what, const Blocks& blocks) {
  BlockRanges ranges;
  for (std::uint64_t index = 0; index < blocks.size(); ++index) {
    if (blocks[index] != what) continue;
    if (!ranges.empty() && ranges.back().second == index)
      ++ranges.back().second;
    else
      ranges.emplace_back(index, index + 1);
  }
  return ranges;
}

Erasures find_erasures(RankBlocks& blocks, const RankRecord& record) {
  BlockCheck check(record);
  check.read_unknown(blocks);
  return check.erasures();
}

}  // namespace cairn
