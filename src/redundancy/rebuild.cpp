#include "redundancy/rebuild.hpp"

#include <algorithm>
#include <map>

#include "codec/erasure_code.hpp"
#include "comm/activity.hpp"
#include "redundancy/buffers.hpp"

namespace cairn {
namespace {

constexpr int part_tag = 103;
constexpr int rebuilt_tag = 104;
/// Few, so that a block is combined, or checked and written, while it is in the processor's cache.
constexpr std::size_t receives_ahead = 2;
/// Stripes whose rebuilt blocks may be on their way.
constexpr std::size_t stripes_ahead = 2;

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
       const RankRecord& its_record, std::span<const Damage> its_damages)
      : set(its_set),
        blocks(its_blocks),
        check(its_check),
        record(its_record),
        damages(its_damages),
        layout(its_record.encoding),
        code_(layout.columns(), layout.parity()) {}

  const StripeRepair& plan(const Damage& damage) {
    auto found = plans_.find(damage.lost);
    if (found == plans_.end()) found = plans_.emplace(damage.lost, code_.repair(damage.lost)).first;
    return found->second;
  }

  int coordinator(const Damage& damage) {
    const std::vector<int>& sources = plan(damage).sources;
    return member_at(layout, damage.position, sources[damage.row % sources.size()]);
  }
  bool is_mine(const Damage& damage, int slot) const {
    return member_at(layout, damage.position, slot) == set.rank();
  }
  std::size_t length_at(const Damage& damage, int slot) const {
    if (slot >= layout.columns()) return layout.stripe_length(damage.row, damage.position);
    return layout.data_length(layout.contributor(damage.position, slot),
                              layout.data_index(damage.row, slot));
  }

  /// This member's block of a stripe, perhaps in `scratch`; zeros if it is not good: the others
  /// need a block of this length to go on.
  Bytes own_block(const Damage& damage, int slot, BlockBuffer& scratch) {
    const std::uint64_t index = index_of(damage, slot);
    const Result<Bytes> block = kind_of(slot) == BlockKind::data
                                    ? blocks.data(index, scratch.all())
                                    : blocks.parity(index, scratch.all());
    if (check.is_good(kind_of(slot), index, block)) return *block;
    return scratch.zeros(length_at(damage, slot));
  }

  /// Writes a rebuilt block of this rank, if it is what the record says.
  void accept(const Damage& damage, int slot, Bytes block) {
    const std::uint64_t index = index_of(damage, slot);
    if (!check.compare(kind_of(slot), index, block)) return;
    note(kind_of(slot) == BlockKind::data ? blocks.write_data(index, block)
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
  const std::span<const Damage> damages;
  const SetLayout layout;
  Status status;  ///< the first error on this rank
  Rebuilt rebuilt;

 private:
  BlockKind kind_of(int slot) const {
    return slot < layout.columns() ? BlockKind::data : BlockKind::parity;
  }
  std::uint64_t index_of(const Damage& damage, int slot) const {
    return kind_of(slot) == BlockKind::data
               ? layout.data_index(damage.row, slot)
               : layout.parity_index(damage.row, slot - layout.columns());
  }

  const ErasureCode code_;
  std::map<std::vector<int>, StripeRepair> plans_;  ///< a lost member misses the same all along
};

/// One block of a stripe.
struct Part {
  const Damage* damage;
  int slot;
};

/// Sends the good blocks of this rank to those who combine them.
class Contributing final : public Activity {
 public:
  Contributing(Work& work, std::uint64_t encode_bytes) : work_(work) {
    for (const Damage& damage : work.damages) {
      if (work.coordinator(damage) == work.set.rank()) continue;
      for (const int slot : work.plan(damage).sources)
        if (work.is_mine(damage, slot) && work.length_at(damage, slot) > 0)
          parts_.push_back({&damage, slot});
    }
    const std::uint64_t fitting = encode_bytes / 2 / work.record.encoding.block_bytes;
    const auto useful = static_cast<std::uint64_t>(2 * work.set.size());
    const std::uint64_t sends = std::min<std::uint64_t>(
        std::clamp<std::uint64_t>(fitting, 2, useful), std::max<std::size_t>(parts_.size(), 1));
    for (std::uint64_t i = 0; i < sends; ++i) sends_.emplace_back(work.layout.geometry().widest());
  }

  Step advance() override {
    Send& pending = sends_[next_ % sends_.size()];
    if (pending.request && !pending.request->test()) return Step::waits;
    pending.request.reset();
    if (next_ < parts_.size()) {
      const Part& part = parts_[next_];
      const Bytes block = work_.own_block(*part.damage, part.slot, pending.scratch);
      pending.request = work_.set.isend(block, work_.coordinator(*part.damage), part_tag);
    }
    // Past the last part, the sends under way are waited for one by one.
    return ++next_ < parts_.size() + sends_.size() ? Step::moved : Step::done;
  }

 private:
  struct Send {
    explicit Send(std::size_t bytes) : scratch(bytes) {}
    BlockBuffer scratch;  ///< used where the store cannot be mapped, or a block spans two files
    Request request;
  };

  Work& work_;
  std::vector<Part> parts_;
  std::size_t next_ = 0;
  std::vector<Send> sends_;
};

/// Combines the stripes that this rank coordinates, part by part as they come.
class Coordinating final : public Activity {
 public:
  explicit Coordinating(Work& work) : work_(work), scratch_(work.layout.geometry().widest()) {
    const std::size_t block = work.layout.geometry().widest();
    for (const Damage& damage : work.damages) {
      if (work.coordinator(damage) != work.set.rank()) continue;
      stripes_.push_back(&damage);
      for (const int slot : work.plan(damage).sources) parts_.push_back({&damage, slot});
    }
    if (stripes_.empty()) return;
    for (std::size_t i = 0; i < receives_ahead; ++i) receives_.emplace_back(block);
    for (std::size_t i = 0; i < stripes_ahead; ++i)
      outputs_.emplace_back(work.layout.parity(), block);
    for (; posted_ < std::min(parts_.size(), receives_ahead); ++posted_) start_receive(posted_);
  }

  Step advance() override {
    if (stripe_ == stripes_.size()) return drain();
    Outputs& output = outputs_[stripe_ % stripes_ahead];
    if (input_ == 0 && !all_taken(output)) return Step::waits;
    Receive& pending = receives_[part_ % receives_ahead];
    if (pending.request && !pending.request->test()) return Step::waits;
    pending.request.reset();
    if (input_ == 0) start_stripe(output);
    add_part(pending, output);
    ++part_;
    if (posted_ < parts_.size()) start_receive(posted_++);
    if (++input_ == work_.plan(*stripes_[stripe_]).sources.size()) finish_stripe(output);
    return Step::moved;
  }

 private:
  // In both, the buffers outlive the requests that point into them.
  struct Receive {
    explicit Receive(std::size_t bytes) : buffer(bytes) {}
    BlockBuffer buffer;
    Request request;
  };
  struct Outputs {
    Outputs(int count, std::size_t bytes) {
      for (int i = 0; i < count; ++i) buffers.emplace_back(bytes);
    }
    std::vector<BlockBuffer> buffers;
    std::vector<MutableBytes> views;  ///< one per lost block of this stripe
    bool begun = false;               ///< a part is in them
    std::vector<Request> sends;
  };

  static bool all_taken(Outputs& output) {
    std::erase_if(output.sends, [](const Request& send) { return send->test(); });
    return output.sends.empty();
  }

  void start_receive(std::size_t number) {
    const auto& [damage, slot] = parts_[number];
    const std::size_t length = work_.length_at(*damage, slot);
    if (length == 0 || work_.is_mine(*damage, slot)) return;
    Receive& pending = receives_[number % receives_ahead];
    pending.request = work_.set.irecv(pending.buffer.first(length),
                                      member_at(work_.layout, damage->position, slot), part_tag);
  }

  void start_stripe(Outputs& output) {
    const Damage& damage = *stripes_[stripe_];
    const std::size_t length = work_.layout.stripe_length(damage.row, damage.position);
    output.views.clear();
    for (std::size_t i = 0; i < damage.lost.size(); ++i)
      output.views.push_back(output.buffers[i].first(length));
    output.begun = false;
  }

  void add_part(Receive& pending, Outputs& output) {
    const auto& [damage, slot] = parts_[part_];
    const std::size_t length = work_.length_at(*damage, slot);
    if (length == 0) return;
    const Bytes block = work_.is_mine(*damage, slot) ? work_.own_block(*damage, slot, scratch_)
                                                     : Bytes(pending.buffer.first(length));
    const Combination& combination = work_.plan(*damage).combination;
    if (output.begun)
      combination.add(static_cast<int>(input_), block, output.views);
    else
      combination.begin(static_cast<int>(input_), block, output.views);
    output.begun = true;
  }

  void finish_stripe(Outputs& output) {
    const Damage& damage = *stripes_[stripe_];
    const std::vector<int>& targets = work_.plan(damage).targets;
    if (!output.begun)  // all that is left of the stripe is past the end of its members' data
      for (const MutableBytes view : output.views)
        std::fill(view.begin(), view.end(), std::byte{0});
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const Bytes block = output.views[i].first(work_.length_at(damage, targets[i]));
      output.sends.push_back(work_.set.isend(
          block, member_at(work_.layout, damage.position, targets[i]), rebuilt_tag));
    }
    ++stripe_;
    input_ = 0;
  }

  Step drain() {
    const bool all = std::all_of(outputs_.begin(), outputs_.end(), all_taken);
    return all ? Step::done : Step::waits;
  }

  Work& work_;
  std::vector<const Damage*> stripes_;
  std::vector<Part> parts_;  ///< of all stripes, in the order they are added
  std::size_t stripe_ = 0;
  std::size_t input_ = 0;  ///< of the stripe
  std::size_t part_ = 0;
  std::size_t posted_ = 0;
  BlockBuffer scratch_;
  std::vector<Receive> receives_;
  std::vector<Outputs> outputs_;
};

/// Takes in the lost blocks of this rank that others have rebuilt.
class Receiving final : public Activity {
 public:
  explicit Receiving(Work& work) : work_(work) {
    for (const Damage& damage : work.damages)
      for (const int slot : work.plan(damage).targets)
        if (work.is_mine(damage, slot)) parts_.push_back({&damage, slot});
    for (std::size_t i = 0; i < std::min(parts_.size(), receives_ahead); ++i) {
      receives_.emplace_back(work.layout.geometry().widest());
      start_receive(i);
    }
  }

  Step advance() override {
    if (next_ == parts_.size()) return Step::done;
    Receive& pending = receives_[next_ % receives_.size()];
    if (!pending.request->test()) return Step::waits;
    const auto& [damage, slot] = parts_[next_];
    work_.accept(*damage, slot, pending.buffer.first(work_.length_at(*damage, slot)));
    if (next_ + receives_.size() < parts_.size()) start_receive(next_ + receives_.size());
    ++next_;
    return Step::moved;
  }

 private:
  struct Receive {
    explicit Receive(std::size_t bytes) : buffer(bytes) {}
    BlockBuffer buffer;
    Request request;
  };

  void start_receive(std::size_t number) {
    const auto& [damage, slot] = parts_[number];
    Receive& pending = receives_[number % receives_.size()];
    pending.request = work_.set.irecv(pending.buffer.first(work_.length_at(*damage, slot)),
                                      work_.coordinator(*damage), rebuilt_tag);
  }

  Work& work_;
  std::vector<Part> parts_;
  std::size_t next_ = 0;
  std::vector<Receive> receives_;
};

}  // namespace

Result<Rebuilt> rebuild(Communicator& set, RankBlocks& blocks, BlockCheck& check,
                        const RankRecord& record, std::span<const Damage> damages,
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
