// What the device under a directory takes from one process that does nothing but write:
//
//   device DIRECTORY MIB
//
// Prints JSON: seconds through the page cache with fdatasync, and with O_DIRECT; medians after a
// first file that warms up. Before each file it rests, as the I/O thread does while the program
// computes: a limited device that has rested takes some MiB at once.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;
constexpr std::size_t alignment = 4096;
constexpr std::chrono::milliseconds rest{300};

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "{}: {}\n", what, std::strerror(errno));
  std::exit(EXIT_FAILURE);
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// Less than 0 if the file system does not have the flag.
double seconds_to_write(const std::string& path, std::size_t pieces, int flag) {
  const std::unique_ptr<void, Free> piece(std::aligned_alloc(alignment, piece_bytes));
  std::memset(piece.get(), 1, piece_bytes);
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | flag, 0600);
  if (file < 0 && errno == EINVAL) return -1;
  if (file < 0) fail(path);
  std::this_thread::sleep_for(rest);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < pieces; ++i)
    if (::pwrite(file, piece.get(), piece_bytes, static_cast<off_t>(i * piece_bytes)) !=
        static_cast<ssize_t>(piece_bytes))
      fail(path);
  if (::fdatasync(file) != 0) fail(path);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ::close(file);
  ::unlink(path.c_str());
  return took.count();
}

double median_seconds(const std::string& path, std::size_t pieces, int flag) {
  seconds_to_write(path, pieces, flag);
  std::array<double, 3> times{};
  for (double& time : times) time = seconds_to_write(path, pieces, flag);
  std::sort(times.begin(), times.end());
  return times[1];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: device DIRECTORY MIB\n");
    return 2;
  }
  const std::string path = std::string(argv[1]) + "/device";
  const std::size_t pieces = (std::strtoull(argv[2], nullptr, 10) << 20) / piece_bytes;
  const double cached = median_seconds(path, pieces, 0);
  const double direct = median_seconds(path, pieces, O_DIRECT);
  fmt::print("{{\"bytes\": {}, \"cached\": {}, \"direct\": {}}}\n", pieces * piece_bytes, cached,
             direct);
  return 0;
}
