#pragma once

#include <memory>
#include <new>

#include "base/bytes.hpp"
#include "codec/xor.hpp"

namespace cairn {

/// A block-sized buffer, aligned for the codec.
class BlockBuffer {
 public:
  explicit BlockBuffer(std::size_t bytes)
      : bytes_(bytes),
        memory_(
            static_cast<std::byte*>(::operator new (bytes, std::align_val_t{codec_alignment}))) {}

  MutableBytes all() { return {memory_.get(), bytes_}; }
  MutableBytes first(std::size_t length) { return {memory_.get(), length}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{codec_alignment});
    }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace cairn
