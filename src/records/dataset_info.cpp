#include "records/dataset_info.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace cairn {

std::string text_of(const Uuid& uuid) {
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(uuid.time_us),
                     static_cast<std::uint64_t>(uuid.chance));
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t half = 0; half < 2; ++half) {
    const char* from = text.data() + 16 * half;
    const auto [end, error] = std::from_chars(from, from + 16, halves[half], 16);
    if (error != std::errc() || end != from + 16) return std::nullopt;
  }
  return Uuid{static_cast<std::int64_t>(halves[0]), static_cast<std::int64_t>(halves[1])};
}

void put(Encoder& out, const Uuid& uuid) {
  out.i64(uuid.time_us);
  out.i64(uuid.chance);
}

Uuid get_uuid(Decoder& in) {
  Uuid uuid;
  uuid.time_us = in.i64();
  uuid.chance = in.i64();
  return uuid;
}

void put(Encoder& out, const DatasetInfo& dataset) {
  put(out, dataset.uuid);
  out.u64(dataset.number);
  out.u64(dataset.checkpoint);
  out.u32(dataset.flags);
  out.u32(dataset.ranks);
  out.text(dataset.name);
}

DatasetInfo get_dataset(Decoder& in) {
  DatasetInfo dataset;
  dataset.uuid = get_uuid(in);
  dataset.number = in.u64();
  dataset.checkpoint = in.u64();
  dataset.flags = in.u32();
  dataset.ranks = in.u32();
  dataset.name = in.text();
  return dataset;
}

}  // namespace cairn
