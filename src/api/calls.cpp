#include "api/calls.hpp"

namespace cairn {
namespace {

/// The error as one line with the name of the call and, if it concerns only one rank, the rank.
std::string line_of(const Error& error, CallKind kind, const char* call) {
  const std::string origin =
      kind == CallKind::local ? fmt::format("rank {}: ", process().rank()) : "";
  // These texts contain the calls that the ranks made, which may be other ones.
  const bool names_call = error.code == Code::wrong_state || error.code == Code::differs;
  const std::string text = process().text_of(error);
  if (names_call || error.text.starts_with(call)) return origin + text;
  return fmt::format("{}{}: {}", origin, call, text);
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
