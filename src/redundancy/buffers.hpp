#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include "base/bytes.hpp"
#include "codec/xor.hpp"

namespace cairn {

/// A block-sized buffer, aligned for the codec. Its memory is not touched before it is used: to
/// clear what may never be used costs more than it seems, as the kernel clears each page first.
class BlockBuffer {
 public:
  explicit BlockBuffer(std::size_t bytes)
      : bytes_(bytes),
        memory_(
            static_cast<std::byte*>(::operator new (bytes, std::align_val_t{codec_alignment}))) {}

  MutableBytes all() { return {memory_.get(), bytes_}; }
  MutableBytes first(std::size_t length) { return {memory_.get(), length}; }
  Bytes zeros(std::size_t length) {
    std::fill_n(memory_.get(), length, std::byte{0});
    return first(length);
  }

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
