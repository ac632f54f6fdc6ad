#include "redundancy/protect.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "codec/erasure_code.hpp"
#include "redundancy/buffers.hpp"

namespace cairn {
namespace {

constexpr int data_tag = 101;
constexpr int parity_tag = 105;
constexpr int copy_crcs_tag = 107;
/// Receives under way: few, so that a block is combined while it is still in the processor's cache.
constexpr std::size_t receives_ahead = 2;
/// Rows that are being received, or whose parity is on its way to other members: with two members
/// each step is a row.
constexpr std::size_t rows_ahead = receives_ahead + 1;

/// Every member coordinates one stripe of each row: the one whose first parity it keeps. It
/// receives the stripe's data blocks, adds them up to all of its parity, keeps the first and
/// forwards the others to their owners. So each data block travels once, however many parities
/// there are.
///
/// Work is counted in steps: step (row, shift) sends to the member `shift` places to the right, if
/// this member has data in the stripe that one coordinates, and receives from the one as far to the
/// left.
///
/// No deadlock: a member waits only for members that are behind it in steps, given that sends run
/// at least two steps ahead of the receive that is waited for; for what is forwarded, a row behind.
class StripeEncoder {
 public:
  StripeEncoder(Communicator& set, RankBlocks& blocks, RankRecord& record,
                std::uint64_t encode_bytes)
      : set_(set),
        blocks_(blocks),
        record_(record),
        layout_(record.encoding),
        combination_(ErasureCode(layout_.columns(), layout_.parity()).encoder()),
        me_(set.rank()),
        my_position_(layout_.position_of_parity(me_, 0)),
        copies_(record.encoding.scheme == Scheme::partner) {
    const std::size_t block = layout_.geometry().widest();
    const auto useful = static_cast<std::size_t>(2 * (set.size() - 1));
    const auto sends = std::clamp<std::size_t>(encode_bytes / 2 / record.encoding.block_bytes, 2,
                                               std::max<std::size_t>(useful, 2));
    for (std::size_t i = 0; i < sends; ++i) sends_.emplace_back(block);
    for (std::size_t i = 0; i < receives_ahead; ++i) receives_.emplace_back(block);
    for (std::size_t i = 0; i < rows_ahead; ++i) sums_.emplace_back(layout_.parity(), block);
  }

  Status run(const std::string& spare) {
    note(blocks_.start_parity(spare));
    record_.data_crcs.assign(layout_.data_blocks(me_), 0);
    record_.parity_crcs.assign(layout_.parity_blocks(), 0);
    const std::uint64_t steps = layout_.rows() * shifts();
    for (std::uint64_t step = 0; step < std::min<std::uint64_t>(steps, receives_ahead); ++step)
      start_receive(step);
    std::uint64_t sent = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      while (sent < std::min(steps, step + sends_.size())) start_send(sent++);
      finish_receive(step);
      if (step + receives_ahead < steps) start_receive(step + receives_ahead);
      if (step % shifts() + 1 == shifts()) finish_row(step / shifts());
    }
    for (Send& pending : sends_) wait(set_, pending.request);
    if (layout_.rows() > 0) keep_forwarded(layout_.rows() - 1);
    for (Sums& pending : sums_) wait_all(set_, pending.forwards);
    if (copies_) share_copy_crcs();
    return status_;
  }

 private:
  // In all three, the buffers outlive the requests that point into them.
  struct Send {
    explicit Send(std::size_t bytes) : scratch(bytes) {}
    BlockBuffer scratch;  ///< used where the store cannot be mapped, or a block spans two files
    Request request;
  };
  struct Receive {
    explicit Receive(std::size_t bytes) : buffer(bytes) {}
    BlockBuffer buffer;
    MutableBytes block;  ///< in `buffer`, or in the sum itself where it is the first of a stripe
    Request request;
  };
  struct Sums {
    Sums(int parity, std::size_t bytes) {
      for (int i = 0; i < parity; ++i) buffers.emplace_back(bytes);
      for (int i = 1; i < parity; ++i) forwarded.emplace_back(bytes);
    }
    std::vector<BlockBuffer> buffers;
    std::vector<MutableBytes> views;  ///< of this row's length
    bool begun = false;               ///< the first block is, or is being, received
    std::vector<Request> forwards;
    std::vector<Receive> forwarded;  ///< what others forward to this member in this row
  };

  std::uint64_t shifts() const { return static_cast<std::uint64_t>(set_.size() - 1); }
  int shift_of(std::uint64_t step) const { return 1 + static_cast<int>(step % shifts()); }

  void note(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  void start_send(std::uint64_t step) {
    const int to = (me_ + shift_of(step)) % set_.size();
    Send& pending = sends_[step % sends_.size()];
    wait(set_, pending.request);
    const auto slot = layout_.slot_of(me_, layout_.position_of_parity(to, 0));
    if (!slot) return;
    const std::uint64_t index = layout_.data_index(step / shifts(), *slot);
    const std::size_t length = layout_.data_length(me_, index);
    if (length == 0) return;
    Result<Bytes> block = blocks_.data(index, pending.scratch.all());
    if (!block) {
      // The others need a block of this length to go on; the agreed error voids what comes of it.
      note(tl::unexpected(block.error()));
      block = pending.scratch.zeros(length);
    }
    record_.data_crcs[index] = crc32c(*block);
    pending.request = set_.isend(*block, to, data_tag);
  }

  int sender_of(std::uint64_t step) const {
    return (me_ - shift_of(step) + set_.size()) % set_.size();
  }

  void start_receive(std::uint64_t step) {
    const std::uint64_t row = step / shifts();
    Sums& sums = sums_[row % rows_ahead];
    if (step % shifts() == 0) start_row(row, sums);
    const int from = sender_of(step);
    Receive& pending = receives_[step % receives_ahead];
    const auto slot = layout_.slot_of(from, my_position_);
    const std::size_t length = slot ? layout_.data_length(from, layout_.data_index(row, *slot)) : 0;
    const bool in_place = !sums.begun && combination_.takes_first_as_is(slot.value_or(0));
    pending.block = in_place ? sums.views[0].first(length) : pending.buffer.first(length);
    if (length == 0) return;
    sums.begun = true;
    pending.request = set_.irecv(pending.block, from, data_tag);
  }

  void finish_receive(std::uint64_t step) {
    const std::vector<MutableBytes>& sums = sums_[step / shifts() % rows_ahead].views;
    Receive& pending = receives_[step % receives_ahead];
    wait(set_, pending.request);
    if (pending.block.empty()) return;
    const int slot = *layout_.slot_of(sender_of(step), my_position_);
    if (pending.block.data() == sums[0].data())
      combination_.begin(slot, pending.block, sums);
    else
      combination_.add(slot, pending.block, sums);
  }

  void start_row(std::uint64_t row, Sums& sums) {
    wait_all(set_, sums.forwards);
    sums.forwards.clear();
    sums.views.clear();
    sums.begun = false;
    for (BlockBuffer& buffer : sums.buffers)
      sums.views.push_back(buffer.first(layout_.stripe_length(row, my_position_)));
    for (int i = 1; i < layout_.parity(); ++i) {
      Receive& pending = sums.forwarded[static_cast<std::size_t>(i - 1)];
      const int position = layout_.position_of_parity(me_, i);
      pending.block = pending.buffer.first(layout_.stripe_length(row, position));
      if (!pending.block.empty())
        pending.request = set_.irecv(pending.block, layout_.owner(position, 0), parity_tag);
    }
  }

  /// Forwards all parity of the own stripe but the first, which it keeps. What others forward has a
  /// row's time to come.
  void finish_row(std::uint64_t row) {
    Sums& sums = sums_[row % rows_ahead];
    if (!sums.begun)  // past the end of all that have data in this stripe
      for (const MutableBytes view : sums.views) std::fill(view.begin(), view.end(), std::byte{0});
    for (int i = 1; i < layout_.parity(); ++i) {
      const Bytes sum = sums.views[static_cast<std::size_t>(i)];
      if (!sum.empty())
        sums.forwards.push_back(set_.isend(sum, layout_.owner(my_position_, i), parity_tag));
    }
    keep(layout_.parity_index(row, 0), sums.views[0]);
    if (row > 0) keep_forwarded(row - 1);
  }

  void keep_forwarded(std::uint64_t row) {
    std::vector<Receive>& forwarded = sums_[row % rows_ahead].forwarded;
    for (std::size_t i = 0; i < forwarded.size(); ++i) {
      wait(set_, forwarded[i].request);
      keep(layout_.parity_index(row, static_cast<int>(i) + 1), forwarded[i].block);
    }
  }

  void keep(std::uint64_t index, Bytes parity) {
    if (!copies_) record_.parity_crcs[index] = crc32c(parity);
    if (status_ && !parity.empty()) note(blocks_.write_parity(index, parity));
  }

  /// A copy has the checksums of its owner: so a byte that went wrong on the way shows as well.
  void share_copy_crcs() {
    std::vector<Request> sends;
    for (int i = 0; i < layout_.parity(); ++i)
      sends.push_back(set_.isend(std::as_bytes(std::span(record_.data_crcs)), layout_.owner(me_, i),
                                 copy_crcs_tag));
    for (int i = 0; i < layout_.parity(); ++i) {
      const int from = layout_.position_of_parity(me_, i);
      std::vector<std::uint32_t> crcs(layout_.data_blocks(from));
      recv(set_, std::as_writable_bytes(std::span(crcs)), from, copy_crcs_tag);
      for (std::uint64_t row = 0; row < crcs.size(); ++row)
        record_.parity_crcs[layout_.parity_index(row, i)] = crcs[row];
    }
    wait_all(set_, sends);
  }

  Communicator& set_;
  RankBlocks& blocks_;
  RankRecord& record_;
  const SetLayout layout_;
  const Combination combination_;
  const int me_;
  const int my_position_;  ///< of the stripe this member coordinates
  std::vector<Send> sends_;
  std::vector<Sums> sums_;  // before those who may receive into them
  std::vector<Receive> receives_;
  const bool copies_;  ///< of data, instead of sums
  Status status_;
};

}  // namespace

Status take_checksums(RankBlocks& blocks, RankRecord& record) {
  const SetLayout layout(record.encoding);
  BlockBuffer scratch(layout.geometry().widest());
  const std::uint64_t count = layout.data_blocks(0);
  record.data_crcs.clear();
  record.parity_crcs.clear();
  for (std::uint64_t index = 0; index < count; ++index) {
    CAIRN_ASSIGN(const Bytes block, blocks.data(index, scratch.all()));
    record.data_crcs.push_back(crc32c(block));
  }
  return {};
}

Status protect(Communicator& set, Files& files, const RankFolder& folder, RankRecord& record,
               std::uint64_t encode_bytes, const std::string& spare) {
  record.encoding.member_bytes.resize(static_cast<std::size_t>(set.size()));
  const std::uint64_t mine = record.data_bytes();
  set.allgather(bytes_of(mine), std::as_writable_bytes(std::span(record.encoding.member_bytes)));
  RankBlocks blocks(files, folder, record);
  if (set.size() == 1) return take_checksums(blocks, record);
  return StripeEncoder(set, blocks, record, encode_bytes).run(spare);
}

}  // namespace cairn
