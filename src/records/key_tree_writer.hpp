// Writes trees in the format of SCR, for tests and the fuzzer.
#pragma once

#include <string>

#include "base/checksum.hpp"
#include "records/key_tree.hpp"

namespace cairn {

class KeyTreeWriter {
 public:
  /// The content of a file. The topmost key is not written.
  static Blob file(const KeyTree& tree, bool with_checksum = true) {
    KeyTreeWriter body;
    body.tree(tree);
    KeyTreeWriter out;
    out.integer(0x951fc3f5, 4);
    out.integer(1, 2);  // a tree
    out.integer(1, 2);  // of version 1
    out.integer(20 + body.out_.size() + (with_checksum ? 4 : 0), 8);
    out.integer(with_checksum ? 1 : 0, 4);
    out.out_.insert(out.out_.end(), body.out_.begin(), body.out_.end());
    if (with_checksum) out.integer(crc32(out.out_), 4);
    return std::move(out.out_);
  }

 private:
  void integer(std::uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }

  void tree(const KeyTree& tree_of) {
    integer(tree_of.below.size(), 4);
    for (const KeyTree& each : tree_of.below) {
      for (const char c : each.key) out_.push_back(static_cast<std::byte>(c));
      out_.push_back(std::byte{0});
      tree(each);
    }
  }

  Blob out_;
};

/// {key: value}.
inline KeyTree key_value(const std::string& key, const std::string& value) {
  return {key, {{value, {}}}};
}

}  // namespace cairn
