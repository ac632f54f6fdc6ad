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
  /// So much will come, about.
  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  Blob take() { return std::move(out_); }

 private:
  template <std::size_t width>
  void integer(std::uint64_t value);
  Blob out_;
};

/// Reads what an Encoder wrote. Reading past the end, or a length that does not fit, sets failed()
/// and gives zeros and empty strings from then on; check once at the end.
class Decoder {
 public:
  explicit Decoder(Bytes in) : in_(in) {}
  std::uint32_t u32();
  std::uint64_t u64();
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
  std::string text();
  /// A u32 that is 0 or 1; anything else fails.
  bool boolean();
  /// A count of elements that take at least `element_bytes` each: fails where so many cannot
  /// follow, so that a bad count never leads to a huge allocation.
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
  rbio_done = 10
};

/// Header with magic, type, version, length and checksums, then the payload.
Blob seal(RecordType type, std::uint32_t version, Bytes payload);

struct Envelope {
  RecordType type{};
  std::uint32_t version = 0;
  Bytes payload;  ///< points into the input
  Bytes whole;    ///< header and payload, as seal() made them
};

/// The payload of a file that holds one record, of this type. newer_format for a later version than
/// `newest`; corrupt for anything else. The error says what is wrong with the file, not its name.
Result<Bytes> open_only(Bytes content, RecordType type, std::uint32_t newest);

/// For a payload that is intact, and whose fields do not fit together.
tl::unexpected<Error> fail_as_senseless();

/// All intact envelopes in `content`, in order. Damaged ones are passed over: the search goes on at
/// the next header that is whole.
std::vector<Envelope> find_envelopes(Bytes content);

}  // namespace cairn
