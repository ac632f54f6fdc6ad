// For fixtures that run commands: what the last one has printed and logged.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "support/log_capture.hpp"

namespace cairn {

class CommandOutput {
 protected:
  using Command = std::function<int(std::ostream& out, const Log& log)>;

  /// Returns the exit code.
  int keep_output_of(const Command& command);

  const std::string& printed() const { return printed_; }
  const std::string& logged() const { return logged_.text(); }
  bool prints(const std::string& words) const { return printed_.find(words) != std::string::npos; }
  bool logs(const std::string& words) const { return logged_.has(words); }
  nlohmann::json printed_json() const;

 private:
  std::string printed_;
  LogCapture logged_;
};

}  // namespace cairn
