#include "records/halt_record.hpp"

#include <algorithm>

#include "base/local_time.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

// Flags of the fields that are present.
constexpr std::uint32_t has_checkpoints_left = 1U << 0;
constexpr std::uint32_t has_exit_before = 1U << 1;
constexpr std::uint32_t has_exit_after = 1U << 2;
constexpr std::uint32_t has_halt_seconds = 1U << 3;
constexpr std::uint32_t is_immediate = 1U << 4;
constexpr std::uint32_t all_flags = (1U << 5) - 1;

using Number = std::optional<std::int64_t>;

std::uint32_t flags_of(const HaltRecord& record) {
  return (record.checkpoints_left ? has_checkpoints_left : 0) |
         (record.exit_before_s ? has_exit_before : 0) | (record.exit_after_s ? has_exit_after : 0) |
         (record.halt_seconds ? has_halt_seconds : 0) | (record.immediate ? is_immediate : 0);
}

/// Reads a number; an absent one must be 0. False if it is not, or if the number is too large.
bool take(Decoder& in, bool there, std::int64_t largest, Number& number) {
  const std::int64_t value = in.i64();
  if (there) number = value;
  return value >= 0 && value <= (there ? largest : 0);
}

}  // namespace

/// Reasons are printed in lines of text.
bool is_halt_reason(std::string_view reason) {
  return reason.size() <= longest_halt_reason &&
         std::all_of(reason.begin(), reason.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool is_condition(std::string_view reason) {
  return reason == halt_reason::time_limit || reason == halt_reason::no_checkpoints_left ||
         reason == halt_reason::exit_before_time || reason == halt_reason::exit_after_time;
}

bool is_request(std::string_view reason) {
  return !reason.empty() && reason != halt_reason::finalize_called && !is_condition(reason);
}

Blob encode(const HaltRecord& record) {
  Encoder out;
  out.u32(flags_of(record));
  out.i64(record.checkpoints_left.value_or(0));
  out.i64(record.exit_before_s.value_or(0));
  out.i64(record.exit_after_s.value_or(0));
  out.i64(record.halt_seconds.value_or(0));
  out.text(record.reason);
  return seal(RecordType::halt, halt_record_version, out.take());
}

Result<HaltRecord> decode_halt_record(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::halt, halt_record_version));
  Decoder in(payload);
  HaltRecord record;
  const std::uint32_t flags = in.u32();
  const auto has = [flags](std::uint32_t flag) { return (flags & flag) != 0; };
  const bool numbers_are_sane =
      take(in, has(has_checkpoints_left), largest_halt_count, record.checkpoints_left) &&
      take(in, has(has_exit_before), latest_time_s, record.exit_before_s) &&
      take(in, has(has_exit_after), latest_time_s, record.exit_after_s) &&
      take(in, has(has_halt_seconds), largest_halt_count, record.halt_seconds);
  record.reason = in.text();
  record.immediate = has(is_immediate);
  if (in.failed() || !in.at_end() || (flags & ~all_flags) != 0 || !numbers_are_sane ||
      !is_halt_reason(record.reason) || (record.immediate && !is_request(record.reason)))
    return fail_as_senseless();
  return record;
}

}  // namespace cairn
