// When and why a job must stop: the content of the halt file (docs/format/halt.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// An empty field requests nothing. Times are seconds since 1970.
struct HaltRecord {
  std::optional<std::int64_t> checkpoints_left;  ///< checkpoints to make before the job stops
  std::optional<std::int64_t> exit_before_s;     ///< the job must end before this time
  std::optional<std::int64_t> exit_after_s;      ///< the job stops after this time
  std::optional<std::int64_t> halt_seconds;      ///< replaces SCR_HALT_SECONDS
  std::string reason;                            ///< a halt_reason, or a text of the user
  bool immediate = false;  ///< stop without another checkpoint; only with a reason

  bool operator==(const HaltRecord&) const = default;
};

namespace halt_reason {
inline constexpr std::string_view job_halted = "JOB_HALTED";  ///< requested by the user
// Written by the library: why a run has ended.
inline constexpr std::string_view time_limit = "TIME_LIMIT";
inline constexpr std::string_view no_checkpoints_left = "NO_CHECKPOINTS_LEFT";
inline constexpr std::string_view exit_before_time = "EXIT_BEFORE_TIME";
inline constexpr std::string_view exit_after_time = "EXIT_AFTER_TIME";
inline constexpr std::string_view finalize_called = "SCR_FINALIZE_CALLED";
}  // namespace halt_reason

/// True for the reasons with which the library reports that a condition holds. The condition stops
/// a job, not the reason.
bool is_condition(std::string_view reason);
/// True for a reason that stops a job by itself: the library did not write it.
bool is_request(std::string_view reason);
/// True if the text may be a reason.
bool is_halt_reason(std::string_view reason);
inline constexpr std::size_t longest_halt_reason = 255;

inline constexpr std::uint32_t halt_record_version = 1;

/// The largest count of checkpoints or of seconds.
inline constexpr std::int64_t largest_halt_count = 2'147'483'647;

/// The record as a sealed envelope.
Blob encode(const HaltRecord& record);

/// From the content of a file with one record. Errors: corrupt, newer_format.
Result<HaltRecord> decode_halt_record(Bytes content);

}  // namespace cairn
