// The inside of a PeerNetwork: connections (peer_core.cpp), messages (peer_messages.cpp), failures
// and hangs (peer_failure.cpp).
//
// One lock guards everything. The thread that communicates moves the messages while it waits
// (idle); while it does something else, the watching thread looks every `tick`, answers, and
// notices failures. It never copies from another process's memory: that is left to the thread that
// receives.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/contact.hpp"
#include "comm/link.hpp"
#include "comm/peer_network.hpp"

namespace cairn {

class PeerCore final : public LinkReader, public std::enable_shared_from_this<PeerCore> {
 public:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  PeerCore(int rank, int size, PeerNetworkOptions options);
  ~PeerCore() override;

  // Opening, in this order.
  Status listen(const PeerNetwork::Exchange& exchange);
  Status connect_neighbours();
  Status start_watching();

  int rank() const { return rank_; }
  int size() const { return size_; }
  const PeerNetworkOptions& options() const { return options_; }
  /// False in a process made by fork(), which must leave everything alone.
  bool is_in_its_process() const;

  // Of a communicator.
  void begin_channel(std::uint32_t channel);
  void end_channel(std::uint32_t channel);
  void send(Operation& operation);
  void receive(Operation& operation);
  bool test(const Operation& operation);
  /// Of an operation that is not done: nothing uses its buffer afterwards.
  void withdraw(Operation& operation);
  void idle(std::uint32_t channel, std::uint64_t& seen);

  void cancel(std::uint32_t channel, const Error& why);
  Status failure() const;
  Status death() const;
  PeerNetworkCounts counts() const;
  void report_awaited(std::chrono::milliseconds waited);
  void report_late(std::chrono::milliseconds waited);
  Status close();
  bool leave(std::chrono::milliseconds at_most);

 private:
  /// A message that no receive has asked for: `kept`, or at `address` of its sender, or of this
  /// rank.
  struct Arrived {
    std::uint32_t channel = 0;
    std::uint32_t tag = 0;
    std::uint64_t bytes = 0;
    Blob kept;
    bool is_offer = false;
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    Operation* own = nullptr;
  };
  /// What waits for a connection.
  struct Waiting {
    Frame frame;
    Bytes payload;
    Blob owned;
    Operation* owner = nullptr;
  };
  struct Peer {
    Contact contact;
    std::uint64_t link = 0;
    std::deque<Waiting> waiting;
    std::list<Arrived> arrived;
    std::list<Operation*> posted;
    std::map<std::uint64_t, Operation*> offered;  ///< sends, by their ids
    std::map<std::uint64_t, Operation*> pulled;   ///< receives, by the ids of their senders
    std::size_t unreturned = 0;  ///< room at the peer that this rank's messages may take
    std::size_t owed = 0;        ///< room here that the peer does not know of yet
    std::vector<Way> ways;
    std::size_t next_way = 0;
    std::string why_not;                                ///< what became of the ways that were tried
    std::optional<Clock::time_point> refused_since;     ///< by all ways
    std::optional<Clock::time_point> must_be_there_by;  ///< the peer connects, or a try follows
    bool is_awaited = false;
    bool has_left = false;
  };
  /// A message to be copied from its sender's memory.
  struct Copy {
    int peer = 0;
    std::uint64_t link = 0;
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    Operation* into = nullptr;
  };

  // LinkReader
  MutableBytes place_for(Link& link, const Frame& frame) override;
  Status received(Link& link, const Frame& frame, Bytes payload) override;

  // Connections.
  std::vector<int> neighbours() const;
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  Link* link_of(int rank);
  std::string name_of(int rank);
  void reach(int rank);
  void try_ways(int rank);
  void note_failed_way(Peer& other, const std::string& why) const;
  std::chrono::milliseconds patience_with(const Link& link) const;
  void try_next_way(Link& link, const std::string& why_not);
  void connected(Link& link);
  void accept_from(const Socket& listening, bool is_local);
  Status answer_hello(Link& link, const Frame& frame, Bytes payload);
  Status take_welcome(Link& link, const Frame& frame, Bytes payload);
  void take_crossed(Link& link);
  void open_link(Link& link, int rank, std::uint64_t token_address);
  int copy(pid_t process, std::uint64_t address, MutableBytes to) const;
  Link& add_link(Socket socket, Link::Stage stage, bool is_ours);
  void watch(Link& link);
  void remove(std::uint64_t number);
  void flush(Link& link);
  void handle(std::uint64_t tag, std::uint32_t events);
  void read(Link& link);
  void sweep();
  void look_at_clock();
  void look_at_link(Link& link, Clock::time_point now);
  /// Waits for at most `timeout` without the lock, or not at all with it.
  void pump(Lock& lock, std::chrono::milliseconds timeout);
  void keep_watch();

  // Failure.
  void ended(Link& link, Link::End how);
  void process_ended(Link& link);
  void wait_for_proof(Link& link);
  void lost(const Link& link);
  void died(int rank);
  void cannot_reach(int rank, const std::string& why);
  void fail_network(Error error, bool is_death = false);
  void cancel_locked(std::uint32_t channel, Error why);
  void throw_if_over(std::uint32_t channel) const;
  void send_error(Frame::Kind kind, std::uint32_t channel, const Error& error);
  void send_error_to(Link& link, Frame::Kind kind, std::uint32_t channel, const Error& error);

  // Hangs.
  void begin_trace(std::chrono::milliseconds waited);
  void trace(const Frame& question);
  std::optional<Clock::duration> silence_of(const Link& link) const;
  std::optional<int> awaited() const;
  void give_reports(Lock& lock);

  // Messages.
  void submit(int to, const Frame& frame, Bytes payload = {}, Operation* owner = nullptr);
  void send_to_self(Operation& operation);
  void begin(Operation& operation);
  bool deliver(Operation& receive, std::uint64_t bytes);
  void done(Operation& operation);
  Operation* take_posted(int from, const Frame& frame);
  void take_message(Link& link, const Frame& frame, Bytes payload);
  void take_offer(Link& link, const Frame& frame);
  void fetch(int from, const Arrived& offer, Operation& into);
  void pull(int from, std::uint64_t id, Operation& into);
  void take_segment(Link& link, const Frame& frame);
  Status take_answer(Link& link, const Frame& frame);
  void take_bye(Link& link);
  bool has_messages_with(Peer& left) const;
  void give_room(int to, std::uint64_t bytes);
  void copy_first(Lock& lock);
  void finish_copy(const Copy& done_copy, int error_number);
  void drop_arrived_until(std::uint32_t channel);
  bool is_stale(std::uint32_t channel) const { return channel <= ended_channel_; }

  const int rank_;
  const int size_;
  const PeerNetworkOptions options_;
  const pid_t process_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Socket epoll_;
  Socket local_listener_;
  Socket network_listener_;
  std::vector<Peer> peers_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Link>> links_;
  std::uint64_t next_link_ = 16;
  std::uint64_t next_id_ = 1;
  std::size_t strangers_ = 0;
  std::deque<Copy> copies_;
  std::uint64_t version_ = 1;  ///< of all that a waiting thread may have to look at
  std::uint32_t ended_channel_ = 0;
  std::map<std::uint32_t, Error> cancelled_;
  std::optional<Error> failed_;
  bool is_death_ = false;                     ///< that is why, and it is proven
  std::atomic<bool> is_interrupted_ = false;  ///< something is in cancelled_ or failed_
  bool is_pumping_ = false;
  bool is_closing_ = false;  ///< each open link has got the farewell
  bool is_stopping_ = false;
  bool has_only_left_ = false;  ///< that is what failed_ says
  bool has_thread_ = false;
  Clock::time_point last_look_;
  std::uint64_t next_order_ = 1;
  std::map<std::uint64_t, const Operation*> under_way_;  ///< by their order; not done
  Clock::time_point last_idle_;  ///< when the thread that communicates has last waited for messages
  std::vector<std::string> reports_;  ///< to be given without the lock
  PeerNetworkCounts counts_;
};

}  // namespace cairn
