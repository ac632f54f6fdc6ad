// Which blocks of a redundancy set protect each other, and where they are stored.
//
// In every row, each position p (0 to members-1) is one stripe: one data block on each of `columns`
// members, and `parity` blocks on others.
//
//   XOR, RS(k):  parity i of position p is on member p+i, for i < k; the n-k members after these
//                each have one data block in it. XOR is k = 1.
//   PARTNER(k):  position p has the one data block of member p; copy i is on member p + (i+1)*hop.
//   SINGLE:      one member, no parity.
//
// All modulo the number of members. A member thus has `columns` data blocks and `parity` parity
// blocks in each row, and keeps no parity of its own data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "records/geometry.hpp"

namespace cairn {

/// How a rank's data are protected.
struct Encoding {
  std::uint64_t generation = 1;  ///< the largest committed one is valid; later ones are times
  Scheme scheme = Scheme::single;
  std::uint32_t failures = 0;  ///< parity blocks of a stripe: how many members may be lost
  std::uint32_t hop = 1;       ///< PARTNER: how far away the copies are
  std::uint32_t block_bytes = 256 << 10;
  std::vector<int> members;                 ///< ranks of the set in ring order
  std::vector<std::string> member_nodes;    ///< where they ran when it was encoded
  std::vector<std::uint64_t> member_bytes;  ///< data bytes of each
};

/// How many lost members of a set the checkpoint descriptor requires to survive.
std::uint32_t failures_asked(const CheckpointSettings& settings);

/// The encoding of a set of `members` under a checkpoint descriptor. A set that is too small for
/// the required number survives as many losses as it can: RS and PARTNER at most members-1; a
/// single rank is SINGLE. If the hop would place a copy on its own member, the hop becomes 1.
Encoding make_encoding(const CheckpointSettings& settings, std::vector<int> members,
                       std::uint32_t block_bytes);

/// True if make_encoding() could not use the configured hop.
bool hop_fell_back(const CheckpointSettings& settings, const Encoding& encoding);

/// True if the values are possible for an encoding. A decoder must check this.
bool is_sound(const Encoding& encoding);

/// Pure arithmetic on a sound encoding. Members are identified by their index in the set.
class SetLayout {
 public:
  explicit SetLayout(const Encoding& encoding);

  int members() const { return members_; }
  int columns() const { return static_cast<int>(geometry_.columns); }
  int parity() const { return parity_; }
  const Geometry& geometry() const { return geometry_; }
  std::uint64_t rows() const { return geometry_.rows(); }

  // --- stripes ---

  /// The member that keeps parity `i` of a position.
  int owner(int position, int i) const;
  /// The member that has data slot `slot` (0 to columns-1) of a position.
  int contributor(int position, int slot) const;
  /// The inverse functions; nothing if the member has no such block in the position.
  std::optional<int> slot_of(int member, int position) const;
  std::optional<int> parity_of(int member, int position) const;
  /// The position whose parity `i` a member keeps, and the position of its data block `index`.
  int position_of_parity(int member, int i) const;
  int position_of_data(int member, std::uint64_t index) const;

  /// Number of the contributor's data block in data slot `slot` of a stripe.
  std::uint64_t data_index(std::uint64_t row, int slot) const {
    return row * geometry_.columns + static_cast<std::uint64_t>(columns() - 1 - slot);
  }
  std::uint64_t parity_index(std::uint64_t row, int i) const {
    return row * static_cast<std::uint64_t>(parity_) + static_cast<std::uint64_t>(i);
  }

  // --- blocks ---

  std::uint64_t data_bytes(int member) const {
    return member_bytes_[static_cast<std::size_t>(member)];
  }
  std::uint64_t data_blocks(int member) const { return geometry_.data_blocks(data_bytes(member)); }
  std::uint32_t data_length(int member, std::uint64_t index) const {
    return geometry_.data_length(index, data_bytes(member));
  }
  std::uint64_t parity_blocks() const { return rows() * static_cast<std::uint64_t>(parity_); }
  /// Length of the parity blocks of a stripe, and of the buffers to compute them.
  std::uint32_t stripe_length(std::uint64_t row, int position) const;

  /// The parity file of a member: its parity columns one after the other.
  std::uint64_t parity_bytes(int member) const;
  std::uint64_t parity_offset(int member, std::uint64_t index) const;
  std::uint32_t parity_length(int member, std::uint64_t index) const;

 private:
  int wrap(int index) const { return ((index % members_) + members_) % members_; }
  std::uint64_t parity_column_bytes(int member, int i) const;

  Scheme scheme_;
  int members_;
  int parity_;
  int hop_;
  std::vector<std::uint64_t> member_bytes_;
  Geometry geometry_;
};

/// True if the remaining members of a set can rebuild the lost ones: no stripe misses more blocks
/// than it has parity. `lost_members` has an entry per member. A set without parity survives no
/// loss.
bool survives(const SetLayout& layout, const std::vector<bool>& lost_members);

}  // namespace cairn
