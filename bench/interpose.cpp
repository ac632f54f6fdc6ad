// What a wrapped call costs more than the plain one, for paths that are no checkpoint files and for
// one that is.
//
//   bench_interpose LIBRARY ROUNDS [DIRECTORY]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "interpose/rules.hpp"
#include "measure.hpp"

namespace {

using namespace cairn;

constexpr int calls = 20'000;

struct Path {
  const char* what;
  std::string path;
};

double ns_per_call(const std::string& path, bool opens) {
  struct stat state;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    if (opens) {
      const int file = ::open(path.c_str(), O_RDONLY);
      if (file >= 0) ::close(file);
    } else {
      ::stat(path.c_str(), &state);
    }
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / calls;
}

std::vector<Path> paths_in(const std::string& directory) {
  return {{"outside of the prefix directory", "/etc/hostname"},
          {"relative, no pattern matches", "output/log.0017"},
          {"absolute, no pattern matches", directory + "/output/log.0017"},
          {"with dots, no pattern matches", "./output/../output/log.0017"},
          {"relative, a checkpoint file", "output/restart.1000.17"}};
}

/// The decision alone, as every wrapped call makes it.
void measure_decision(const std::string& directory, int rounds) {
  interpose::Rules rules;
  rules.add_prefix(directory);
  check(rules.patterns.add("restart\\.(?<step>\\d+)\\.\\d+$").empty(), "wrong pattern");
  interpose::WorkingDirectory working_directory;
  interpose::PathBuffer<512> memory;
  fmt::print("{:<45} {:>10} {:>18}\n", "decision", "ns", "quartiles");
  for (const Path& path : paths_in(directory)) {
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      int matched = 0;
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; ++i) {
        interpose::PathText scratch = memory.text();
        matched += rules.decide(path.path.c_str(), working_directory, scratch).kind ==
                           interpose::Kind::matched
                       ? 1
                       : 0;
      }
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - begin;
      check(matched == 0 || matched == calls, "the decision changes");
      times.push_back(took.count() / calls);
    }
    fmt::print("{:<45} {:>10.0f} {:>9.0f} {:>8.0f}\n", path.what, quantile(times, 0.5),
               quantile(times, 0.25), quantile(times, 0.75));
  }
}

/// In a process of its own: one line for each path and call.
void measure_here(const std::string& directory) {
  std::filesystem::current_path(directory);
  for (const bool opens : {false, true})
    for (const Path& path : paths_in(directory)) fmt::print("{}\n", ns_per_call(path.path, opens));
}

/// The lines of a process with or without the library.
std::vector<double> measured(const std::string& command_line) {
  std::vector<double> values;
  FILE* const output = ::popen(command_line.c_str(), "r");
  check(output != nullptr, "cannot start the program again");
  std::array<char, 64> line;
  while (std::fgets(line.data(), line.size(), output) != nullptr)
    values.push_back(std::atof(line.data()));
  check(::pclose(output) == 0, "the measuring process failed");
  return values;
}

void compare(const std::string& self, const std::string& library, int rounds,
             const std::string& directory) {
  const std::string plain = fmt::format("{} --here {}", self, directory);
  const std::string wrapped = fmt::format(
      "LD_PRELOAD={} CAIRN_WRAP_PREFIX={} CAIRN_WRAP_CACHE={}.cache "
      "CAIRN_WRAP_PATTERNS='restart\\.(?<step>\\d+)\\.\\d+$' {}",
      library, directory, directory, plain);
  std::vector<std::vector<double>> added(10);
  std::vector<std::vector<double>> bare(10);
  for (int round = 0; round < rounds; ++round) {
    const std::vector<double> without = measured(plain);
    const std::vector<double> with = measured(wrapped);
    check(without.size() == 10 && with.size() == 10, "a measurement is missing");
    for (std::size_t i = 0; i < 10; ++i) {
      bare[i].push_back(without[i]);
      added[i].push_back(with[i] - without[i]);
    }
  }
  const std::vector<Path> paths = paths_in(directory);
  fmt::print("{:<10} {:<34} {:>10} {:>12} {:>18}\n", "call", "path", "plain ns", "added ns",
             "quartiles");
  for (std::size_t i = 0; i < 10; ++i)
    fmt::print("{:<10} {:<34} {:>10.0f} {:>12.0f} {:>9.0f} {:>8.0f}\n",
               i < 5 ? "stat" : "open, close", paths[i % 5].what, quantile(bare[i], 0.5),
               quantile(added[i], 0.5), quantile(added[i], 0.25), quantile(added[i], 0.75));
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "--here") {
    measure_here(arguments[2]);
    return 0;
  }
  if (count < 3) {
    fmt::print(stderr, "usage: bench_interpose LIBRARY ROUNDS [DIRECTORY]\n");
    return 2;
  }
  std::string directory =
      std::string(count > 3 ? arguments[3] : "/dev/shm") + "/cairn.bench.XXXXXX";
  check(::mkdtemp(directory.data()) != nullptr, "cannot create " + directory);
  std::filesystem::create_directory(directory + "/output");
  for (const char* name : {"/output/log.0017", "/output/restart.1000.17"})
    std::ofstream(directory + name) << "bytes";
  compare(std::filesystem::canonical("/proc/self/exe"), std::filesystem::canonical(arguments[1]),
          std::atoi(arguments[2]), directory);
  std::filesystem::current_path(directory);
  measure_decision(directory, std::atoi(arguments[2]));
  std::filesystem::current_path("/");
  std::filesystem::remove_all(directory);
  std::filesystem::remove_all(directory + ".cache");
  return 0;
}
