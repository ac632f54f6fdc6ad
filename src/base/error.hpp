// Errors are values. A function that can fail returns Result<T>; no exception leaves a room, and no
// error is ignored: a caller handles an Error, returns it, or logs it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace cairn {

/// The class of an error. scr.h returns these numbers, so they never change their meaning.
enum class Code : int {
  ok = 0,
  wrong_state = 1,    ///< a call in a state in which it is not allowed
  differs = 2,        ///< ranks made different collective calls, or passed different arguments
  bad_argument = 3,   ///< an argument with a value that is not allowed
  bad_setting = 4,    ///< an environment variable, configuration file or SCR_Config entry
  io = 5,             ///< a file operation failed
  no_space = 6,       ///< the store or quota is full
  corrupt = 7,        ///< bytes do not match their checksum, and cannot be repaired
  lost = 8,           ///< more is missing than the redundancy scheme can rebuild
  wrong_ranks = 9,    ///< the dataset was written by another number of ranks
  not_found = 10,     ///< no such dataset or file
  busy = 11,          ///< another run of the same job holds the cache
  newer_format = 12,  ///< a record written by a later version of Cairn
  untrusted = 13,     ///< a link, or a path that another user owns or can change
  invalid = 14,       ///< a rank declared its part of the dataset invalid
  disabled = 15,      ///< SCR_ENABLE=0, or Init failed
  not_copied = 16,    ///< a dataset is complete in the caches, but not in the prefix directory
};

/// A short name of the code, for logs and JSON ("no_space").
std::string_view name_of(Code code);

struct [[nodiscard]] Error {
  Code code = Code::ok;
  std::string text;          ///< one line: what, which file, which node, and the remedy
  int rank = -1;             ///< the rank on which it occurred, -1 while it is only local
  bool is_reported = false;  ///< it has been logged, so the caller need not print it
  int error_number = 0;      ///< errno of a failed call of this process; 0 elsewhere
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// True if the error concerns a file, which may be a different one on each node.
bool concerns_files(const Error& error);

/// Its code and the reason at the end of its text, without files and ranks: equal for all ranks
/// that fail for the same reason.
std::string cause_of(const Error& error);

/// The storage that has the file of an error.
enum class Storage { cache, prefix };

/// What the user can do, if the text of the error does not say it: "" or a clause to append.
std::string_view remedy_for(const Error& error, Storage storage);

/// fail(Code::io, "cannot write {}: {}", path, why) -> usable as any Result<T>.
template <class... Args>
tl::unexpected<Error> fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...), -1});
}

/// The Error for errno after `action` on `path`: ENOSPC and EDQUOT become no_space, ENOENT and
/// ENOTDIR not_found, ELOOP untrusted, the rest io. For a dead FUSE mount the text says how to
/// unmount it.
Error errno_error(int error_number, std::string_view action, std::string_view path);

}  // namespace cairn

/// Returns the error of a Result from the enclosing function, or goes on.
#define CAIRN_TRY(expression)                                               \
  do {                                                                      \
    if (auto cairn_try_ = (expression); !cairn_try_)                        \
      return tl::unexpected<::cairn::Error>(std::move(cairn_try_).error()); \
  } while (false)

#define CAIRN_CONCAT2_(a, b) a##b
#define CAIRN_CONCAT_(a, b) CAIRN_CONCAT2_(a, b)

/// CAIRN_ASSIGN(auto file, files.open(path)): declares or assigns the value, or returns the error.
#define CAIRN_ASSIGN(target, expression)                            \
  auto CAIRN_CONCAT_(cairn_result_, __LINE__) = (expression);       \
  if (!CAIRN_CONCAT_(cairn_result_, __LINE__))                      \
    return tl::unexpected<::cairn::Error>(                          \
        std::move(CAIRN_CONCAT_(cairn_result_, __LINE__)).error()); \
  target = *std::move(CAIRN_CONCAT_(cairn_result_, __LINE__))
