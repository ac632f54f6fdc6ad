// When and why a job is to stop: the content of the halt file (docs/format/halt.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// All that is empty asks for nothing. Times are seconds since 1970.
struct HaltRecord {
  std::optional<std::int64_t> checkpoints_left;  ///< to be made before the job stops
  std::optional<std::int64_t> exit_before_s;     ///< the job is to be over by then
  std::optional<std::int64_t> exit_after_s;      ///< it stops once this has come
  std::optional<std::int64_t> halt_seconds;      ///< in place of SCR_HALT_SECONDS
  std::string reason;                            ///< a halt_reason, or a user's own word
  bool immediate = false;  ///< without a further checkpoint; there is a reason then

  bool operator==(const HaltRecord&) const = default;
};

namespace halt_reason {
inline constexpr std::string_view job_halted = "JOB_HALTED";  ///< asked for by the user
// Written by the library, so that others learn why a run has ended.
inline constexpr std::string_view time_limit = "TIME_LIMIT";
inline constexpr std::string_view no_checkpoints_left = "NO_CHECKPOINTS_LEFT";
inline constexpr std::string_view exit_before_time = "EXIT_BEFORE_TIME";
inline constexpr std::string_view exit_after_time = "EXIT_AFTER_TIME";
inline constexpr std::string_view finalize_called = "SCR_FINALIZE_CALLED";
}  // namespace halt_reason

/// True for the reasons that tell which condition the library has found to hold. They report; what
/// stops a job is the condition.
bool tells_condition(std::string_view reason);
/// True for a reason that stops a job by itself: it is not the library's own.
bool is_request(std::string_view reason);
/// What a reason may be.
bool is_halt_reason(std::string_view reason);
inline constexpr std::size_t longest_halt_reason = 255;

inline constexpr std::uint32_t halt_record_version = 1;

/// What a count of checkpoints or of seconds may be.
inline constexpr std::int64_t largest_halt_count = 2'147'483'647;

/// The record as a sealed envelope.
Blob encode(const HaltRecord& record);

/// From the content of a file that holds one. corrupt, or newer_format.
Result<HaltRecord> decode_halt_record(Bytes content);

}  // namespace cairn
