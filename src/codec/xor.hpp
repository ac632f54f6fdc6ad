// The XOR code: parity is the sum of all blocks; any one block is the sum of the others.
#pragma once

#include "base/bytes.hpp"

namespace cairn {

/// The alignment that ISA-L prefers; other buffers are slower.
inline constexpr std::size_t codec_alignment = 64;

/// target[i] ^= source[i] for all of `source`, which may be shorter than `target`: a short block
/// counts as padded with zeros. Uses ISA-L.
void xor_into(MutableBytes target, Bytes source);

/// The same by a byte loop: the reference for tests.
void xor_into_reference(MutableBytes target, Bytes source);

}  // namespace cairn
