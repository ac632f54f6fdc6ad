#include "records/set_layout.hpp"

#include <algorithm>
#include <set>

namespace cairn {
namespace {

constexpr std::size_t most_members = 256;
constexpr std::uint32_t largest_block = 1 << 24;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 60;

bool scheme_fits(const Encoding& encoding) {
  const std::uint64_t members = encoding.members.size();
  switch (encoding.scheme) {
    case Scheme::single: return members == 1 && encoding.failures == 0;
    case Scheme::xor_: return members >= 2 && encoding.failures == 1;
    case Scheme::rs: return encoding.failures >= 1 && encoding.failures < members;
    case Scheme::partner: break;
  }
  if (encoding.scheme != Scheme::partner || encoding.failures < 1 || encoding.failures >= members ||
      encoding.hop < 1 || encoding.hop >= members)
    return false;
  std::set<std::uint64_t> places = {0};  // the member itself and its copies
  for (std::uint64_t copy = 1; copy <= encoding.failures; ++copy) places.insert(copy * encoding.hop % members);
  return places.size() == encoding.failures + 1;
}

}  // namespace

bool is_sound(const Encoding& encoding) {
  const std::size_t members = encoding.members.size();
  return members >= 1 && members <= most_members && encoding.member_nodes.size() == members &&
         encoding.member_bytes.size() == members && scheme_fits(encoding) && encoding.block_bytes >= 1 &&
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
  return scheme_ == Scheme::xor_ || scheme_ == Scheme::rs ? wrap(position + parity_ + slot) : position;
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
  return scheme_ == Scheme::partner ? data_bytes(position_of_parity(member, i)) : geometry_.column_bytes();
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
  return stripe_length(index / parity, position_of_parity(member, static_cast<int>(index % parity)));
}

}  // namespace cairn
