#include "session/prefix_identity.hpp"

#include <array>
#include <limits>
#include <set>
#include <span>

#include "prefix/prefix_folder.hpp"

namespace cairn {
namespace {

using State = RecordedId::State;

/// The lowest rank for which this is true; nothing if there is none.
std::optional<int> first_rank(Communicator& comm, bool mine) {
  constexpr std::int64_t no_rank = std::numeric_limits<std::int64_t>::max();
  std::array<std::int64_t, 1> first = {mine ? comm.rank() : no_rank};
  comm.allreduce(first, Reduce::min);
  if (first[0] == no_rank) return std::nullopt;
  return static_cast<int>(first[0]);
}

class Search {
 public:
  Search(Communicator& comm, Files& files, Clock& clock, const Settings& settings, const Log& log)
      : comm_(comm), files_(files), clock_(clock), settings_(settings), log_(log) {}

  Result<PrefixIdentity> run(const Placement& placement) {
    CAIRN_TRY(agree(comm_, find_folders(placement)));
    if (comm_.rank() == 0) recorded_ = read_or_make_room();
    share_recorded();
    look_for_copy();
    PrefixIdentity identity = chosen();
    warn_of_others();
    const bool is_new = identity.folder == PrefixId::none;
    if (is_new) identity.folder = recorded_.state == State::known ? recorded_.id : draw();
    tell_what_is_wrong(is_new);
    settle(identity, is_new);
    return identity;
  }

 private:
  /// On one rank of each node. A cache that cannot be looked into now may be the one to restart
  /// from.
  Status find_folders(const Placement& placement) {
    if (placement.beside(comm_.rank()).front() != comm_.rank()) return {};
    std::set<std::string> bases = {expand_node(settings_.control_base, settings_.node_name)};
    for (const StoreSettings& store : settings_.stores)
      if (store.enabled && (!store.shared() || comm_.rank() == 0))
        bases.insert(expand_node(store.path, settings_.node_name));
    std::vector<std::string> unreadable;
    for (const std::string& base : bases)
      for (JobFolder& folder : find_job_folders(files_, base, settings_, unreadable))
        found_.push_back(std::move(folder));
    return unreadable.empty() ? Status{} : fail(Code::io, "{}", unreadable.front());
  }

  /// On rank 0. A directory that has no id and takes none may be a mount point without its file
  /// system: who owns the caches is then as unknown as where nothing can be read.
  RecordedId read_or_make_room() {
    RecordedId recorded = read_prefix_id(files_, settings_.prefix);
    if (recorded.state != State::none) return recorded;
    const Status made = make_folders(files_, PrefixFolder{settings_.prefix}.root(), 0777);
    if (made) return recorded;
    return {State::unreadable, PrefixId::none, made.error().text};
  }

  void share_recorded() {
    std::array<std::uint64_t, 2> shared = {static_cast<std::uint64_t>(recorded_.state),
                                           static_cast<std::uint64_t>(recorded_.id)};
    comm_.bcast(std::as_writable_bytes(std::span(shared)), 0);
    recorded_.state = static_cast<State>(shared[0]);
    recorded_.id = PrefixId{shared[1]};
  }

  void look_for_copy() {
    const RecordedId seen = with_copy_seen(files_, recorded_, settings_.prefix, found_);
    const auto witness = first_rank(comm_, seen.state == State::copied);
    if (!witness) return;
    recorded_.state = State::copied;
    if (*witness == comm_.rank())
      log_.warning(
          "{} is a copy of {}, which is still there: the caches of the job stay with that "
          "directory. This one gets an id of its own, and the run restarts from what is in it",
          settings_.prefix, seen.trouble);
  }

  /// By the folder last used, whichever node it is on.
  PrefixIdentity chosen() {
    const JobFolder* mine = choose_job_folder(recorded_, settings_.prefix, found_);
    std::array<std::int64_t, 1> last = {mine != nullptr ? mine->used_ns : -1};
    comm_.allreduce(last, Reduce::max);
    const auto winner = first_rank(comm_, mine != nullptr && mine->used_ns == last[0]);
    if (!winner) return {};
    std::array<std::uint64_t, 2> ids{};
    if (*winner == comm_.rank())
      ids = {static_cast<std::uint64_t>(mine->name_id), static_cast<std::uint64_t>(mine->note.id)};
    comm_.bcast(std::as_writable_bytes(std::span(ids)), *winner);
    return {PrefixId{ids[0]}, PrefixId{ids[1]}, false};
  }

  void warn_of_others() {
    const auto others = left_by_another(recorded_, settings_.prefix, found_);
    const auto witness = first_rank(comm_, !others.empty());
    if (!witness || *witness != comm_.rank()) return;
    for (const JobFolder& other : others)
      log_.warning(
          "{} was left by a run at this path ({}) that did not see the directory that is there "
          "now: "
          "it is not used. To restart from it, end this run and give the directory that id: "
          "\"cairn "
          "index id {} -p {}\"; to remove it, run on each node: rm -r {}",
          other.path, settings_.prefix, text_of(other.owner()), settings_.prefix, other.path);
  }

  PrefixId draw() {
    std::uint64_t id = comm_.rank() == 0 ? static_cast<std::uint64_t>(draw_prefix_id(clock_)) : 0;
    comm_.bcast(mutable_bytes_of(id), 0);
    return PrefixId{id};
  }

  void tell_what_is_wrong(bool is_new) const {
    const bool unread = recorded_.state == State::unreadable || recorded_.state == State::damaged;
    if (comm_.rank() != 0 || !unread || !uses_prefix()) return;
    if (is_new && is_absent()) return;  // SCR_Init has a warning of its own for that
    if (!is_new)
      log_.warning("{}: the job goes on with the caches that its last run at {} has left",
                   recorded_.trouble, settings_.prefix);
    else
      log_.warning("{}: no cache on these nodes is known to be for {}, so the caches begin empty",
                   recorded_.trouble, settings_.prefix);
  }

  bool is_absent() const {
    const auto there = files_.info(settings_.prefix);
    return !there && there.error().code == Code::not_found;
  }
  bool uses_prefix() const { return settings_.flush || settings_.fetch; }

  void settle(PrefixIdentity& identity, bool is_new) {
    const PrefixId wanted = identity.owner == PrefixId::none ? identity.folder : identity.owner;
    std::array<std::uint64_t, 1> there = {0};
    if (comm_.rank() == 0 && recorded_.state != State::unreadable) {
      const auto id = record_prefix_id(files_, clock_, settings_.prefix, wanted, recorded_);
      if (id) there[0] = static_cast<std::uint64_t>(*id);
      if (!id && uses_prefix())
        log_.warning(
            "{}: without an id in the prefix directory the caches are found by its path alone, and "
            "not when it is moved",
            id.error().text);
    }
    comm_.bcast(std::as_writable_bytes(std::span(there)), 0);
    const PrefixId id{there[0]};
    if (id == PrefixId::none) return;
    // Another job that starts here at the same time may have recorded its own first.
    if (is_new) identity.folder = id;
    identity.owner = id;
    identity.is_settled = true;
  }

  Communicator& comm_;
  Files& files_;
  Clock& clock_;
  const Settings& settings_;
  const Log& log_;
  std::vector<JobFolder> found_;
  RecordedId recorded_;
};

}  // namespace

Result<PrefixIdentity> find_prefix_identity(Communicator& comm, Files& files, Clock& clock,
                                            const Placement& placement, const Settings& settings,
                                            const Log& log) {
  return Search(comm, files, clock, settings, log).run(placement);
}

void settle_prefix_identity(Communicator& comm, Files& files, Clock& clock,
                            const Settings& settings, const Log& log, PrefixIdentity& identity) {
  if (identity.is_settled) return;
  std::uint64_t there = 0;
  if (comm.rank() == 0) {
    const PrefixId wanted = identity.owner == PrefixId::none ? identity.folder : identity.owner;
    const RecordedId recorded = read_prefix_id(files, settings.prefix);
    const auto id = record_prefix_id(files, clock, settings.prefix, wanted, recorded);
    if (id) there = static_cast<std::uint64_t>(*id);
  }
  comm.bcast(mutable_bytes_of(there), 0);
  const PrefixId id{there};
  if (id == PrefixId::none) return;
  identity.is_settled = true;
  if (identity.owner == PrefixId::none) identity.owner = id;
  if (identity.owner != id && comm.rank() == 0)
    log.warning(
        "{} could not be read at SCR_Init, and is another directory than that of the caches (its "
        "id is {}, theirs is {}): this run goes on with them, and copies to it what is due. The "
        "next run there restarts from what is copied",
        settings.prefix, text_of(id), text_of(identity.owner));
}

}  // namespace cairn
