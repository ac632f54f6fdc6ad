// What a program writes: fields of elements, each spread over the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn::rbio {

/// The numbers are those of rbio.h.
enum class ElementType : std::uint32_t {
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  uint8 = 5,
  uint16 = 6,
  uint32 = 7,
  uint64 = 8,
  float32 = 9,
  float64 = 10,
  complex64 = 11,   ///< two float32: real, imaginary
  complex128 = 12,  ///< two float64
};

/// Nothing for a number that is no type.
std::optional<ElementType> element_type(std::uint32_t number);
std::uint64_t bytes_of_type(ElementType type);
/// As NumPy writes it: "<f8".
std::string_view dtype_of(ElementType type);
std::optional<ElementType> type_of_dtype(std::string_view dtype);

/// What all ranks agree on. An element has `components` values of `type`.
struct FieldShape {
  std::string name;
  ElementType type = ElementType::float64;
  std::uint32_t components = 1;

  std::uint64_t element_bytes() const { return bytes_of_type(type) * components; }
  bool operator==(const FieldShape&) const = default;
};

/// bad_argument for a name or number of components that no file may have.
Status check_shape(const FieldShape& shape);

/// A field of this rank: `data` is `count` elements.
struct Field {
  FieldShape shape;
  std::byte* data = nullptr;
  std::uint64_t count = 0;

  std::uint64_t bytes() const { return count * shape.element_bytes(); }
  Bytes content() const { return {data, bytes()}; }
};

std::vector<FieldShape> shapes_of(const std::vector<Field>& fields);

constexpr std::size_t longest_field_name = 255;
constexpr std::uint32_t most_components = 1 << 20;
constexpr std::size_t most_fields = 4096;

}  // namespace cairn::rbio
