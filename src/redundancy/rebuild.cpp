#include "redundancy/rebuild.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "codec/erasure_code.hpp"
#include "comm/activity.hpp"
#include "redundancy/buffers.hpp"

namespace cairn {
namespace {

constexpr int part_tag = 103;
constexpr int rebuilt_tag = 104;
/// Few, so that a block is combined, or checked and written, while it is in the processor's cache.
constexpr std::size_t blocks_ahead = 2;
/// Stripes whose rebuilt blocks may be on their way.
constexpr std::size_t stripes_ahead = 2;

/// A damaged stripe, and what is to be done about it.
struct Stripe {
  std::uint64_t row;
  int position;
  const StripeRepair* repair;
  int coordinator;  ///< the member that combines it
};

/// One block of a stripe.
struct Part {
  Stripe stripe;
  int slot;
  std::size_t number;  ///< of the stripe's sources, or of its targets
};

/// What the three activities of a rank share. In each stripe, a member that has a block of it
/// collects what is left, combines that, and sends each lost block to the member that misses it.
/// They take turns, so the work for a lost member is spread evenly over the others; that member,
/// which has the most to write, combines nothing.
///
/// No deadlock: all members go through the stripes in one order, and of the first stripe that is
/// not finished every part can be sent, every part received and every result taken in, whatever
/// happens to later stripes.
class Work {
 public:
  Work(Communicator& its_set, RankBlocks& its_blocks, BlockCheck& its_check,
       const RankRecord& its_record, std::span<const DamagedRows> its_damages)
      : set(its_set),
        blocks(its_blocks),
        check(its_check),
        record(its_record),
        damages(its_damages),
        layout(its_record.encoding),
        code_(layout.columns(), layout.parity()) {}

  Stripe stripe(std::uint64_t row, const DamagedStripe& damage) {
    auto found = repairs_.find(damage.lost);
    if (found == repairs_.end())
      found = repairs_.emplace(damage.lost, code_.repair(damage.lost)).first;
    const std::vector<int>& sources = found->second.sources;
    return {row, damage.position, &found->second,
            member_at(layout, damage.position, sources[row % sources.size()])};
  }

  int member(const Part& part) const { return member_at(layout, part.stripe.position, part.slot); }
  bool is_mine(const Part& part) const { return member(part) == set.rank(); }
  bool is_combined_here(const Part& part) const { return part.stripe.coordinator == set.rank(); }
  std::size_t length(const Stripe& stripe) const {
    return layout.stripe_length(stripe.row, stripe.position);
  }
  std::size_t length(const Part& part) const {
    return kind_of(part) == BlockKind::data ? layout.data_length(member(part), index_of(part))
                                            : length(part.stripe);
  }

  /// This member's block of a stripe, perhaps in `scratch`; zeros if it is not good: the others
  /// need a block of this length to go on.
  Bytes own_block(const Part& part, BlockBuffer& scratch) {
    const std::uint64_t index = index_of(part);
    const Result<Bytes> block = kind_of(part) == BlockKind::data
                                    ? blocks.data(index, scratch.all())
                                    : blocks.parity(index, scratch.all());
    if (check.is_good(kind_of(part), index, block)) return *block;
    return scratch.zeros(length(part));
  }

  /// Writes a rebuilt block of this rank, if it is what the record says.
  void accept(const Part& part, Bytes block) {
    const std::uint64_t index = index_of(part);
    if (!check.compare(kind_of(part), index, block)) return;
    note(kind_of(part) == BlockKind::data ? blocks.write_data(index, block)
                                          : blocks.write_parity(index, block));
    ++rebuilt.blocks;
    rebuilt.bytes += block.size();
  }

  void note(Status outcome) {
    if (status && !outcome) status = std::move(outcome);
  }

  Communicator& set;
  RankBlocks& blocks;
  BlockCheck& check;
  const RankRecord& record;
  const std::span<const DamagedRows> damages;
  const SetLayout layout;
  Status status;  ///< the first error on this rank
  Rebuilt rebuilt;

 private:
  BlockKind kind_of(const Part& part) const {
    return part.slot < layout.columns() ? BlockKind::data : BlockKind::parity;
  }
  std::uint64_t index_of(const Part& part) const {
    return kind_of(part) == BlockKind::data
               ? layout.data_index(part.stripe.row, part.slot)
               : layout.parity_index(part.stripe.row, part.slot - layout.columns());
  }

  const ErasureCode code_;
  std::map<std::vector<int>, StripeRepair> repairs_;  ///< a lost member misses the same all along
};

/// Goes through the damaged stripes in order. They are worked out one by one: all of them would
/// take more memory the more a rank has lost.
class Stripes {
 public:
  explicit Stripes(Work& work) : work_(work) {}

  std::optional<Stripe> next() {
    if (rows_ == work_.damages.size()) return std::nullopt;
    const DamagedRows& rows = work_.damages[rows_];
    const Stripe stripe = work_.stripe(rows.begin + row_, rows.stripes[stripe_]);
    if (++stripe_ == rows.stripes.size()) {
      stripe_ = 0;
      ++row_;
    }
    if (rows.begin + row_ == rows.end) {
      row_ = 0;
      ++rows_;
    }
    return stripe;
  }

 private:
  Work& work_;
  std::size_t rows_ = 0;
  std::uint64_t row_ = 0;  ///< of these rows
  std::size_t stripe_ = 0;
};

/// Goes through the blocks of damaged stripes that an activity has to do with.
class Parts {
 public:
  using Slots = std::vector<int> StripeRepair::*;
  using Wanted = std::function<bool(const Part&)>;
  Parts(Work& work, Slots slots, Wanted wanted)
      : stripes_(work), slots_(slots), wanted_(std::move(wanted)), stripe_(stripes_.next()) {}

  std::optional<Part> next() {
    for (; stripe_; stripe_ = stripes_.next(), number_ = 0) {
      const std::vector<int>& slots = stripe_->repair->*slots_;
      while (number_ < slots.size()) {
        const Part part{*stripe_, slots[number_], number_};
        ++number_;
        if (wanted_(part)) return part;
      }
    }
    return std::nullopt;
  }

 private:
  Stripes stripes_;
  Slots slots_;
  Wanted wanted_;
  std::optional<Stripe> stripe_;
  std::size_t number_ = 0;
};

/// Blocks that come to this rank, in the order of their parts; a few are received ahead.
class Incoming {
 public:
  /// The member that a part comes from; none if it is here.
  using Sender = std::function<std::optional<int>(const Part&)>;
  Incoming(Work& work, Parts parts, int tag, Sender sender)
      : work_(work), parts_(std::move(parts)), tag_(tag), sender_(std::move(sender)) {
    while (receives_.size() < blocks_ahead) {
      const std::optional<Part> part = parts_.next();
      if (!part) break;
      start(receives_.emplace_back(work.layout.geometry().widest()), part);
    }
  }

  /// The next part, null after the last.
  const Part* part() const { return receives_.empty() || !first().part ? nullptr : &*first().part; }
  /// Of the next part.
  bool has_come() const { return !first().request || first().request->test(); }
  Bytes block() { return first().buffer.first(work_.length(*part())); }

  void pop() {
    start(first(), parts_.next());
    ++taken_;
  }

 private:
  struct Receive {
    explicit Receive(std::size_t bytes) : buffer(bytes) {}
    BlockBuffer buffer;  // outlives the request that points into it
    Request request;
    std::optional<Part> part;
  };

  Receive& first() { return receives_[taken_ % receives_.size()]; }
  const Receive& first() const { return receives_[taken_ % receives_.size()]; }

  void start(Receive& receive, const std::optional<Part>& part) {
    receive.request.reset();
    receive.part = part;
    const std::optional<int> sender = part ? sender_(*part) : std::nullopt;
    if (sender)
      receive.request = work_.set.irecv(receive.buffer.first(work_.length(*part)), *sender, tag_);
  }

  Work& work_;
  Parts parts_;
  int tag_;
  Sender sender_;
  std::vector<Receive> receives_;
  std::size_t taken_ = 0;
};

/// Sends the good blocks of this rank to those who combine them.
class Contributing final : public Activity {
 public:
  Contributing(Work& work, std::uint64_t encode_bytes)
      : work_(work),
        parts_(work, &StripeRepair::sources,
               [&work](const Part& part) {
                 return !work.is_combined_here(part) && work.is_mine(part) && work.length(part) > 0;
               }),
        part_(parts_.next()) {
    const std::uint64_t fitting = encode_bytes / 2 / work.record.encoding.block_bytes;
    const auto useful = static_cast<std::uint64_t>(2 * work.set.size());
    most_sends_ = std::clamp<std::uint64_t>(fitting, 2, useful);
  }

  Step advance() override {
    if (!part_) return drain();
    if (sends_.size() < most_sends_) sends_.emplace_back(work_.layout.geometry().widest());
    Send& pending = sends_[next_ % most_sends_];
    if (pending.request && !pending.request->test()) return Step::waits;
    const Bytes block = work_.own_block(*part_, pending.scratch);
    pending.request = work_.set.isend(block, part_->stripe.coordinator, part_tag);
    ++next_;
    part_ = parts_.next();
    return Step::moved;
  }

 private:
  struct Send {
    explicit Send(std::size_t bytes) : scratch(bytes) {}
    BlockBuffer scratch;  ///< used where the store cannot be mapped, or a block spans two files
    Request request;
  };

  Step drain() {
    std::erase_if(sends_, [](const Send& send) { return send.request->test(); });
    return sends_.empty() ? Step::done : Step::waits;
  }

  Work& work_;
  Parts parts_;
  std::optional<Part> part_;  ///< the next
  std::size_t next_ = 0;
  std::size_t most_sends_ = 0;
  std::vector<Send> sends_;
};

/// Combines the stripes that this rank coordinates, part by part as they come.
class Coordinating final : public Activity {
 public:
  explicit Coordinating(Work& work)
      : work_(work),
        scratch_(work.layout.geometry().widest()),
        incoming_(work,
                  Parts(work, &StripeRepair::sources,
                        [&work](const Part& part) { return work.is_combined_here(part); }),
                  part_tag, [&work](const Part& part) -> std::optional<int> {
                    if (work.is_mine(part) || work.length(part) == 0) return std::nullopt;
                    return work.member(part);
                  }) {
    if (incoming_.part() == nullptr) return;
    for (std::size_t i = 0; i < stripes_ahead; ++i)
      outputs_.emplace_back(work.layout.parity(), work.layout.geometry().widest());
  }

  Step advance() override {
    if (incoming_.part() == nullptr) return drain();
    const Part part = *incoming_.part();
    Outputs& output = outputs_[finished_ % stripes_ahead];
    if (part.number == 0 && !all_taken(output)) return Step::waits;
    if (!incoming_.has_come()) return Step::waits;
    if (part.number == 0) start_stripe(part.stripe, output);
    add_part(part, output);
    incoming_.pop();
    if (part.number + 1 == part.stripe.repair->sources.size()) finish_stripe(part.stripe, output);
    return Step::moved;
  }

 private:
  struct Outputs {
    Outputs(int count, std::size_t bytes) {
      for (int i = 0; i < count; ++i) buffers.emplace_back(bytes);
    }
    std::vector<BlockBuffer> buffers;  // outlive the requests that point into them
    std::vector<MutableBytes> views;   ///< one per lost block of this stripe
    bool begun = false;                ///< a part is in them
    std::vector<Request> sends;
  };

  static bool all_taken(Outputs& output) {
    std::erase_if(output.sends, [](const Request& send) { return send->test(); });
    return output.sends.empty();
  }

  void start_stripe(const Stripe& stripe, Outputs& output) {
    output.views.clear();
    for (std::size_t i = 0; i < stripe.repair->targets.size(); ++i)
      output.views.push_back(output.buffers[i].first(work_.length(stripe)));
    output.begun = false;
  }

  void add_part(const Part& part, Outputs& output) {
    if (work_.length(part) == 0) return;
    const Bytes block = work_.is_mine(part) ? work_.own_block(part, scratch_) : incoming_.block();
    const Combination& combination = part.stripe.repair->combination;
    if (output.begun)
      combination.add(static_cast<int>(part.number), block, output.views);
    else
      combination.begin(static_cast<int>(part.number), block, output.views);
    output.begun = true;
  }

  void finish_stripe(const Stripe& stripe, Outputs& output) {
    if (!output.begun)  // all that is left of the stripe is past the end of its members' data
      for (const MutableBytes view : output.views)
        std::fill(view.begin(), view.end(), std::byte{0});
    const std::vector<int>& targets = stripe.repair->targets;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const Part target{stripe, targets[i], i};
      const Bytes block = output.views[i].first(work_.length(target));
      output.sends.push_back(work_.set.isend(block, work_.member(target), rebuilt_tag));
    }
    ++finished_;
  }

  Step drain() {
    const bool all = std::all_of(outputs_.begin(), outputs_.end(), all_taken);
    return all ? Step::done : Step::waits;
  }

  Work& work_;
  BlockBuffer scratch_;
  Incoming incoming_;
  std::size_t finished_ = 0;  ///< stripes
  std::vector<Outputs> outputs_;
};

/// Takes in the lost blocks of this rank that others have rebuilt.
class Receiving final : public Activity {
 public:
  explicit Receiving(Work& work)
      : work_(work),
        incoming_(work,
                  Parts(work, &StripeRepair::targets,
                        [&work](const Part& part) { return work.is_mine(part); }),
                  rebuilt_tag,
                  [](const Part& part) { return std::optional(part.stripe.coordinator); }) {}

  Step advance() override {
    if (incoming_.part() == nullptr) return Step::done;
    if (!incoming_.has_come()) return Step::waits;
    work_.accept(*incoming_.part(), incoming_.block());
    incoming_.pop();
    return Step::moved;
  }

 private:
  Work& work_;
  Incoming incoming_;
};

}  // namespace

Result<Rebuilt> rebuild(Communicator& set, RankBlocks& blocks, BlockCheck& check,
                        const RankRecord& record, std::span<const DamagedRows> damages,
                        std::uint64_t encode_bytes) {
  Work work(set, blocks, check, record, damages);
  Contributing contributing(work, encode_bytes);
  Coordinating coordinating(work);
  Receiving receiving(work);
  carry_out(set, {&contributing, &coordinating, &receiving});
  if (!work.status) return tl::unexpected(work.status.error());
  return work.rebuilt;
}

}  // namespace cairn
