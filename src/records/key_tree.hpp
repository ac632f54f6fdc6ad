// The trees in the files of SCR 3 (docs/format/scr3.md). Cairn reads them, and does not write them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// A key and its subtrees. A value is a key without subtrees: {"SIZE", {{"100", {}}}}.
struct KeyTree {
  std::string key;
  std::vector<KeyTree> below;

  bool operator==(const KeyTree&) const = default;

  /// The subtree at the end of a path of keys; nullptr if one is missing. Takes the first of equal
  /// keys.
  const KeyTree* find(std::initializer_list<std::string_view> path) const;
  /// The value of a key, or "".
  std::string value(std::string_view key) const;
  /// The value of a key as a whole decimal number, or nothing.
  std::optional<std::uint64_t> number(std::string_view key) const;
};

/// From the content of a file, which may have more bytes behind the tree. The topmost key is empty.
/// Errors: corrupt if it is no such tree, is truncated, does not match its checksum, or is nested
/// too deeply; newer_format for another version.
Result<KeyTree> decode_key_tree(Bytes content);

/// The text as a whole decimal number; nothing for any other text.
std::optional<std::uint64_t> decimal(std::string_view text);

}  // namespace cairn
