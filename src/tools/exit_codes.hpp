// What the command `cairn` returns to the shell.
#pragma once

namespace cairn {

constexpr int exit_ok = 0;
constexpr int exit_failure = 1;        ///< the command could not do what was asked; stderr says why
constexpr int exit_usage = 2;          ///< the command line is wrong
constexpr int exit_damaged = 3;        ///< verify: something is damaged, and can be or was repaired
constexpr int exit_beyond_repair = 4;  ///< verify: something is damaged, and cannot be repaired
/// EX_TEMPFAIL: somebody else is at it, or the time is up; nothing is lost by trying again.
constexpr int exit_try_again = 75;

}  // namespace cairn
