// What several tests of the engine need.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "aggregate/aggregator.hpp"
#include "aggregate/scripted_file.hpp"

namespace cairn {

struct TestFile {
  explicit TestFile(Aggregator& aggregator)
      : storage(std::make_shared<Storage>()),
        file(std::make_unique<AggregatedFile>(aggregator, std::make_unique<ScriptedFile>(storage),
                                              0)) {
    storage->keeps_log = true;
  }

  AggregatedFile* operator->() const { return file.get(); }

  /// The calls of that kind, in the order in which they ended.
  std::vector<BackingCall> calls(BackingCall::Kind kind) const {
    std::vector<BackingCall> found = storage->log();
    std::erase_if(found, [&](const BackingCall& call) { return call.kind != kind; });
    return found;
  }

  std::shared_ptr<Storage> storage;
  std::unique_ptr<AggregatedFile> file;
};

/// A small pool, so that a test fills it.
inline constexpr std::uint64_t chunk = 16;

inline AggregateOptions small_options(std::uint64_t chunk_bytes, std::uint64_t chunks_in_pool,
                                      std::uint64_t chunks_in_write, int threads) {
  AggregateOptions small;
  small.chunk_bytes = chunk_bytes;
  small.pool_bytes = chunks_in_pool * chunk_bytes;
  small.write_bytes = chunks_in_write * chunk_bytes;
  small.io_threads = threads;
  return small;
}

inline Blob blob(std::string_view text) {
  const Bytes bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text(const Blob& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// All of the file, as a reader sees it.
inline Blob read_all(AggregatedFile& file) {
  Blob all(file.size() + 1);
  const ssize_t got = file.read(0, all);
  all.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return all;
}

/// Blocks callers of pass() until it is open.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --waiting_;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// Returns when `count` callers wait in pass().
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

/// A script for Storage: calls of that kind, or all, wait until the gate is opened.
inline auto held_at(Gate& gate, std::optional<BackingCall::Kind> kind = {}) {
  return [&gate, kind](const BackingCall& call) {
    if (!kind || call.kind == *kind) gate.pass();
    return Reaction{};
  };
}

}  // namespace cairn
