#include "records/set_layout.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace cairn {
namespace {

constexpr std::size_t most_members = 256;
constexpr std::uint32_t largest_block = 1 << 24;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 60;

/// All copies of a member are on different members, none on the member itself.
bool copies_are_apart(std::uint64_t members, std::uint64_t copies, std::uint64_t hop) {
  std::set<std::uint64_t> places = {0};
  for (std::uint64_t copy = 1; copy <= copies; ++copy) places.insert(copy * hop % members);
  return places.size() == copies + 1;
}

bool scheme_fits(const Encoding& encoding) {
  const std::uint64_t members = encoding.members.size();
  if (encoding.scheme != Scheme::partner && encoding.hop != 1) return false;
  const bool some_left = encoding.failures >= 1 && encoding.failures < members;
  switch (encoding.scheme) {
    case Scheme::single:
      return members == 1 && encoding.failures == 0;
    case Scheme::xor_:
      return members >= 2 && encoding.failures == 1;
    case Scheme::rs:
      return some_left;
    case Scheme::partner:
      return some_left && encoding.hop < members &&
             copies_are_apart(members, encoding.failures, encoding.hop);
  }
  return false;
}

}  // namespace

std::uint32_t failures_asked(const CheckpointSettings& settings) {
  switch (settings.scheme) {
    case Scheme::single:
      return 0;
    case Scheme::xor_:
      return 1;
    case Scheme::rs:
      return static_cast<std::uint32_t>(settings.set_failures);
    case Scheme::partner:
      return static_cast<std::uint32_t>(settings.partner_copies);
  }
  return 0;
}

Encoding make_encoding(const CheckpointSettings& settings, std::vector<int> members,
                       std::uint32_t block_bytes) {
  Encoding encoding;
  encoding.block_bytes = block_bytes;
  encoding.members = std::move(members);
  const auto count = static_cast<std::uint32_t>(encoding.members.size());
  if (count < 2 || settings.scheme == Scheme::single) return encoding;
  encoding.scheme = settings.scheme;
  encoding.failures = std::min(failures_asked(settings), count - 1);
  if (settings.scheme != Scheme::partner) return encoding;
  const auto hop = static_cast<std::uint32_t>(settings.partner_hop) % count;
  if (copies_are_apart(count, encoding.failures, hop)) encoding.hop = hop;
  return encoding;
}

bool hop_fell_back(const CheckpointSettings& settings, const Encoding& encoding) {
  return encoding.scheme == Scheme::partner &&
         encoding.hop != static_cast<std::uint32_t>(settings.partner_hop) % encoding.members.size();
}

bool is_sound(const Encoding& encoding) {
  const std::size_t members = encoding.members.size();
  return members >= 1 && members <= most_members && encoding.hop >= 1 &&
         encoding.member_nodes.size() == members && encoding.member_bytes.size() == members &&
         scheme_fits(encoding) && encoding.block_bytes >= 1 &&
         encoding.block_bytes <= largest_block &&
         std::all_of(encoding.member_bytes.begin(), encoding.member_bytes.end(),
                     [](std::uint64_t bytes) { return bytes <= most_bytes; });
}

SetLayout::SetLayout(const Encoding& encoding)
    : scheme_(encoding.scheme),
      members_(static_cast<int>(encoding.members.size())),
      parity_(static_cast<int>(encoding.failures)),
      hop_(static_cast<int>(encoding.hop)),
      member_bytes_(encoding.member_bytes) {
  const bool striped = scheme_ == Scheme::xor_ || scheme_ == Scheme::rs;
  geometry_ = make_geometry(*std::max_element(member_bytes_.begin(), member_bytes_.end()),
                            striped ? static_cast<std::uint32_t>(members_ - parity_) : 1,
                            encoding.block_bytes);
}

int SetLayout::owner(int position, int i) const {
  return scheme_ == Scheme::partner ? wrap(position + (i + 1) * hop_) : wrap(position + i);
}

int SetLayout::contributor(int position, int slot) const {
  return scheme_ == Scheme::xor_ || scheme_ == Scheme::rs ? wrap(position + parity_ + slot)
                                                          : position;
}

std::optional<int> SetLayout::slot_of(int member, int position) const {
  if (scheme_ != Scheme::xor_ && scheme_ != Scheme::rs)
    return member == position ? std::optional<int>(0) : std::nullopt;
  const int slot = wrap(member - position - parity_);
  return slot < columns() ? std::optional<int>(slot) : std::nullopt;
}

std::optional<int> SetLayout::parity_of(int member, int position) const {
  for (int i = 0; i < parity_; ++i)
    if (owner(position, i) == member) return i;
  return std::nullopt;
}

int SetLayout::position_of_parity(int member, int i) const {
  return scheme_ == Scheme::partner ? wrap(member - (i + 1) * hop_) : wrap(member - i);
}

int SetLayout::position_of_data(int member, std::uint64_t index) const {
  if (scheme_ != Scheme::xor_ && scheme_ != Scheme::rs) return member;
  const int slot = columns() - 1 - static_cast<int>(index % geometry_.columns);
  return wrap(member - parity_ - slot);
}

std::uint32_t SetLayout::stripe_length(std::uint64_t row, int position) const {
  return scheme_ == Scheme::partner ? data_length(position, row) : geometry_.width(row);
}

std::uint64_t SetLayout::parity_column_bytes(int member, int i) const {
  return scheme_ == Scheme::partner ? data_bytes(position_of_parity(member, i))
                                    : geometry_.column_bytes();
}

std::uint64_t SetLayout::parity_bytes(int member) const {
  std::uint64_t bytes = 0;
  for (int i = 0; i < parity_; ++i) bytes += parity_column_bytes(member, i);
  return bytes;
}

std::uint64_t SetLayout::parity_offset(int member, std::uint64_t index) const {
  std::uint64_t offset = index / static_cast<std::uint64_t>(parity_) * geometry_.block_bytes;
  for (int i = 0; i < static_cast<int>(index % static_cast<std::uint64_t>(parity_)); ++i)
    offset += parity_column_bytes(member, i);
  return offset;
}

std::uint32_t SetLayout::parity_length(int member, std::uint64_t index) const {
  const auto parity = static_cast<std::uint64_t>(parity_);
  return stripe_length(index / parity,
                       position_of_parity(member, static_cast<int>(index % parity)));
}

bool survives(const SetLayout& layout, const std::vector<bool>& lost_members) {
  // A stripe misses at most as many blocks as there are lost members. This decides most cases at
  // once.
  if (std::count(lost_members.begin(), lost_members.end(), true) <= layout.parity()) return true;
  const auto lost = [&](int member) {
    return lost_members[static_cast<std::size_t>(member)] ? 1 : 0;
  };
  for (int position = 0; position < layout.members(); ++position) {
    int missing = 0;
    for (int slot = 0; slot < layout.columns(); ++slot)
      missing += lost(layout.contributor(position, slot));
    for (int i = 0; i < layout.parity(); ++i) missing += lost(layout.owner(position, i));
    if (missing > layout.parity()) return false;
  }
  return true;
}

}  // namespace cairn
