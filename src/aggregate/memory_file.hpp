// A backing file in memory, for tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <mutex>

#include "aggregate/backing_file.hpp"

namespace cairn {

class MemoryFile : public BackingFile {
 public:
  ssize_t write_at(std::uint64_t offset, Bytes data) override {
    const std::scoped_lock lock(mutex_);
    if (content_.size() < offset + data.size()) content_.resize(offset + data.size());
    std::memcpy(content_.data() + offset, data.data(), data.size());
    return static_cast<ssize_t>(data.size());
  }
  ssize_t write_pieces_at(std::uint64_t offset, const Bytes* pieces, int count) override {
    ssize_t done = 0;
    for (int at = 0; at < count; ++at)
      done += write_at(offset + static_cast<std::uint64_t>(done), pieces[at]);
    return done;
  }
  ssize_t read_at(std::uint64_t offset, MutableBytes buffer) override {
    const std::scoped_lock lock(mutex_);
    if (offset >= content_.size()) return 0;
    const std::size_t bytes = std::min<std::size_t>(buffer.size(), content_.size() - offset);
    std::memcpy(buffer.data(), content_.data() + offset, bytes);
    return static_cast<ssize_t>(bytes);
  }
  int resize(std::uint64_t bytes) override {
    const std::scoped_lock lock(mutex_);
    content_.resize(bytes);
    return 0;
  }
  int sync(bool) override { return 0; }
  std::int64_t size() override {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::int64_t>(content_.size());
  }

 private:
  std::mutex mutex_;
  Blob content_;
};

}  // namespace cairn
