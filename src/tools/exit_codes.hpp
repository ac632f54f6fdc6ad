// The exit codes of the command `cairn`.
#pragma once

namespace cairn {

constexpr int exit_ok = 0;
constexpr int exit_failure = 1;        ///< the command failed; stderr has the reason
constexpr int exit_usage = 2;          ///< the command line is wrong
constexpr int exit_damaged = 3;        ///< verify: something is damaged, and can be or was repaired
constexpr int exit_beyond_repair = 4;  ///< verify: something is damaged, and cannot be repaired
/// EX_TEMPFAIL: another process is working on it, or the time is over; the command can be repeated.
constexpr int exit_try_again = 75;

}  // namespace cairn
