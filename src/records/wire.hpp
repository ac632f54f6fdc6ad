// Little-endian encoding, and the envelope around every record (docs/format/envelope.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

class Encoder {
 public:
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  /// Length, then the bytes.
  void text(std::string_view value);
  /// A hint: about the size of the result.
  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  Blob take() { return std::move(out_); }

 private:
  template <std::size_t width>
  void integer(std::uint64_t value);
  Blob out_;
};

/// Reads what an Encoder wrote. A read behind the end, or an impossible length, sets failed(); from
/// then on all reads return zeros and empty strings. Check failed() once at the end.
class Decoder {
 public:
  explicit Decoder(Bytes in) : in_(in) {}
  std::uint32_t u32();
  std::uint64_t u64();
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
  std::string text();
  /// A u32 that is 0 or 1; anything else fails.
  bool boolean();
  /// A count of elements of at least `element_bytes` each. Fails if the remaining bytes cannot
  /// contain so many, so that a bad count never causes a huge allocation.
  std::uint64_t count(std::size_t element_bytes);
  bool failed() const { return failed_; }
  bool at_end() const { return in_.empty(); }

 private:
  template <std::size_t width>
  std::uint64_t integer();
  Bytes in_;
  bool failed_ = false;
};

enum class RecordType : std::uint32_t {
  rank = 1,
  dataset = 2,
  owner = 3,
  halt = 4,
  index = 5,
  current = 6,
  app_settings = 7,
  prefix_id = 8,
  last_run = 9,
  rbio_done = 10,
  rbio_generation = 11
};

/// Header with magic, type, version, length and checksums, then the payload.
Blob seal(RecordType type, std::uint32_t version, Bytes payload);

struct Envelope {
  RecordType type{};
  std::uint32_t version = 0;
  Bytes payload;  ///< points into the input
  Bytes whole;    ///< header and payload, as seal() made them
};

/// The payload of a file with one record of this type. Errors: newer_format for a later version
/// than `newest`; corrupt for anything else. The text of the error does not contain the name of the
/// file.
Result<Bytes> open_only(Bytes content, RecordType type, std::uint32_t newest);

/// The error for an intact payload with contradictory fields.
tl::unexpected<Error> fail_as_senseless();

/// All intact envelopes in `content`, in order. Skips damaged ones: the search goes on at the next
/// intact header.
std::vector<Envelope> find_envelopes(Bytes content);

}  // namespace cairn
