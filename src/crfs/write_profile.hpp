// The profile of a program's writes: their number, sizes and cost.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace cairn {

/// The classes of size are those in which the authors of CRFS published their measurements.
class WriteProfile {
 public:
  static constexpr int classes = 9;

  struct Write {
    std::uint64_t bytes = 0;
    std::int64_t ns = 0;
  };

  void add(std::uint64_t bytes, std::int64_t ns);
  /// The write `before`, which was added, goes on with `bytes` more.
  void extend(const Write& before, std::uint64_t bytes, std::int64_t ns);

  /// A table, with a line for the sum.
  std::string text() const;
  /// {"writes", "bytes", "seconds", "classes": [{"from_bytes", "to_bytes", "writes", "bytes",
  /// "seconds"}]}; a class without an upper end has null there.
  std::string json() const;

 private:
  struct Class {
    std::atomic<std::uint64_t> writes = 0, bytes = 0;
    std::atomic<std::int64_t> ns = 0;
  };
  struct Row {
    std::uint64_t writes = 0, bytes = 0;
    double seconds = 0;
  };
  Row row(std::size_t index) const;
  Row sum() const;

  std::array<Class, classes> classes_;
};

}  // namespace cairn
