#include "rbio/done_marker.hpp"

#include "records/wire.hpp"

namespace cairn::rbio {
namespace {

constexpr std::uint32_t marker_version = 1;
constexpr std::uint32_t most_writers = 1U << 30;

}  // namespace

Blob encode(const DoneMarker& marker) {
  Encoder out;
  out.u32(marker.writers);
  return seal(RecordType::rbio_done, marker_version, out.take());
}

Result<DoneMarker> decode_done_marker(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::rbio_done, marker_version));
  Decoder in(payload);
  const DoneMarker marker{in.u32()};
  if (in.failed() || !in.at_end() || marker.writers == 0 || marker.writers > most_writers)
    return fail_as_senseless();
  return marker;
}

}  // namespace cairn::rbio
