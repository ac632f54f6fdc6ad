// Spans of raw bytes: the only currency between communicator, codec and files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace cairn {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;
using Blob = std::vector<std::byte>;

/// The bytes of one trivially copyable value.
template <class T>
requires std::is_trivially_copyable_v<T> Bytes bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

template <class T>
requires std::is_trivially_copyable_v<T> MutableBytes mutable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span<T, 1>(&value, 1));
}

}  // namespace cairn
