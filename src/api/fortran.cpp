// The calls of scrf.h and of the module scr. The symbols are those of Fortran compilers on Linux,
// and lengths of strings come after the other arguments.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "api/configure.hpp"
#include "api/fortran_text.hpp"
#include "scr.h"

namespace {

using cairn::fill;
using cairn::trimmed;

/// Makes a call that returns a name or a path, and copies it to `text`; leaves `text` unchanged if
/// there is none. A call may return a path and fail, as SCR_Route_file does if the library is
/// disabled.
template <class Call>
int fill_by(char* text, std::size_t length, Call call) {
  std::array<char, SCR_MAX_FILENAME> value{};
  const int status = call(value.data());
  if (value[0] == '\0') return status;
  const int filled = fill(text, length, value.data());
  return status == SCR_SUCCESS ? filled : status;
}

}  // namespace

#define CAIRN_FORTRAN extern "C" CAIRN_EXPORT void

CAIRN_FORTRAN scr_init_(int* error) { *error = SCR_Init(); }
CAIRN_FORTRAN scr_finalize_(int* error) { *error = SCR_Finalize(); }

CAIRN_FORTRAN scr_get_version_(char* version, int* error, std::size_t length) {
  *error = fill(version, length, SCR_Get_version());
}

CAIRN_FORTRAN scr_config_(const char* config, char* value, int* error, std::size_t config_length,
                          std::size_t value_length) {
  std::optional<std::string> found;
  *error = cairn::configure(trimmed(config, config_length), found);
  if (*error == SCR_SUCCESS) *error = fill(value, value_length, found.value_or("").c_str());
}

CAIRN_FORTRAN scr_should_exit_(int* flag, int* error) { *error = SCR_Should_exit(flag); }
CAIRN_FORTRAN scr_need_checkpoint_(int* flag, int* error) { *error = SCR_Need_checkpoint(flag); }

CAIRN_FORTRAN scr_route_file_(const char* name, char* file, int* error, std::size_t name_length,
                              std::size_t file_length) {
  *error = fill_by(file, file_length, [&](char* path) {
    return SCR_Route_file(trimmed(name, name_length).c_str(), path);
  });
}

CAIRN_FORTRAN scr_have_restart_(int* flag, char* name, int* error, std::size_t length) {
  *error = fill_by(name, length, [&](char* found) { return SCR_Have_restart(flag, found); });
  if (*error != SCR_SUCCESS) *flag = 0;
}
CAIRN_FORTRAN scr_start_restart_(char* name, int* error, std::size_t length) {
  std::array<char, SCR_MAX_FILENAME> found{};
  *error = SCR_Start_restart(found.data());
  if (*error != SCR_SUCCESS) return;
  // The restart has begun, and an error here would prevent the program from ending it. So a name
  // that is too long for its variable is truncated. SCR_HAVE_RESTART has returned an error for
  // that.
  found[std::min(length, found.size() - 1)] = '\0';
  fill(name, length, found.data());
}
CAIRN_FORTRAN scr_complete_restart_(const int* valid, int* error) {
  *error = SCR_Complete_restart(*valid);
}

CAIRN_FORTRAN scr_start_checkpoint_(int* error) { *error = SCR_Start_checkpoint(); }
CAIRN_FORTRAN scr_complete_checkpoint_(const int* valid, int* error) {
  *error = SCR_Complete_checkpoint(*valid);
}

CAIRN_FORTRAN scr_start_output_(const char* name, const int* flags, int* error,
                                std::size_t length) {
  *error = SCR_Start_output(trimmed(name, length).c_str(), *flags);
}
CAIRN_FORTRAN scr_complete_output_(const int* valid, int* error) {
  *error = SCR_Complete_output(*valid);
}

CAIRN_FORTRAN scr_current_(const char* name, int* error, std::size_t length) {
  *error = SCR_Current(trimmed(name, length).c_str());
}
CAIRN_FORTRAN scr_drop_(const char* name, int* error, std::size_t length) {
  *error = SCR_Drop(trimmed(name, length).c_str());
}
CAIRN_FORTRAN scr_delete_(const char* name, int* error, std::size_t length) {
  *error = SCR_Delete(trimmed(name, length).c_str());
}
