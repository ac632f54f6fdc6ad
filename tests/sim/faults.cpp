#include "faults.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace cairn::sim {
namespace {

bool needs_space(std::string_view name) {
  constexpr std::array<std::string_view, 5> those = {"create", "write", "resize", "make_folder",
                                                     "rename"};
  return std::find(those.begin(), those.end(), name) != those.end();
}

}  // namespace

void Faults::begin(const FaultPlan& plan) {
  plan_ = plan;
  operations_ = 0;
  count_ = 0;
  full_ = false;
  paths_.clear();
}

Status Faults::at(const FileOperation& operation) {
  const std::uint64_t number = operations_++;
  if (number < plan_.from || number >= plan_.to || !chance_.one_in(plan_.one_in)) return {};
  const int other = chance_.one_in(3) ? ESTALE : EIO;
  const int full = chance_.one_in(2) ? ENOSPC : EDQUOT;
  const int error_number = needs_space(operation.name) && chance_.one_in(2) ? full : other;
  ++count_;
  paths_.emplace(operation.path);
  trace_.say("fault {} in {} {}", error_number, operation.name, operation.path);
  return tl::unexpected<Error>(errno_error(error_number, operation.name, operation.path));
}

std::size_t Faults::moved(std::size_t wanted) {
  if (chance_.one_in(16)) return 0;
  return chance_.one_in(8) ? 1 + static_cast<std::size_t>(chance_.below(wanted)) : wanted;
}

bool Faults::named_in(const std::string& text) const {
  return std::any_of(paths_.begin(), paths_.end(),
                     [&](const std::string& path) { return text.find(path) != std::string::npos; });
}

}  // namespace cairn::sim
