#include "comm/alone.hpp"

#include <algorithm>
#include <stdexcept>

namespace cairn {
namespace {

class Sent final : public PendingMessage {
 public:
  bool test() override { return true; }
};

}  // namespace

class Alone::Received final : public PendingMessage {
 public:
  Received(Channel& channel, MutableBytes buffer)
      : channel_(channel), number_(channel.awaited++), buffer_(buffer) {}

  bool test() override {
    const auto message = channel_.messages.find(number_);
    if (message == channel_.messages.end()) return is_here_;
    if (message->second.size() != buffer_.size())
      throw std::logic_error("a message has another size than its receiver expects");
    std::copy(message->second.begin(), message->second.end(), buffer_.begin());
    channel_.messages.erase(message);
    is_here_ = true;
    return true;
  }

 private:
  Channel& channel_;
  const std::uint64_t number_;
  const MutableBytes buffer_;
  bool is_here_ = false;
};

Request Alone::isend(Bytes data, int /*to*/, int tag) {
  Channel& channel = channels_[tag];
  channel.messages[channel.sent++] = Blob(data.begin(), data.end());
  return std::make_unique<Sent>();
}

Request Alone::irecv(MutableBytes buffer, int /*from*/, int tag) {
  return std::make_unique<Received>(channels_[tag], buffer);
}

}  // namespace cairn
