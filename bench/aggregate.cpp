// What a write costs in the engine that aggregates writes, against memcpy of the same.
//
//   aggregate ROUNDS [FOLDER]
//
// In each round, for writes of 64 B, 4 KiB and 1 MiB, by one thread: memcpy to 8 MiB that are used
// again; the engine, which throws away what it would write; the engine with a file in FOLDER (or
// /dev/shm), and write() to such a file, both without a sync. Then the checkpoint of a node of
// LU.C.64, by a thread for each process, the same four ways.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "aggregate/aggregator.hpp"
#include "aggregate/lu_c_64.hpp"
#include "base/units.hpp"
#include "files/clock.hpp"
#include "files/temporary_folder.hpp"
#include "measure.hpp"

namespace cairn {
namespace {

class PosixBacking final : public BackingFile {
 public:
  explicit PosixBacking(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
    check(file_ >= 0, "cannot create " + path);
  }
  ~PosixBacking() override { ::close(file_); }
  PosixBacking(const PosixBacking&) = delete;
  PosixBacking& operator=(const PosixBacking&) = delete;

  ssize_t write_at(std::uint64_t offset, Bytes data) override {
    return answer(::pwrite(file_, data.data(), data.size(), static_cast<off_t>(offset)));
  }
  ssize_t write_pieces_at(std::uint64_t offset, const Bytes* pieces, int count) override {
    std::vector<iovec> parts;
    for (int at = 0; at < count; ++at)
      parts.push_back({const_cast<std::byte*>(pieces[at].data()), pieces[at].size()});
    return answer(::pwritev(file_, parts.data(), count, static_cast<off_t>(offset)));
  }
  ssize_t read_at(std::uint64_t offset, MutableBytes buffer) override {
    return answer(::pread(file_, buffer.data(), buffer.size(), static_cast<off_t>(offset)));
  }
  int resize(std::uint64_t bytes) override {
    return static_cast<int>(answer(::ftruncate(file_, static_cast<off_t>(bytes))));
  }
  int sync(bool data_only) override {
    return static_cast<int>(answer(data_only ? ::fdatasync(file_) : ::fsync(file_)));
  }
  std::int64_t size() override { return ::lseek(file_, 0, SEEK_END); }

 private:
  static ssize_t answer(ssize_t result) { return result < 0 ? -errno : result; }
  const int file_;
};

/// Where writes go.
class Target {
 public:
  virtual ~Target() = default;
  virtual void write(std::uint64_t offset, Bytes data) = 0;
  virtual void close() {}
};

class Memory final : public Target {
 public:
  void write(std::uint64_t offset, Bytes data) override {
    std::memcpy(memory_.data() + offset % reused_bytes, data.data(), data.size());
  }

 private:
  static constexpr std::size_t reused_bytes = std::size_t{8} << 20;
  Blob memory_ = Blob(2 * reused_bytes);
};

class Aggregated final : public Target {
 public:
  Aggregated(Aggregator& aggregator, const std::string& path)
      : file_(aggregator, std::make_unique<PosixBacking>(path), 0), cursor_(file_.opened()) {}
  void write(std::uint64_t offset, Bytes data) override {
    check(file_.write(offset, data) == 0, "a write fails");
  }
  void close() override { check(file_.drain(cursor_) == 0, "a drain fails"); }

 private:
  AggregatedFile file_;
  AggregatedFile::ErrorCursor cursor_;
};

class Native final : public Target {
 public:
  explicit Native(const std::string& path) : file_(path) {}
  void write(std::uint64_t offset, Bytes data) override {
    check(file_.write_at(offset, data) == static_cast<ssize_t>(data.size()), "a write fails");
  }

 private:
  PosixBacking file_;
};

class Bench {
 public:
  Bench(int rounds, const std::string& folder) : rounds_(rounds), folder_(folder) {
    discarding_.discard = true;
  }

  void run() {
    for (const std::uint64_t bytes :
         {std::uint64_t{64}, std::uint64_t{4} << 10, std::uint64_t{1} << 20}) {
      const std::uint64_t writes = bytes < 4096 ? 1 << 18 : (std::uint64_t{128} << 20) / bytes;
      const Image image(writes, bytes);
      measure(format_bytes(bytes), {image}, static_cast<double>(writes));
    }
    std::vector<Image> images;
    for (int process = 0; process < lu_c_64::processes_per_node; ++process)
      images.push_back(lu_c_64::writes(process));
    measure("LU.C.64", images, 0);
  }

 private:
  using Image = std::vector<std::uint64_t>;  ///< sizes of writes
  using MakeTarget = std::function<std::unique_ptr<Target>(const std::string& path)>;

  /// Seconds that it takes to write all images, a thread for each.
  double time(const std::vector<Image>& images, const MakeTarget& make) const {
    const TemporaryFolder folder(folder_);
    std::vector<std::unique_ptr<Target>> targets;
    for (std::size_t at = 0; at < images.size(); ++at)
      targets.push_back(make(folder / std::to_string(at)));
    const std::int64_t from_us = clock_->steady_us();
    std::vector<std::thread> threads;
    for (std::size_t at = 0; at < images.size(); ++at)
      threads.emplace_back([&, at] {
        std::uint64_t offset = 0;
        for (const std::uint64_t bytes : images[at]) {
          targets[at]->write(offset, Bytes(data_).first(bytes));
          offset += bytes;
        }
        targets[at]->close();
      });
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(clock_->steady_us() - from_us) * 1e-6;
  }

  /// `writes`: by how many to divide; 0: nothing is divided.
  void measure(const std::string& what, const std::vector<Image>& images, double writes) {
    std::array<std::vector<double>, 4> seconds;
    const std::array<const char*, 4> names = {"memcpy", "discarded", "aggregated", "write()"};
    for (int round = -1; round < rounds_; ++round)
      for (std::size_t way = 0; way < names.size(); ++way) {
        Aggregator aggregator(way == 1 ? discarding_ : AggregateOptions{});
        const double took = time(images, [&](const std::string& path) -> std::unique_ptr<Target> {
          if (way == 0) return std::make_unique<Memory>();
          if (way == 3) return std::make_unique<Native>(path);
          return std::make_unique<Aggregated>(aggregator, path);
        });
        if (round >= 0) seconds[way].push_back(took / std::max(1.0, writes));
      }
    for (std::size_t way = 0; way < names.size(); ++way)
      fmt::print("  {:<8} {:<11} {:>8} [{} to {}]\n", what, names[way],
                 format_seconds(quantile(seconds[way], 0.5)),
                 format_seconds(quantile(seconds[way], 0.1)),
                 format_seconds(quantile(seconds[way], 0.9)));
  }

  const int rounds_;
  const std::string folder_;
  const Blob data_ = Blob(std::size_t{8} << 20, std::byte{1});
  AggregateOptions discarding_;
  const std::unique_ptr<Clock> clock_ = make_system_clock();
};

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: aggregate ROUNDS [FOLDER]\n");
    return EXIT_FAILURE;
  }
  const int rounds = std::atoi(argv[1]);
  fmt::print("time of a write, and of a node's checkpoint; median [10 % to 90 %] of {} rounds\n",
             rounds);
  cairn::Bench(rounds, argc > 2 ? argv[2] : "/dev/shm").run();
  return EXIT_SUCCESS;
}
