#include "api/calls.hpp"

namespace cairn {
namespace {

/// The error as one line that names the call and, where it is one rank's own, the rank.
std::string line_of(const Error& error, CallKind kind, const char* call) {
  const std::string whose =
      kind == CallKind::local ? fmt::format("rank {}: ", process().rank()) : "";
  // These name the calls that the ranks made, which need not be this one.
  const bool names_call = error.code == Code::wrong_state || error.code == Code::differs;
  const std::string text = process().text_of(error);
  if (names_call || error.text.starts_with(call)) return whose + text;
  return fmt::format("{}{}: {}", whose, call, text);
}

}  // namespace

int code_of(const Error& error, CallKind kind, const char* call) {
  // A disabled library is silent: SCR_Init has reported why.
  const bool is_known = error.code == Code::disabled || error.is_reported;
  if (!is_known && (kind == CallKind::local || process().rank() == 0))
    process().log().error("{}", line_of(error, kind, call));
  return static_cast<int>(error.code);
}

}  // namespace cairn
