// Processes that write the images of a checkpoint as BLCR does, read them back, or make many small
// writes.
//
//   crfs_replay write FOLDER PROCESSES IMAGE_BYTES [sync]    `sync`: fdatasync before close;
//                          with an image of 0 bytes files are made and closed, and nothing written
//   crfs_replay read FOLDER PROCESSES
//   crfs_replay latency FOLDER BYTES COUNT
//
// Prints JSON: seconds from the common start until each process was done, and the last; of latency
// the median and the 99th percentile in ns.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "../measure.hpp"
#include "aggregate/lu_c_64.hpp"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string image_of(const std::string& folder, int process) {
  return fmt::format("{}/image.{}", folder, process);
}

/// What the processes share.
struct Shared {
  std::atomic<int> ready{0};
  std::atomic<bool> started{false};
  Clock::time_point start;
  double seconds[64] = {};
};

void write_image(const std::string& path, const std::vector<std::uint64_t>& sizes, const char* data,
                 bool sync) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  check(fd >= 0, "cannot create " + path);
  for (const std::uint64_t size : sizes) {
    for (const char* end = data + size; data < end;) {
      const ssize_t count = ::write(fd, data, static_cast<std::size_t>(end - data));
      check(count > 0, "cannot write " + path);
      data += count;
    }
  }
  check(!sync || ::fdatasync(fd) == 0, "cannot sync " + path);
  check(::close(fd) == 0, "cannot close " + path);
}

void read_image(const std::string& path) {
  static char buffer[128 << 10];
  const int fd = ::open(path.c_str(), O_RDONLY);
  check(fd >= 0, "cannot open " + path);
  ssize_t count = 1;
  while (count > 0) count = ::read(fd, buffer, sizeof buffer);
  check(count == 0 && ::close(fd) == 0, "cannot read " + path);
}

/// `prepare(process)` gives the work of a process; what that does before it returns takes no time.
template <class Prepare>
nlohmann::json run(int processes, Prepare prepare) {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "no shared memory");
  auto& shared = *new (memory) Shared;
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    children.push_back(::fork());
    check(children.back() >= 0, "cannot fork");
    if (children.back() > 0) continue;
    const auto work = prepare(process);
    ++shared.ready;
    while (!shared.started) std::this_thread::yield();
    work();
    shared.seconds[process] = seconds_since(shared.start);
    std::_Exit(0);
  }
  while (shared.ready < processes) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  shared.start = Clock::now();
  shared.started = true;
  for (const pid_t child : children) {
    int status = 0;
    check(::waitpid(child, &status, 0) == child && status == 0, "a process failed");
  }
  const std::vector<double> each(shared.seconds, shared.seconds + processes);
  return {{"seconds", *std::max_element(each.begin(), each.end())}, {"each", each}};
}

std::vector<std::uint64_t> sizes_of(int process, std::uint64_t image_bytes) {
  if (image_bytes == 0) return {};
  return lu_c_64::writes(process, 1, image_bytes);
}

nlohmann::json write_all(const std::string& folder, int processes, std::uint64_t image_bytes,
                         bool sync) {
  std::vector<char> data(image_bytes);
  for (std::size_t at = 0; at < data.size(); ++at)
    data[at] = static_cast<char>(at * 31 + (at >> 9));
  std::uint64_t writes = 0;
  for (int process = 0; process < processes; ++process)
    writes += sizes_of(process, image_bytes).size();
  nlohmann::json result = run(processes, [&](int process) {
    return [&, process, sizes = sizes_of(process, image_bytes)] {
      write_image(image_of(folder, process), sizes, data.data(), sync);
    };
  });
  result["writes"] = writes;
  result["bytes"] = image_bytes * static_cast<std::uint64_t>(processes);
  return result;
}

nlohmann::json small_writes(const std::string& folder, std::size_t bytes, int count) {
  const std::vector<char> data(bytes, 'x');
  const std::string path = folder + "/small";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  check(fd >= 0, "cannot create " + path);
  std::vector<double> each;
  each.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    check(::write(fd, data.data(), bytes) == static_cast<ssize_t>(bytes), "cannot write " + path);
    each.push_back(1e9 * seconds_since(start));
  }
  check(::close(fd) == 0, "cannot close " + path);
  return {{"median_ns", quantile(each, 0.5)}, {"p99_ns", quantile(each, 0.99)}};
}

nlohmann::json carry_out(const std::vector<std::string>& words) {
  check(words.size() >= 3, "usage: see the head of replay.cpp");
  const std::string &what = words[0], &folder = words[1];
  if (what == "write") {
    return write_all(folder, std::stoi(words[2]), std::stoull(words.at(3)),
                     words.size() > 4 && words[4] == "sync");
  }
  if (what == "latency") return small_writes(folder, std::stoull(words[2]), std::stoi(words.at(3)));
  check(what == "read", "no such work: " + what);
  return run(std::stoi(words[2]),
             [&](int process) { return [&, process] { read_image(image_of(folder, process)); }; });
}

}  // namespace
}  // namespace cairn

int main(int count, char** words) {
  fmt::print("{}\n", cairn::carry_out({words + 1, words + count}).dump());
  return 0;
}
