#include "comm/team.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <system_error>

namespace cairn {
namespace {

class TeamRequest;

/// A send that no receive has met yet.
struct Offer {
  int from;
  int tag;
  Bytes data;            ///< the sender's own buffer, or `kept`
  Blob kept;             ///< the copy, when buffered
  TeamRequest* request;  ///< null when buffered: the sender has gone on
};

/// A receive that no send has met yet.
struct Posted {
  int from;
  int tag;
  MutableBytes buffer;
  TeamRequest* request;
};

/// What is under way to one rank, and its bed. All members are under `mutex`; no thread ever holds
/// two of these. Bytes are copied under it too, from buffer to buffer, by whoever comes second; so
/// a request that has been withdrawn under it leaves its buffer to its owner.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t version = 0;  ///< of all that its rank may be waiting for
  bool asleep = false;
  bool closed = false;  ///< nothing is matched any more
  std::list<Offer> offers;
  std::list<Posted> posted;
};

/// The first, that is oldest, of a queue of `from` with `tag`; else its end.
template <class Queue>
auto find_in(Queue& queue, int from, int tag) {
  return std::find_if(queue.begin(), queue.end(),
                      [&](const auto& entry) { return entry.from == from && entry.tag == tag; });
}

}  // namespace

struct Team::Shared {
  Shared(int ranks, Mode how) : size(ranks), mode(how), boxes(static_cast<std::size_t>(ranks)) {}

  Mailbox& box(int rank) { return boxes[static_cast<std::size_t>(rank)]; }

  void reset();
  void check(int peer, int tag) const;
  void throw_if_stopped() const {
    if (stopped) throw TeamStopped();
  }
  /// Tells a rank that something has changed for it. Its mailbox is locked by the caller.
  void wake_locked(Mailbox& box);
  void wake(int rank);
  /// Sleeps until woken, or throws TeamDeadlock.
  void sleep(Mailbox& box, std::unique_lock<std::mutex>& lock);
  void stop(std::exception_ptr why);
  void run_rank(int rank, const std::function<void(Communicator&)>& rank_main);
  void end_rank();

  const int size;
  const Mode mode;
  std::vector<Mailbox> boxes;
  std::atomic<bool> stopped = false;
  // A rank is woken only by one that is awake, so when the last goes to sleep there is a deadlock.
  std::atomic<int> awake = 0;
  std::atomic<int> ended = 0;
  std::mutex first_error_mutex;
  std::exception_ptr first_error;
};

namespace {

/// Known to the mailbox it was put into until it is done. Whoever completes it sets `done` under
/// the lock of that mailbox and touches it no more.
class TeamRequest final : public PendingMessage {
 public:
  TeamRequest(Team::Shared& shared, Mailbox& box) : shared_(shared), box_(box) {}

  ~TeamRequest() override {
    if (done) return;
    const auto is_this = [this](const auto& entry) { return entry.request == this; };
    const std::lock_guard lock(box_.mutex);
    box_.offers.remove_if(is_this);
    box_.posted.remove_if(is_this);
  }

  bool test() override {
    shared_.throw_if_stopped();
    return done;
  }

  std::atomic<bool> done = false;

 private:
  Team::Shared& shared_;
  Mailbox& box_;
};

/// One rank's end of the Team.
class TeamCommunicator final : public Communicator {
 public:
  TeamCommunicator(Team::Shared& shared, int rank) : shared_(shared), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return shared_.size; }
  Request isend(Bytes data, int to, int tag) override;
  Request irecv(MutableBytes buffer, int from, int tag) override;
  void idle() override;

 private:
  Team::Shared& shared_;
  const int rank_;
  std::uint64_t seen_ = 0;  ///< version of the mailbox before the latest round of tests
};

void copy(Bytes data, MutableBytes buffer, int from, int tag) {
  if (data.size() != buffer.size())
    throw std::logic_error(
        fmt::format("rank {} sends {} bytes with tag {}, its receiver expects {}", from,
                    data.size(), tag, buffer.size()));
  if (!data.empty()) std::memcpy(buffer.data(), data.data(), data.size());
}

Request TeamCommunicator::isend(Bytes data, int to, int tag) {
  shared_.check(to, tag);
  Mailbox& box = shared_.box(to);
  auto request = std::make_unique<TeamRequest>(shared_, box);
  const std::lock_guard lock(box.mutex);
  const auto posted = find_in(box.posted, rank_, tag);
  if (posted != box.posted.end() && !box.closed) {
    copy(data, posted->buffer, rank_, tag);
    posted->request->done = true;
    request->done = true;
    box.posted.erase(posted);
    shared_.wake_locked(box);
  } else if (shared_.mode == Team::Mode::buffered) {
    Offer& offer =
        box.offers.emplace_back(Offer{rank_, tag, {}, Blob(data.begin(), data.end()), nullptr});
    offer.data = offer.kept;
    request->done = true;
  } else {
    box.offers.push_back(Offer{rank_, tag, data, {}, request.get()});
  }
  return request;
}

Request TeamCommunicator::irecv(MutableBytes buffer, int from, int tag) {
  shared_.check(from, tag);
  Mailbox& box = shared_.box(rank_);
  auto request = std::make_unique<TeamRequest>(shared_, box);
  {
    const std::lock_guard lock(box.mutex);
    const auto offer = find_in(box.offers, from, tag);
    if (offer == box.offers.end() || box.closed) {
      box.posted.push_back(Posted{from, tag, buffer, request.get()});
      return request;
    }
    copy(offer->data, buffer, from, tag);
    if (offer->request) offer->request->done = true;
    request->done = true;
    box.offers.erase(offer);
  }
  if (shared_.mode == Team::Mode::rendezvous) shared_.wake(from);
  return request;
}

// What changed after `seen_` was taken may have been missed by the tests made since, so it ends the
// sleep before it begins.
void TeamCommunicator::idle() {
  shared_.throw_if_stopped();
  Mailbox& box = shared_.box(rank_);
  {
    std::unique_lock lock(box.mutex);
    if (box.version == seen_) shared_.sleep(box, lock);
    seen_ = box.version;
  }
  shared_.throw_if_stopped();
}

}  // namespace

void Team::Shared::reset() {
  for (Mailbox& box : boxes) {
    box.offers.clear();
    box.posted.clear();
    box.closed = false;
  }
  stopped = false;
  awake = size;
  ended = 0;
  first_error = nullptr;
}

void Team::Shared::check(int peer, int tag) const {
  throw_if_stopped();
  if (peer < 0 || peer >= size || tag < 0 || tag > Communicator::max_tag)
    throw std::logic_error(
        fmt::format("a team of {} has no rank {} or no tag {}", size, peer, tag));
}

void Team::Shared::wake_locked(Mailbox& box) {
  ++box.version;
  if (!box.asleep) return;
  box.asleep = false;
  ++awake;
  box.changed.notify_one();
}

void Team::Shared::wake(int rank) {
  Mailbox& sleeper = box(rank);
  const std::lock_guard lock(sleeper.mutex);
  wake_locked(sleeper);
}

void Team::Shared::sleep(Mailbox& box, std::unique_lock<std::mutex>& lock) {
  if (--awake == 0) {
    ++awake;
    throw TeamDeadlock();
  }
  box.asleep = true;
  box.changed.wait(lock, [&] { return !box.asleep; });
}

/// Ranks unwind, and their buffers go, only when `stopped` is set; before that every mailbox is
/// closed, so that no other thread copies to or from those buffers any more.
void Team::Shared::stop(std::exception_ptr why) {
  {
    const std::lock_guard lock(first_error_mutex);
    if (first_error) return;
    first_error = std::move(why);
  }
  for (Mailbox& each : boxes) {
    const std::lock_guard lock(each.mutex);
    each.closed = true;
  }
  stopped = true;
  for (int rank = 0; rank < size; ++rank) wake(rank);
}

void Team::Shared::end_rank() {
  ++ended;
  if (--awake == 0 && ended < size) stop(std::make_exception_ptr(TeamDeadlock()));
}

void Team::Shared::run_rank(int rank, const std::function<void(Communicator&)>& rank_main) {
  try {
    TeamCommunicator comm(*this, rank);
    rank_main(comm);
  } catch (const TeamStopped&) {
    // Unwound on behalf of the rank that has stopped the team.
  } catch (...) {
    stop(std::current_exception());
  }
  end_rank();
}

namespace {

struct RankThread {
  Team::Shared* shared;
  const std::function<void(Communicator&)>* rank_main;
  int rank;
  pthread_t thread;
};

void* enter(void* argument) {
  const auto& self = *static_cast<RankThread*>(argument);
  self.shared->run_rank(self.rank, *self.rank_main);
  return nullptr;
}

/// 0, or why there is no thread.
int start(RankThread& rank, std::size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error_number = pthread_create(&rank.thread, &attributes, enter, &rank);
  pthread_attr_destroy(&attributes);
  return error_number;
}

}  // namespace

Team::Team(int size, Mode mode) : shared_(std::make_unique<Shared>(size, mode)) {}
Team::~Team() = default;

void Team::run(const std::function<void(Communicator&)>& rank_main) {
  const std::size_t stack_bytes = shared_->size > 256 ? 256 << 10 : 1 << 20;
  shared_->reset();
  std::vector<RankThread> ranks(static_cast<std::size_t>(shared_->size));
  std::size_t started = 0;
  for (int error_number = 0; started < ranks.size(); ++started) {
    ranks[started] = {shared_.get(), &rank_main, static_cast<int>(started), {}};
    error_number = start(ranks[started], stack_bytes);
    if (error_number == 0) continue;
    shared_->stop(std::make_exception_ptr(std::system_error(error_number, std::generic_category(),
                                                            "cannot start the threads of a team")));
    break;
  }
  for (std::size_t i = 0; i < started; ++i) pthread_join(ranks[i].thread, nullptr);
  if (shared_->first_error) std::rethrow_exception(shared_->first_error);
}

}  // namespace cairn
