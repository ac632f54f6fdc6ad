// A temporary directory of a test, removed with its content when the test ends.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace cairn {

class TemporaryFolder {
 public:
  /// Below `base`, or else below $TMPDIR or /tmp. Throws if it cannot be made, as the test cannot
  /// go on.
  explicit TemporaryFolder(std::string base = {}) {
    if (base.empty()) base = std::filesystem::temp_directory_path();
    path_ = base + "/cairn-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // a destructor cannot return an error
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace cairn
