#include "records/key_tree.hpp"

#include <algorithm>
#include <charconv>

#include "base/checksum.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t magic = 0x951fc3f5;
constexpr std::uint16_t tree_file = 1;
constexpr std::uint16_t newest_version = 1;
constexpr std::uint32_t has_checksum = 1;
constexpr std::size_t header_bytes = 20;
constexpr std::size_t checksum_bytes = 4;
/// The least size of an element: an empty key with its end, and a count.
constexpr std::size_t least_element_bytes = 5;
/// The trees of SCR have about ten levels.
constexpr int most_levels = 64;

/// Reads big-endian numbers. Sets failed() if it cannot read.
class Reader {
 public:
  explicit Reader(Bytes in) : in_(in) {}

  std::uint64_t integer(std::size_t bytes) {
    if (bytes > in_.size()) return fail();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | std::to_integer<std::uint64_t>(in_[i]);
    in_ = in_.subspan(bytes);
    return value;
  }

  std::string text() {
    const auto end = std::find(in_.begin(), in_.end(), std::byte{0});
    if (end == in_.end()) return fail(), "";
    const auto length = static_cast<std::size_t>(end - in_.begin());
    std::string value(reinterpret_cast<const char*>(in_.data()), length);
    in_ = in_.subspan(length + 1);
    return value;
  }

  void tree(KeyTree& into, int levels_left) {
    const std::uint64_t count = integer(4);
    if (count > in_.size() / least_element_bytes || (count > 0 && levels_left == 0)) {
      fail();
      return;
    }
    for (std::uint64_t i = 0; i < count && !failed_; ++i) {
      KeyTree& one = into.below.emplace_back();
      one.key = text();
      tree(one, levels_left - 1);
    }
  }

  bool failed() const { return failed_; }
  bool at_end() const { return in_.empty(); }

 private:
  std::uint64_t fail() {
    failed_ = true;
    in_ = {};
    return 0;
  }

  Bytes in_;
  bool failed_ = false;
};

tl::unexpected<Error> corrupt(std::string_view why) {
  return fail(Code::corrupt, "it is not in SCR's format: {}", why);
}

}  // namespace

const KeyTree* KeyTree::find(std::initializer_list<std::string_view> path) const {
  const KeyTree* at = this;
  for (const std::string_view each : path) {
    const auto found = std::find_if(at->below.begin(), at->below.end(),
                                    [&](const KeyTree& one) { return one.key == each; });
    if (found == at->below.end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string KeyTree::value(std::string_view of) const {
  const KeyTree* found = find({of});
  return found == nullptr || found->below.empty() ? "" : found->below.front().key;
}

std::optional<std::uint64_t> KeyTree::number(std::string_view of) const {
  return decimal(value(of));
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

Result<KeyTree> decode_key_tree(Bytes content) {
  Reader header(content.first(std::min(content.size(), header_bytes)));
  if (header.integer(4) != magic || header.failed()) return corrupt("it does not begin as one");
  const std::uint64_t type = header.integer(2);
  const std::uint64_t version = header.integer(2);
  const std::uint64_t size = header.integer(8);
  const std::uint64_t flags = header.integer(4);
  if (header.failed() || type != tree_file) return corrupt("it is another kind of file");
  if (version != newest_version)
    return fail(Code::newer_format, "it has version {} of SCR's format, and only {} is known",
                version, newest_version);
  const std::size_t tail = (flags & has_checksum) != 0 ? checksum_bytes : 0;
  if (size > content.size() || size < header_bytes + tail) return corrupt("it is cut short");
  const Bytes checked = content.first(size - tail);
  if (tail != 0 && Reader(content.subspan(size - tail, tail)).integer(4) != crc32(checked))
    return corrupt("it does not match its checksum");
  Reader reader(checked.subspan(header_bytes));
  KeyTree tree;
  reader.tree(tree, most_levels);
  if (reader.failed() || !reader.at_end()) return corrupt("its parts do not fit together");
  return tree;
}

}  // namespace cairn
