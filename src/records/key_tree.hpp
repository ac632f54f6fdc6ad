// The trees in which SCR 3 keeps what it knows (docs/format/scr3.md): only read here, never
// written.
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

/// A key, and what is below it. A value is a key with nothing below it: {"SIZE", {{"100", {}}}}.
struct KeyTree {
  std::string key;
  std::vector<KeyTree> below;

  bool operator==(const KeyTree&) const = default;

  /// What is there by following the keys; nullptr if one is missing. The first of several.
  const KeyTree* find(std::initializer_list<std::string_view> path) const;
  /// The value of a key; empty if it has none.
  std::string value(std::string_view key) const;
  /// The same for a whole number in decimal, as long as it is one.
  std::optional<std::uint64_t> number(std::string_view key) const;
};

/// From the content of a file, which may go on behind the tree. The topmost key is empty. corrupt
/// for what is no such tree, ends too early, does not match its checksum, or is nested without
/// measure; newer_format for another version.
Result<KeyTree> decode_key_tree(Bytes content);

/// A whole number in decimal and nothing else.
std::optional<std::uint64_t> decimal(std::string_view text);

}  // namespace cairn
