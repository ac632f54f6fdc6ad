// One connection between two processes of a PeerNetwork: frames out and in.
//
// Nothing here blocks or locks; the network calls it under its lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "comm/contact.hpp"
#include "comm/frame.hpp"

namespace cairn {

/// A send or a receive that its Request waits for.
struct Operation {
  int peer = 0;
  std::uint32_t tag = 0;
  std::uint32_t channel = 0;
  Bytes data;            ///< of a send
  MutableBytes buffer;   ///< of a receive
  std::uint64_t id = 0;  ///< of a send that was offered
  std::size_t filled = 0;
  std::uint64_t order = 0;  ///< greater than that of all before
  std::atomic<bool> done = false;
};

class Link;

/// What a link gives its frames to.
class LinkReader {
 public:
  virtual ~LinkReader() = default;
  /// The buffer for the payload of `frame`, of its size; an empty one leaves it to the link.
  virtual MutableBytes place_for(Link& link, const Frame& frame) = 0;
  /// An error ends the connection.
  virtual Status received(Link& link, const Frame& frame, Bytes payload) = 0;
};

class Link {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Stage {
    connecting,
    greeting,  ///< hello is sent or awaited
    open,
    lost,     ///< its socket has ended, and perhaps its process
    closing,  ///< to be closed as soon as all is sent
  };
  enum class End { none, more, closed, broken, rubbish };

  /// `limit` is for tests: given the number of bytes that a write would take, returns how many it
  /// may take.
  Link(std::uint64_t number, Socket socket, Stage begun_as,
       const std::function<std::size_t(std::size_t)>& limit, Time now);

  /// Behind all that is not yet sent. `owner` is done when the last byte is.
  void put(const Frame& frame, Bytes payload, Operation* owner);
  void put(const Frame& frame, Blob payload = {});
  /// In segments, between which other frames go.
  void put_in_segments(Operation& send);
  /// Sends what the socket takes. Returns 0 or why the connection has ended; calls `done` for each
  /// owner. Sets `broken_by`.
  int flush(const std::function<void(Operation&)>& done);
  bool has_output() const { return !output_.empty() || !streams_.empty(); }
  /// Of an operation that ends early: what must still be sent for it is copied.
  void forget(const Operation& operation);
  /// All but what is sent in part.
  void drop_output();

  /// Reads what is there, up to a limit that is fair to other links. `broken`: the network has
  /// ended the connection. `closed`: the other machine has, and nothing that was sent is missing.
  End read(LinkReader& reader, Time now);
  /// The payload under way no longer goes to `buffer`.
  void divert(MutableBytes buffer);

  const std::uint64_t number;
  Socket socket;
  Socket process_watch;
  Stage stage;
  int peer = -1;         ///< its rank, once that is known
  pid_t process = 0;     ///< to copy from its memory; 0: cannot
  bool is_ours = false;  ///< this process has begun it
  bool waits_to_write = false;
  bool has_said_bye = false;
  int broken_by = 0;               ///< the error number, once the network has ended the connection
  Operation* receiving = nullptr;  ///< the receive into which the payload under way goes
  Time begun;
  Time last_heard;
  Time last_sent;

 private:
  struct Output {
    FrameHeader header;
    Bytes payload;
    Blob owned;
    Operation* owner = nullptr;
    bool is_last_of_owner = true;
    std::size_t sent = 0;
  };

  void next_segment();
  void own_payload(Output& output);
  Status consume(LinkReader& reader, Bytes& input);
  Status begin_payload(LinkReader& reader);

  const std::function<std::size_t(std::size_t)>& limit_;
  std::deque<Output> output_;
  std::deque<Operation*> streams_;

  std::array<std::byte, 4096> staged_;
  std::size_t staged_bytes_ = 0;  ///< less than a header between two calls
  std::optional<Frame> frame_;    ///< whose payload is awaited
  MutableBytes target_;
  std::size_t target_filled_ = 0;
  Blob kept_;
};

}  // namespace cairn
