// The only way ranks talk to each other.
//
// A function of Cairn is collective if and only if its first parameter is a Communicator&: all
// ranks of that communicator must call it, in the same order. A rank is a role, not a process: MPI
// implements this in the job, a Team of threads in tests and in post-mortem tools, and wrappers
// check, count or break it.
//
// Nothing here blocks inside the transport. A wait tests and then calls idle(), which gives the
// processor away: with more ranks than cores a blocking call costs tens of milliseconds.
//
// Messages between two ranks with one tag arrive in the order sent. The receiver must pass a buffer
// of exactly the size sent, at most max_message_bytes (1 GiB; cut longer data into pieces). A rank
// may send to itself. Failure of the transport itself is not an Error: MPI ends the job by its
// own handler, a Team unwinds all its ranks (docs/adr/0003-transport-failure.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// A send or receive under way. It must be waited for before it is destroyed: its buffer belongs to
/// the transport until then. While an exception unwinds it may be destroyed unwaited, which takes
/// the message back; so declare buffers before requests, that the buffer still lives then.
class PendingMessage {
 public:
  virtual ~PendingMessage() = default;
  /// True once complete; stays true.
  virtual bool test() = 0;
};

/// Null once the message has been waited for.
using Request = std::unique_ptr<PendingMessage>;

enum class Reduce { sum, min, max };

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Local calls, complete when the Request tests true. `tag` is from 0 to max_tag.
  virtual Request isend(Bytes data, int to, int tag) = 0;
  virtual Request irecv(MutableBytes buffer, int from, int tag) = 0;

  /// Called when no message this rank waits for is complete; may return at any time, and may sleep
  /// until something happens to a message of this rank, so it must not be used to wait for others.
  virtual void idle() = 0;

  // Collectives, by binomial trees over the calls above. A transport with better ones overrides
  // them.
  virtual void barrier();
  /// Element-wise over all ranks; the result replaces `values` everywhere.
  virtual void allreduce(std::span<std::int64_t> values, Reduce op);
  virtual void bcast(MutableBytes data, int root);
  /// `all` holds size() pieces as large as `mine`, in rank order.
  virtual void allgather(Bytes mine, MutableBytes all);

  /// Who this rank is, for people ("rank 2 on n1"), also as a member of a Group: agree() adds it to
  /// the errors of this rank. Empty: unknown.
  const std::string& place() const { return place_; }
  void set_place(std::string place) { place_ = std::move(place); }

  static constexpr int max_tag = 16000;
  /// Tags from here on are the collectives' own.
  static constexpr int first_reserved_tag = 15001;
  static constexpr std::size_t max_message_bytes = std::size_t{1} << 30;

 private:
  std::string place_;
};

// --- waiting (local) ---

void wait(Communicator& comm, Request& request);
void wait_all(Communicator& comm, std::span<Request> requests);
/// Index of a request that is complete, and sets it null; null entries are passed over.
/// -1 when all are null.
int wait_any(Communicator& comm, std::span<Request> requests);

// --- point to point, blocking (local) ---

void send(Communicator& comm, Bytes data, int to, int tag);
void recv(Communicator& comm, MutableBytes buffer, int from, int tag);

// --- collectives built on the above ---

std::int64_t allreduce(Communicator& comm, std::int64_t value, Reduce op);

struct Scan {
  std::vector<std::int64_t> before;  ///< sums over the ranks below this one
  std::vector<std::int64_t> total;   ///< sums over all ranks
};

/// Element-wise; `values` is equally long on all ranks. About 2 log2(size) messages a rank.
Scan exclusive_scan(Communicator& comm, std::span<const std::int64_t> values);

/// A byte string of any length from `root` to all: two broadcasts.
void bcast_blob(Communicator& comm, Blob& blob, int root);

/// All ranks return the same verdict: success if `mine` is success on all, else the error of the
/// lowest rank that has one, its `rank` field set; where it tells of files, place() is added to its
/// text. Costs one allreduce when all is well.
Status agree(Communicator& comm, Status mine);

/// A small message to one rank, or one from it.
struct Parcel {
  int peer = 0;
  Blob payload;
};

/// Delivers every parcel to its peer in ceil(log2(size)) steps, whoever sends to whom; a rank
/// learns only what was sent to it. For kilobytes, not for files. Order: by sender, then as sent.
std::vector<Parcel> exchange(Communicator& comm, std::vector<Parcel> outgoing);

/// On rank 0 what the first `most` ranks that have something give, in the order of ranks; nothing
/// on the others. `mine` is empty where a rank has nothing. By a tree of which no message holds
/// more than that.
std::vector<Blob> gather_first(Communicator& comm, Bytes mine, std::size_t most);

}  // namespace cairn
