#include "redundancy/protect.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "redundancy/buffers.hpp"
#include "redundancy/rank_blocks.hpp"
#include "redundancy/stripes.hpp"

namespace cairn {
namespace {

constexpr int parity_tag = 101;
/// Receives under way: few, so that a block is combined while it is still in the processor's cache.
constexpr std::size_t receives_ahead = 2;

/// Every member sends each of its blocks to the one member that keeps the parity over it. Work is
/// counted in steps: step (row, shift) sends to the member `shift` places to the right and receives
/// from the one as far to the left, so that at each step every member sends and receives once.
///
/// No deadlock: a member waits only for members that are behind it in steps, given that sends run at
/// least two steps ahead of the receive that is waited for.
class XorEncoder {
 public:
  XorEncoder(Communicator& set, RankBlocks& blocks, RankRecord& record,
             std::vector<std::uint64_t> data_bytes, std::uint64_t encode_bytes)
      : set_(set),
        blocks_(blocks),
        record_(record),
        geometry_(record.encoding.geometry),
        stripes_{set.size()},
        data_bytes_(std::move(data_bytes)),
        sum_(geometry_.block_bytes) {
    const std::size_t affordable = encode_bytes / 2 / geometry_.block_bytes;
    const auto useful = static_cast<std::size_t>(2 * (set.size() - 1));
    sends_.resize(std::clamp<std::size_t>(affordable, 2, std::max<std::size_t>(useful, 2)));
    for (std::size_t i = 0; i < receives_ahead; ++i) receives_.emplace_back(geometry_.block_bytes);
  }

  Status run() {
    note(blocks_.start_parity());
    record_.data_crcs.assign(geometry_.data_blocks(data_bytes_[me()]), 0);
    record_.parity_crcs.assign(geometry_.parity_blocks(), 0);
    const std::uint64_t steps = geometry_.rows() * shifts();
    for (std::uint64_t step = 0; step < std::min<std::uint64_t>(steps, receives_ahead); ++step)
      start_receive(step);
    std::uint64_t sent = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      while (sent < std::min(steps, step + sends_.size())) start_send(sent++);
      finish_receive(step);
      if (step + receives_ahead < steps) start_receive(step + receives_ahead);
    }
    for (Send& pending : sends_) wait(set_, pending.request);
    return status_;
  }

 private:
  // In both, the buffer outlives the request that points into it.
  struct Send {
    Blob scratch;  ///< used where the store cannot be mapped, or a block spans two files
    Request request;
  };
  struct Receive {
    explicit Receive(std::size_t bytes) : buffer(bytes) {}
    BlockBuffer buffer;
    std::size_t length = 0;
    Request request;
  };

  std::size_t me() const { return static_cast<std::size_t>(set_.rank()); }
  std::uint64_t shifts() const { return static_cast<std::uint64_t>(set_.size() - 1); }
  int shift_of(std::uint64_t step) const { return 1 + static_cast<int>(step % shifts()); }

  void note(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  void start_send(std::uint64_t step) {
    const int to = (set_.rank() + shift_of(step)) % set_.size();
    const std::uint64_t index = stripes_.data_index(step / shifts(), set_.rank(), to);
    const std::size_t length = geometry_.data_length(index, data_bytes_[me()]);
    Send& slot = sends_[step % sends_.size()];
    wait(set_, slot.request);
    if (length == 0) return;
    slot.scratch.resize(geometry_.block_bytes);
    Result<Bytes> block = blocks_.data(index, slot.scratch);
    if (!block) {
      // The others need a block of this length to go on; the agreed error voids what comes of it.
      note(tl::unexpected(block.error()));
      block = Bytes(slot.scratch).first(length);
    }
    record_.data_crcs[index] = crc32c(*block);
    slot.request = set_.isend(*block, to, parity_tag);
  }

  void start_receive(std::uint64_t step) {
    const int from = (set_.rank() - shift_of(step) + set_.size()) % set_.size();
    const std::uint64_t index = stripes_.data_index(step / shifts(), from, set_.rank());
    Receive& slot = receives_[step % receives_ahead];
    slot.length = geometry_.data_length(index, data_bytes_[static_cast<std::size_t>(from)]);
    if (slot.length > 0)
      slot.request = set_.irecv(slot.buffer.first(slot.length), from, parity_tag);
  }

  void finish_receive(std::uint64_t step) {
    const std::uint64_t row = step / shifts();
    Receive& slot = receives_[step % receives_ahead];
    wait(set_, slot.request);
    const MutableBytes sum = sum_.first(geometry_.width(row));
    if (step % shifts() == 0) std::fill(sum.begin(), sum.end(), std::byte{0});
    xor_into(sum, slot.buffer.first(slot.length));
    if (step % shifts() + 1 < shifts()) return;
    record_.parity_crcs[row] = crc32c(sum);
    if (status_) note(blocks_.write_parity(row, sum));
  }

  Communicator& set_;
  RankBlocks& blocks_;
  RankRecord& record_;
  const Geometry geometry_;
  const Stripes stripes_;
  const std::vector<std::uint64_t> data_bytes_;  ///< of each member
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  BlockBuffer sum_;
  Status status_;
};

Status take_checksums(RankBlocks& blocks, RankRecord& record) {
  Blob scratch(record.encoding.geometry.block_bytes);
  const std::uint64_t count = record.encoding.geometry.data_blocks(record.data_bytes());
  record.data_crcs.clear();
  record.parity_crcs.clear();
  for (std::uint64_t index = 0; index < count; ++index) {
    CAIRN_ASSIGN(const Bytes block, blocks.data(index, scratch));
    record.data_crcs.push_back(crc32c(block));
  }
  return {};
}

}  // namespace

Status protect(Communicator& set, Files& files, const RankFolder& folder, RankRecord& record,
               std::uint32_t block_bytes, std::uint64_t encode_bytes) {
  std::vector<std::uint64_t> data_bytes(static_cast<std::size_t>(set.size()));
  const std::uint64_t mine = record.data_bytes();
  set.allgather(bytes_of(mine), std::as_writable_bytes(std::span(data_bytes)));
  const Stripes stripes{set.size()};
  record.encoding.geometry =
      make_geometry(*std::max_element(data_bytes.begin(), data_bytes.end()), stripes.columns(),
                    stripes.parity_columns(), block_bytes);
  RankBlocks blocks(files, folder, record);
  if (set.size() == 1) return take_checksums(blocks, record);
  return XorEncoder(set, blocks, record, std::move(data_bytes), encode_bytes).run();
}

}  // namespace cairn
