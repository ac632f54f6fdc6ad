// What several benchmarks need.
#pragma once

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace cairn {

template <class T>
T check(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().text);
    std::exit(EXIT_FAILURE);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

inline void check(bool good, const std::string& what) {
  if (!good) check(Status(fail(Code::io, "{}", what)));
}

/// Carries out a command of the system.
inline void command(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  check(::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0,
        "cannot start " + words[0]);
  int status = 0;
  check(::waitpid(child, &status, 0) == child && status == 0, words[0] + " fails");
}

/// What is no file's, nor shared with anything.
inline double private_mib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssAnon:")) return std::strtod(line.c_str() + 8, nullptr) / 1024;
  return 0;
}

/// quantile(values, 0.5) is the median.
inline double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace cairn
