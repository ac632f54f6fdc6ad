// A backing file in memory for tests. A script makes its calls fail, end short or take long. It
// logs the calls, and checks that the caller keeps the contract of BackingFile.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "aggregate/backing_file.hpp"
#include "aggregate/ranges.hpp"

namespace cairn {

/// A call of a backing file.
struct BackingCall {
  enum Kind { write, read, resize, sync };
  Kind kind = write;
  Range range;     ///< of a resize: from 0 to the new size
  int pieces = 0;  ///< of a write
  Blob data = {};  ///< of a write, the bytes that were written; only if the storage keeps data
  int error = 0;   ///< as returned
  std::size_t ended_before = 0;  ///< calls in the log that had ended when this one began
};

struct Reaction {
  int error = 0;  ///< minus an errno
  /// Bytes that are written, also before an error; by default all, or none if there is an error.
  std::optional<std::uint64_t> bytes_most = {};
  std::chrono::microseconds delay{0};

  std::uint64_t bytes(std::uint64_t wanted) const {
    return std::min(wanted, bytes_most.value_or(error != 0 ? 0 : wanted));
  }
};

/// The content and log of scripted files; it outlives them.
class Storage {
 public:
  /// Decides the outcome of a call. Several threads may call it at once, and it may wait.
  std::function<Reaction(const BackingCall&)> script;
  bool keeps_log = false;
  bool keeps_data = false;

  Blob content() const {
    const std::scoped_lock lock(mutex_);
    return content_;
  }
  std::vector<BackingCall> log() const {
    const std::scoped_lock lock(mutex_);
    return log_;
  }
  std::size_t log_length() const {
    const std::scoped_lock lock(mutex_);
    return log_.size();
  }
  /// The caller's violations of the contract of BackingFile.
  std::string violations() const {
    const std::scoped_lock lock(mutex_);
    return violations_;
  }

 private:
  friend class ScriptedFile;
  using Calls = std::list<BackingCall>;

  Calls::iterator begin(const BackingCall& call) {
    const std::scoped_lock lock(mutex_);
    for (const BackingCall& other : under_way_) {
      const bool both_write = call.kind == BackingCall::write && other.kind == BackingCall::write;
      const bool overlap = call.range.begin < other.range.end && other.range.begin < call.range.end;
      if (both_write && overlap) violations_ += "two writes of the same bytes at once; ";
      if (call.kind == BackingCall::resize || other.kind == BackingCall::resize)
        violations_ += "a call beside resize; ";
    }
    const auto begun = under_way_.insert(under_way_.end(), call);
    begun->ended_before = log_.size();
    return begun;
  }

  void end(Calls::iterator call, Bytes data, int error) {
    call->error = error;
    if (keeps_data) call->data.assign(data.begin(), data.end());
    if (keeps_log) log_.push_back(*call);
    under_way_.erase(call);
  }

  mutable std::mutex mutex_;
  Blob content_;
  Calls under_way_;
  std::vector<BackingCall> log_;
  std::string violations_;
};

class ScriptedFile final : public BackingFile {
 public:
  explicit ScriptedFile(std::shared_ptr<Storage> storage) : storage_(std::move(storage)) {}

  ssize_t write_at(std::uint64_t offset, Bytes data) override {
    return write_pieces_at(offset, &data, 1);
  }

  ssize_t write_pieces_at(std::uint64_t offset, const Bytes* pieces, int count) override {
    Blob data;
    for (int at = 0; at < count; ++at)
      data.insert(data.end(), pieces[at].begin(), pieces[at].end());
    const auto [call, reaction] =
        begin({BackingCall::write, {offset, offset + data.size()}, count});
    const std::scoped_lock lock(storage_->mutex_);
    data.resize(reaction.bytes(data.size()));
    Blob& content = storage_->content_;
    if (!data.empty() && content.size() < offset + data.size())
      content.resize(offset + data.size());
    if (!data.empty()) std::memcpy(content.data() + offset, data.data(), data.size());
    storage_->end(call, data, reaction.error);
    return reaction.error != 0 ? reaction.error : static_cast<ssize_t>(data.size());
  }

  ssize_t read_at(std::uint64_t offset, MutableBytes buffer) override {
    const auto [call, reaction] = begin({BackingCall::read, {offset, offset + buffer.size()}});
    const std::scoped_lock lock(storage_->mutex_);
    storage_->end(call, {}, reaction.error);
    if (reaction.error != 0) return reaction.error;
    const Blob& content = storage_->content_;
    if (offset >= content.size()) return 0;
    const std::uint64_t bytes = reaction.bytes(std::min(buffer.size(), content.size() - offset));
    std::memcpy(buffer.data(), content.data() + offset, bytes);
    return static_cast<ssize_t>(bytes);
  }

  int resize(std::uint64_t bytes) override {
    const auto [call, reaction] = begin({BackingCall::resize, {0, bytes}});
    const std::scoped_lock lock(storage_->mutex_);
    if (reaction.error == 0) storage_->content_.resize(bytes);
    storage_->end(call, {}, reaction.error);
    return reaction.error;
  }

  int sync(bool) override {
    const auto [call, reaction] = begin({BackingCall::sync, {}});
    const std::scoped_lock lock(storage_->mutex_);
    storage_->end(call, {}, reaction.error);
    return reaction.error;
  }

  std::int64_t size() override {
    const std::scoped_lock lock(storage_->mutex_);
    return static_cast<std::int64_t>(storage_->content_.size());
  }

 private:
  std::pair<Storage::Calls::iterator, Reaction> begin(const BackingCall& call) {
    const auto begun = storage_->begin(call);
    const Reaction reaction = storage_->script ? storage_->script(call) : Reaction{};
    if (reaction.delay.count() > 0) std::this_thread::sleep_for(reaction.delay);
    return {begun, reaction};
  }

  const std::shared_ptr<Storage> storage_;
};

}  // namespace cairn
