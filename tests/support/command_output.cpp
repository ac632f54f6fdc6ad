#include "support/command_output.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

namespace cairn {

int CommandOutput::keep_output_of(const Command& command) {
  logged_.clear();
  std::ostringstream out;
  const int code = command(out, logged_.log());
  printed_ = out.str();
  return code;
}

nlohmann::json CommandOutput::printed_json() const { return nlohmann::json::parse(printed_); }

}  // namespace cairn
