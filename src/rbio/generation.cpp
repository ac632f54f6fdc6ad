#include "rbio/generation.hpp"

#include "records/wire.hpp"

namespace cairn::rbio {
namespace {

constexpr std::uint32_t generation_version = 1;

}  // namespace

Blob encode_generation(std::uint64_t generation) {
  Encoder out;
  out.u64(generation);
  return seal(RecordType::rbio_generation, generation_version, out.take());
}

Result<std::uint64_t> decode_generation(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload,
               open_only(content, RecordType::rbio_generation, generation_version));
  Decoder in(payload);
  const std::uint64_t generation = in.u64();
  if (in.failed() || !in.at_end()) return fail_as_senseless();
  return generation;
}

}  // namespace cairn::rbio
