// File operations that fail.
#pragma once

#include <set>
#include <string>

#include "chance.hpp"
#include "files/hooked_files.hpp"
#include "trace.hpp"

namespace cairn::sim {

/// Which of the file operations of a run fail: one in `one_in` of those from number `from` to `to`.
struct FaultPlan {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t one_in = 1;
};

class Faults {
 public:
  Faults(Chance chance, Trace& trace)
      : chance_(chance), signals_(Chance(chance).fork()), trace_(trace) {}

  void begin(const FaultPlan& plan);
  /// ENOSPC, EDQUOT, EIO or ESTALE instead of the operation, if it is one of those that fail.
  Status at(const FileOperation& operation);
  /// How many of `wanted` bytes a call reads or writes, mostly all; 0: it is interrupted. No error,
  /// so not counted as one.
  std::size_t moved(std::size_t wanted);
  /// Whether another call is interrupted; no error either.
  bool interrupted() { return signals_.one_in(16); }
  /// While a volume is full, operations fail that are none of these.
  void set_full(bool full) {
    full_ = full;
    ++count_;
  }
  /// Something else has happened that operations may fail for.
  void note() { ++count_; }
  /// Such an operation has failed.
  void refused_room(const std::string& path) { paths_.insert(path); }

  /// How many there have been in this run. Compare two readings to learn whether there were any in
  /// between; `lasting()` says that there may be one at any time.
  std::uint64_t count() const { return count_; }
  bool lasting() const { return full_; }
  /// The text names one of the paths that were hit.
  bool named_in(const std::string& text) const;

 private:
  Chance chance_;
  Chance signals_;
  Trace& trace_;
  FaultPlan plan_;
  std::uint64_t operations_ = 0;
  std::uint64_t count_ = 0;
  bool full_ = false;
  std::set<std::string, std::less<>> paths_;
};

}  // namespace cairn::sim
