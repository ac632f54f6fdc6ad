#include "codec/xor.hpp"

#include <isa-l/raid.h>

#include <array>
#include <cassert>
#include <cstdint>

#include "base/vector_registers.hpp"

namespace cairn {
namespace {

constexpr std::uintptr_t isal_alignment = 32;

bool aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % isal_alignment == 0;
}

}  // namespace

void xor_into_reference(MutableBytes target, Bytes source) {
  assert(source.size() <= target.size());
  for (std::size_t i = 0; i < source.size(); ++i) target[i] ^= source[i];
}

void xor_into(MutableBytes target, Bytes source) {
  assert(source.size() <= target.size());
  // ISA-L works on whole vectors of 32 aligned bytes. A loop, which the compiler vectorises,
  // handles the rest.
  const std::size_t whole =
      aligned(target.data()) && aligned(source.data()) ? source.size() / 32 * 32 : 0;
  if (whole > 0) {
    std::array<void*, 3> vectors = {target.data(), const_cast<std::byte*>(source.data()),
                                    target.data()};
    const int failed = xor_gen(3, static_cast<int>(whole), vectors.data());
    clear_vector_registers();
    if (failed != 0) {
      xor_into_reference(target, source);
      return;
    }
  }
  xor_into_reference(target.subspan(whole), source.subspan(whole));
}

}  // namespace cairn
