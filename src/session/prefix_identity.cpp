#include "session/prefix_identity.hpp"

#include <array>
#include <limits>
#include <map>
#include <span>

#include "prefix/is_prefix_used.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/wire.hpp"
#include "session/levels.hpp"
#include "session/shared_warnings.hpp"

namespace cairn {
namespace {

/// 0: not known.
std::uint64_t file_system_of(Files& files, const std::string& prefix) {
  const auto directory = files.info(prefix);
  return directory ? directory->id.file_system : 0;
}

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
    const Status found = agree(comm_, find_folders(placement));
    warn_of_nodes(comm_, log_, settings_.node_name, folders_.ignored);
    CAIRN_TRY(found);
    if (comm_.rank() == 0) recorded_ = read_recorded();
    share_recorded(0);
    look_for_copy();
    PrefixIdentity identity = chosen();
    warn_of_left();
    const bool is_new = identity.folder == PrefixId::none;
    if (is_new) identity.folder = recorded_.state == State::known ? recorded_.id : draw();
    warn_of_unread_id(is_new);
    settle(identity, is_new);
    if (identity.is_new && comm_.rank() == 0)
      identity.file_system = file_system_of(files_, settings_.prefix);
    return identity;
  }

 private:
  /// On one rank of each node. A cache that cannot be read now may be the one to restart from; but
  /// what lies in a store that no checkpoint uses keeps no run from beginning.
  Status find_folders(const Placement& placement) {
    if (placement.beside(comm_.rank()).front() != comm_.rank()) return {};
    std::map<std::string, bool> needed = {
        {expand_node(settings_.control_base, settings_.node_name), true}};
    for (const StoreSettings& store : settings_.stores)
      if (store.enabled && (!store.shared() || comm_.rank() == 0))
        needed[expand_node(store.path, settings_.node_name)] |= is_used(store, settings_);
    for (const auto& [base, is_needed] : needed) find_below(base, is_needed);
    if (folders_.unreadable.empty()) return {};
    return fail(Code::io, "{}", folders_.unreadable.front());
  }

  void find_below(const std::string& base, bool is_needed) {
    const std::size_t known = folders_.unreadable.size();
    find_job_folders(files_, base, settings_, folders_);
    if (is_needed) return;
    for (std::size_t i = known; i < folders_.unreadable.size(); ++i)
      folders_.ignored.push_back(fmt::format(
          "{}; no checkpoint uses the store {}, so the run begins without what is in that store",
          folders_.unreadable[i], base));
    folders_.unreadable.resize(known);
  }

  /// On rank 0. A directory without an id in which .cairn cannot be made may be a mount point
  /// without its file system: its id is then as unknown as that of one that cannot be read.
  RecordedId read_recorded() {
    RecordedId recorded = read_prefix_id(files_, settings_.prefix);
    if (recorded.state != State::none) return recorded;
    const Status made = make_folders(files_, PrefixFolder{settings_.prefix}.root(), 0777);
    if (made) return recorded;
    return {State::unreadable, PrefixId::none, made.error().text};
  }

  /// All but the trouble, which only rank 0 reports.
  void share_recorded(int from) {
    Encoder out;
    out.u32(static_cast<std::uint32_t>(recorded_.state));
    out.u64(static_cast<std::uint64_t>(recorded_.id));
    out.text(recorded_.path);
    out.u32(recorded_.is_in_place ? 1 : 0);
    Blob shared = out.take();
    bcast_blob(comm_, shared, from);
    Decoder in(shared);
    recorded_.state = static_cast<State>(in.u32());
    recorded_.id = PrefixId{in.u64()};
    recorded_.path = in.text();
    recorded_.is_in_place = in.boolean();
  }

  void look_for_copy() {
    RecordedId seen = with_copy_seen(files_, recorded_, settings_.prefix, folders_.found);
    const bool is_found = seen.state == State::copied && recorded_.state != State::copied;
    const auto witness = first_rank(comm_, is_found);
    if (!witness) return;
    if (*witness == comm_.rank()) recorded_ = std::move(seen);
    share_recorded(*witness);
  }

  /// By the folder last used, whichever node it is on.
  PrefixIdentity chosen() {
    const JobFolder* mine = choose_job_folder(recorded_, settings_.prefix, folders_.found);
    std::array<std::int64_t, 1> last = {mine != nullptr ? mine->used_ns : -1};
    comm_.allreduce(last, Reduce::max);
    const auto winner = first_rank(comm_, mine != nullptr && mine->used_ns == last[0]);
    if (!winner) return {};
    std::array<std::uint64_t, 2> ids{};
    if (*winner == comm_.rank())
      ids = {static_cast<std::uint64_t>(mine->name_id), static_cast<std::uint64_t>(mine->note.id)};
    comm_.bcast(std::as_writable_bytes(std::span(ids)), *winner);
    return {PrefixId{ids[0]}, PrefixId{ids[1]}};
  }

  /// One node speaks for all.
  void warn_of_left() {
    const auto left = left_by_another(recorded_, settings_.prefix, folders_.found);
    const auto witness = first_rank(comm_, !left.empty());
    if (!witness || *witness != comm_.rank()) return;
    for (const std::string& text : texts_of_left(recorded_, settings_.prefix, left))
      log_.warning("node {}: {}", settings_.node_name, text);
  }

  PrefixId draw() {
    std::uint64_t id = comm_.rank() == 0 ? static_cast<std::uint64_t>(draw_prefix_id(clock_)) : 0;
    comm_.bcast(mutable_bytes_of(id), 0);
    return PrefixId{id};
  }

  void warn_of_unread_id(bool is_new) const {
    const bool is_unread =
        recorded_.state == State::unreadable || recorded_.state == State::damaged;
    if (comm_.rank() != 0 || !is_unread || !uses_prefix()) return;
    if (is_new && is_no_directory(files_, settings_.prefix))
      return;  // SCR_Init has a warning of its own for that
    if (is_new)
      log_.warning("{}. No cache on these nodes was last used in {}, so the caches begin empty",
                   recorded_.trouble, settings_.prefix);
    else
      log_.warning("{}. The job continues with the caches that were last used in {}",
                   recorded_.trouble, settings_.prefix);
  }

  bool uses_prefix() const { return settings_.flush || settings_.fetch; }

  void settle(PrefixIdentity& identity, bool is_new) {
    const PrefixId wanted = identity.owner == PrefixId::none ? identity.folder : identity.owner;
    std::array<std::uint64_t, 1> there = {0};
    if (comm_.rank() == 0 && recorded_.state != State::unreadable)
      there[0] = static_cast<std::uint64_t>(record(wanted));
    comm_.bcast(std::as_writable_bytes(std::span(there)), 0);
    const PrefixId id{there[0]};
    if (id == PrefixId::none) return;
    // Another job that starts here at the same time may have recorded its own first.
    if (is_new) identity.folder = id;
    identity.owner = identity.found = id;
    identity.is_new = recorded_.state == State::none;
    identity.is_settled = true;
  }

  /// On rank 0. The id that the directory has now, none if it has none.
  PrefixId record(PrefixId wanted) {
    const auto id = record_prefix_id(files_, clock_, settings_.prefix, wanted, recorded_);
    if (id) return *id;
    const bool is_known = recorded_.state == State::known;
    if (uses_prefix() && is_known)
      log_.warning(
          "{}. So the id of {} is still recorded with the place where the directory was before. "
          "Make "
          ".cairn writable before you move or copy the directory again, or it may lose its caches",
          id.error().text, settings_.prefix);
    else if (uses_prefix())
      log_.warning(
          "{}. As long as {} has no id, a run finds its caches only by this path: do not move the "
          "directory",
          id.error().text, settings_.prefix);
    return is_known ? recorded_.id : PrefixId::none;
  }

  Communicator& comm_;
  Files& files_;
  Clock& clock_;
  const Settings& settings_;
  const Log& log_;
  JobFolders folders_;
  RecordedId recorded_;
};

/// Of the directory that this run owns now. If it was made anew since, it gets the same id again.
void see_new_id(Communicator& comm, Files& files, Clock& clock, const std::string& prefix,
                PrefixIdentity& identity) {
  auto id = static_cast<std::uint64_t>(identity.found);
  if (comm.rank() == 0) {
    const auto now =
        record_prefix_id(files, clock, prefix, identity.found, read_prefix_id(files, prefix));
    if (now) id = static_cast<std::uint64_t>(*now);
  }
  comm.bcast(mutable_bytes_of(id), 0);
  identity.found = PrefixId{id};
  identity.is_new = false;
}

}  // namespace

Result<PrefixIdentity> find_prefix_identity(Communicator& comm, Files& files, Clock& clock,
                                            const Placement& placement, const Settings& settings,
                                            const Log& log) {
  return Search(comm, files, clock, settings, log).run(placement);
}

void settle_prefix_identity(Communicator& comm, Files& files, Clock& clock,
                            const Settings& settings, const Log& log, PrefixIdentity& identity) {
  if (identity.is_new) see_new_id(comm, files, clock, settings.prefix, identity);
  if (identity.is_settled) return;
  std::uint64_t there = 0;
  if (comm.rank() == 0) {
    const PrefixId wanted = identity.owner == PrefixId::none ? identity.folder : identity.owner;
    const RecordedId recorded = read_prefix_id(files, settings.prefix);
    const auto id = record_prefix_id(files, clock, settings.prefix, wanted, recorded);
    if (id) there = static_cast<std::uint64_t>(*id);  // else SCR_Init has warned, or the next will
  }
  comm.bcast(mutable_bytes_of(there), 0);
  const PrefixId id{there};
  if (id == PrefixId::none) return;
  identity.is_settled = true;
  identity.found = id;
  if (identity.owner == PrefixId::none) identity.owner = id;
  if (identity.owner != id && comm.rank() == 0)
    log.warning(
        "{} could not be read at SCR_Init, and is another directory than that of the caches: its "
        "id is {}, theirs is {}. This run continues with these caches and copies datasets to the "
        "directory; the next run there restarts from what is copied",
        settings.prefix, text_of(id), text_of(identity.owner));
}

/// A damaged id was the directory's own, as at SCR_Init.
Status check_prefix_identity(Files& files, const std::string& prefix,
                             const PrefixIdentity& identity) {
  if (identity.found == PrefixId::none) return {};
  const RecordedId now = read_prefix_id(files, prefix);
  if (now.id == identity.found || now.state == State::damaged) return {};
  if (identity.is_new && now.id != PrefixId::none) return {};
  // Made anew by the program: a mount point would be on another file system.
  const bool is_made_anew = identity.is_new && now.state == State::none &&
                            identity.file_system != 0 &&
                            file_system_of(files, prefix) == identity.file_system;
  if (is_made_anew) return {};
  if (now.state == State::unreadable)
    return fail(Code::io, "cannot read the id of {}, so it may be another directory now: {}",
                prefix, now.trouble);
  return fail(
      Code::io,
      "{0} is not the directory that it was when this run began: its id was {1}, and now it "
      "has {2}. Its file system may not be mounted, or another directory has its place. "
      "This run uses it again when it is back; if you have replaced it, run: cairn index id "
      "{1} -p {0}",
      prefix, text_of(identity.found),
      now.state == State::none ? "none" : "the id " + text_of(now.id));
}

}  // namespace cairn
