// Where the program saves its state. Every call is collective and fails alike on all ranks, with an
// exception that says why.
#pragma once

#include <cstdint>
#include <optional>

namespace nekcem {

class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  // When it returns, the program may compute on.
  virtual void begin(std::int64_t step) = 0;
  // Restores the newest checkpoint and returns its step; nothing if there is none.
  virtual std::optional<std::int64_t> restore_newest() = 0;
  // Waits until all checkpoints are stored.
  virtual void close() = 0;
};

// For a run without checkpoints.
class NoCheckpoints : public Checkpoints {
 public:
  void begin(std::int64_t) override {}
  std::optional<std::int64_t> restore_newest() override { return std::nullopt; }
  void close() override {}
};

}  // namespace nekcem
