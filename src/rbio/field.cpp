#include "rbio/field.hpp"

#include <algorithm>
#include <array>

namespace cairn::rbio {
namespace {

struct TypeFacts {
  ElementType type;
  std::uint64_t bytes;
  std::string_view dtype;
};

constexpr std::array<TypeFacts, 12> types = {{
    {ElementType::int8, 1, "|i1"},
    {ElementType::int16, 2, "<i2"},
    {ElementType::int32, 4, "<i4"},
    {ElementType::int64, 8, "<i8"},
    {ElementType::uint8, 1, "|u1"},
    {ElementType::uint16, 2, "<u2"},
    {ElementType::uint32, 4, "<u4"},
    {ElementType::uint64, 8, "<u8"},
    {ElementType::float32, 4, "<f4"},
    {ElementType::float64, 8, "<f8"},
    {ElementType::complex64, 8, "<c8"},
    {ElementType::complex128, 16, "<c16"},
}};

const TypeFacts& facts_of(ElementType type) { return types.at(static_cast<std::size_t>(type) - 1); }

}  // namespace

std::optional<ElementType> element_type(std::uint32_t number) {
  if (number == 0 || number > types.size()) return std::nullopt;
  return static_cast<ElementType>(number);
}

std::uint64_t bytes_of_type(ElementType type) { return facts_of(type).bytes; }
std::string_view dtype_of(ElementType type) { return facts_of(type).dtype; }

std::optional<ElementType> type_of_dtype(std::string_view dtype) {
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const TypeFacts& facts) { return facts.dtype == dtype; });
  if (found == types.end()) return std::nullopt;
  return found->type;
}

Status check_shape(const FieldShape& shape) {
  const bool printable = std::all_of(shape.name.begin(), shape.name.end(),
                                     [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
  if (shape.name.empty() || shape.name.size() > longest_field_name || !printable) {
    std::string shown = shape.name.substr(0, longest_field_name);
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
    return fail(Code::bad_argument,
                "field name \"{}\" is not 1 to {} printable ASCII characters; choose another name",
                shown, longest_field_name);
  }
  if (shape.components == 0 || shape.components > most_components)
    return fail(Code::bad_argument, "field {} has {} components; give 1 to {}", shape.name,
                shape.components, most_components);
  return {};
}

std::vector<FieldShape> shapes_of(const std::vector<Field>& fields) {
  std::vector<FieldShape> shapes;
  shapes.reserve(fields.size());
  for (const Field& field : fields) shapes.push_back(field.shape);
  return shapes;
}

}  // namespace cairn::rbio
