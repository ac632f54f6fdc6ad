#include "redundancy/repair.hpp"

#include <array>

#include "redundancy/damage.hpp"
#include "redundancy/rank_blocks.hpp"
#include "redundancy/rebuild.hpp"

namespace cairn {
namespace {

/// True if any member needs `mine`, so that all do the same.
bool any_member(Communicator& set, bool mine) {
  return allreduce(set, mine ? 1 : 0, Reduce::max) != 0;
}

Status settle(RankBlocks& blocks, const HealOptions& options) {
  if (options.copy_metadata) CAIRN_TRY(blocks.restore_attributes());
  return options.durable ? blocks.sync() : Status{};
}

/// Brings back the blocks of one set that are bad or missing.
class Healer {
 public:
  Healer(Communicator& set, Files& files, const RankFolder& folder, const RankRecord& record,
         const HealOptions& options)
      : set_(set),
        record_(record),
        options_(options),
        blocks_(files, folder, record),
        check_(record) {}

  Result<Healed> run() {
    presence_ = blocks_.presence();
    if (presence_ != RankBlocks::Presence::complete) {
      cleared_ = blocks_.clear_way();
      presence_ = blocks_.presence();
    }
    const bool complete = presence_ == RankBlocks::Presence::complete;
    const Seen seen = see(options_.read_everything || !complete);
    if (!seen.look) return Healed{};
    look_closer(seen);
    touched_ = !complete || !check_.erasures().none();
    if (any_member(set_, touched_)) CAIRN_TRY(repair());
    return Healed{true, rebuilt_.blocks, rebuilt_.bytes};
  }

  Examined examine() {
    presence_ = blocks_.presence();
    if (options_.read_everything)
      presence_ == RankBlocks::Presence::missing ? check_.all_missing()
                                                 : check_.read_unknown(blocks_);
    else if (const Seen seen = see(presence_ != RankBlocks::Presence::complete); seen.look)
      look_closer(seen);
    Examined found{presence_, check_.erasures(), {}};
    if (const auto damages = find_damages(set_, record_.encoding, found.bad); !damages)
      found.can_heal = tl::unexpected(damages.error());
    return found;
  }

 private:
  /// What holds for any member.
  struct Seen {
    bool look;  ///< it needs to look closer
    bool missing;
    bool partial;
  };

  Seen see(bool look) {
    std::array<std::int64_t, 3> any = {look, presence_ == RankBlocks::Presence::missing,
                                       presence_ == RankBlocks::Presence::partial};
    set_.allreduce(any, Reduce::max);
    return {any[0] != 0, any[1] != 0, any[2] != 0};
  }

  /// Where all that members miss is everything, all others' blocks will be read to rebuild it, and
  /// are checked then; to read them all before that would cost as much again.
  void look_closer(const Seen& seen) {
    if (!seen.missing || seen.partial)
      check_.read_unknown(blocks_);
    else if (presence_ == RankBlocks::Presence::missing)
      check_.all_missing();
  }

  /// What is found bad on the way is repaired in a next round; a third would find nothing new.
  Status repair() {
    for (int round = 0; round < 3; ++round) {
      const Erasures mine = check_.erasures();
      const auto damages = find_damages(set_, record_.encoding, mine);
      if (!damages) return agree(set_, give_up(why_not(damages.error())));
      touched_ = touched_ || !mine.none();
      CAIRN_TRY(agree(set_, touched_ ? make_room() : Status{}));
      CAIRN_TRY(agree(set_, rebuild_round(*damages)));
      check_.read_unknown(blocks_);
      if (!any_member(set_, !check_.erasures().none()))
        return agree(set_, touched_ ? settle(blocks_, options_) : Status{});
    }
    return agree(set_, check_.erasures().none()
                           ? Status{}
                           : Status(fail(Code::corrupt,
                                         "rebuilt blocks of rank {} do not match their checksums",
                                         record_.rank)));
  }

  /// What cannot be read now is not lost for that.
  Error why_not(const Error& lost) {
    const Status readable = agree(set_, check_.readable());
    if (readable) return lost;
    Error why = readable.error();
    why.text = fmt::format("{}; {}", lost.text, why.text);
    return why;
  }

  Status make_room() {
    CAIRN_TRY(cleared_);
    return blocks_.make_room();
  }

  Status rebuild_round(const std::vector<DamagedRows>& damages) {
    CAIRN_ASSIGN(const Rebuilt rebuilt,
                 rebuild(set_, blocks_, check_, record_, damages, options_.encode_bytes));
    rebuilt_.blocks += rebuilt.blocks;
    rebuilt_.bytes += rebuilt.bytes;
    return {};
  }

  /// What was begun where nothing was must not look like files that are whole.
  Status give_up(const Error& why) {
    if (touched_ && presence_ == RankBlocks::Presence::missing) CAIRN_TRY(blocks_.remove());
    return tl::unexpected(why);
  }

  Communicator& set_;
  const RankRecord& record_;
  const HealOptions& options_;
  RankBlocks blocks_;
  BlockCheck check_;
  RankBlocks::Presence presence_ = RankBlocks::Presence::complete;
  Status cleared_;
  bool touched_ = false;
  Rebuilt rebuilt_;
};

}  // namespace

Result<Healed> heal(Communicator& set, Files& files, const RankFolder& folder,
                    const RankRecord& record, const HealOptions& options) {
  return Healer(set, files, folder, record, options).run();
}

Examined examine(Communicator& set, Files& files, const RankFolder& folder,
                 const RankRecord& record, bool read_everything) {
  HealOptions options;
  options.read_everything = read_everything;
  return Healer(set, files, folder, record, options).examine();
}

}  // namespace cairn
