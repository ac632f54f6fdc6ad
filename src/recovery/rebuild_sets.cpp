#include "recovery/rebuild_sets.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "base/units.hpp"
#include "comm/team.hpp"
#include "files/background.hpp"
#include "recovery/written.hpp"

namespace cairn {
namespace {

using Set = std::vector<int>;  ///< ranks of the job, in the order of the ring

/// What is to be done of a dataset, according to outlines of its records.
struct Plan {
  Summary summary;
  std::uint64_t generation = 0;
  std::map<int, Set> sets;        ///< by their lowest rank
  std::vector<int> without_set;   ///< ranks that no record names
  bool protected_at_all = false;  ///< in some set a rank may be lost
};

void find_sets(const Remains& remains, Plan& plan) {
  std::vector<bool> known(plan.summary.ranks);
  for (const HeldPart& part : remains.parts)
    for (const auto* records : {&part.own, &part.kept})
      for (const HeldRecord& held : *records) {
        const Encoding& encoding = held.record.encoding;
        if (encoding.generation != plan.generation) continue;
        plan.protected_at_all = plan.protected_at_all || encoding.scheme != Scheme::single;
        plan.sets.try_emplace(*std::min_element(encoding.members.begin(), encoding.members.end()),
                              encoding.members);
      }
  for (const auto& [lowest, set] : plan.sets)
    for (const int rank : set)
      if (static_cast<std::size_t>(rank) < known.size())
        known[static_cast<std::size_t>(rank)] = true;
  for (std::size_t rank = 0; rank < known.size(); ++rank)
    if (!known[rank]) plan.without_set.push_back(static_cast<int>(rank));
}

Plan make_plan(const Remains& remains) {
  Plan plan;
  Team(1).run([&](Communicator& comm) {
    Survey survey(comm, {{remains.uuid, {0, remains.number, remains.parts}}});
    plan.summary = *survey.next_older();
    plan.generation = survey.choose_generation(plan.summary);
  });
  find_sets(remains, plan);
  return plan;
}

/// Of several parts of a rank, that with a committed record of the encoding is taken, then that
/// with a prepared one.
int worth_of(const HeldPart& part, std::uint64_t generation) {
  int worth = 0;
  for (const HeldRecord& held : part.own)
    if (held.record.encoding.generation == generation)
      worth = std::max(worth, held.committed ? 2 : 1);
  return worth;
}

/// What one rank of a set looks after.
struct Share {
  HeldDataset held;
  std::string root;  ///< where its own part is, or is to be
};

/// One part of each rank is its own; a copy that was left behind when the rank was moved is looked
/// after by the next member, and offered as in the job.
std::vector<Share> share_out(const Set& set, std::uint64_t number, std::uint64_t generation,
                             std::vector<HeldPart> parts, const std::string& spare_root) {
  const auto member_of = [&set](const HeldPart& part) {
    return static_cast<std::size_t>(std::find(set.begin(), set.end(), part.owner) - set.begin());
  };
  std::map<int, const HeldPart*> own;
  for (const HeldPart& part : parts) {
    const HeldPart*& best = own[part.owner];
    if (best == nullptr || worth_of(part, generation) > worth_of(*best, generation)) best = &part;
  }
  std::vector<Share> shares(set.size(), {{0, number, {}}, spare_root});
  for (HeldPart& part : parts) {
    const bool is_own = own.at(part.owner) == &part;
    const std::size_t member = member_of(part);
    if (is_own) shares[member].root = folder_of(folder_of(part.folder.path));
    if (is_own || set.size() > 1)
      shares[is_own ? member : (member + 1) % set.size()].held.parts.push_back(std::move(part));
  }
  return shares;
}

/// On an agreed error no rank has one.
Result<std::vector<Store>> open_store(Communicator& comm, Files& files, const Share& share) {
  auto store = Store::at(files, share.root);
  CAIRN_TRY(agree(comm, store ? Status{} : Status(tl::unexpected(store.error()))));
  return std::vector<Store>{*std::move(store)};
}

/// What may be different the next time is no loss.
bool may_pass(const Error& error) {
  return error.code == Code::no_space || error.code == Code::io || error.code == Code::busy;
}

class SetWork {
 public:
  SetWork(Files& files, const Remains& remains, const Plan& plan, const std::string& spare_root,
          const Settings& settings, const Log& log, const SetTeams& teams)
      : files_(files),
        remains_(remains),
        plan_(plan),
        spare_root_(spare_root),
        settings_(settings),
        log_(log),
        teams_(teams) {
    for (const HeldPart& part : remains.parts) parts_.emplace(part.owner, &part);
    for (const auto& [lowest, set] : plan.sets) sets_.push_back(&set);
    std::size_t largest = 1;
    for (const Set* set : sets_) largest = std::max(largest, set->size());
    at_once_ = std::clamp(teams.threads / static_cast<int>(largest), 1, std::max(1, teams.sets));
    settings_.encode_bytes =
        std::min(settings.encode_bytes,
                 teams.memory_bytes / (static_cast<std::uint64_t>(at_once_) * largest));
  }

  std::vector<Error> inspect(bool read_everything,
                             const std::function<void(int, const FoundPart&)>& visit) {
    for_each_set([&](const Set& set) { return inspect(set, read_everything, visit); });
    return errors();
  }

  std::vector<Error> rebuild(RestoreAccount& account, std::vector<RankFolder>& folders) {
    std::map<int, std::vector<std::string>> rebuilt_names;
    for_each_set([&](const Set& set) -> Status {
      CAIRN_ASSIGN(const RestoreAccount done, rebuild(set, folders));
      const std::scoped_lock lock(mutex_);
      add(account, done);
      if (!done.rebuilt_names.empty()) rebuilt_names[set.front()] = done.rebuilt_names;
      return {};
    });
    for (const auto& [first, names] : rebuilt_names)
      for (const std::string& name : names)
        if (account.rebuilt_names.size() < most_named) account.rebuilt_names.push_back(name);
    const std::vector<Error> failed = errors();
    if (!failed.empty()) remove_what_was_begun();
    return failed;
  }

 private:
  /// By several threads, each of which takes the next one.
  void for_each_set(const std::function<Status(const Set&)>& work) {
    std::atomic<std::size_t> next = 0;
    const auto background = at_once_ > 1 ? make_background_thread() : make_foreground();
    background->in_parallel(at_once_, [&] {
      for (std::size_t i = next++; i < sets_.size(); i = next++) {
        Status done = work_at(*sets_[i], work);
        if (done) continue;
        const std::scoped_lock lock(mutex_);
        errors_.emplace(i, std::move(done).error());
      }
    });
  }

  static Status work_at(const Set& set, const std::function<Status(const Set&)>& work) {
    try {
      return work(set);
    } catch (const std::system_error& error) {
      return fail(Code::io,
                  "a rebuild needs {} threads, one for each rank of a set: {}; raise the limit of "
                  "processes (ulimit -u), or use another host",
                  set.size(), error.what());
    }
  }

  std::vector<Error> errors() {
    std::vector<Error> all;
    for (auto& [set, error] : std::exchange(errors_, {})) all.push_back(std::move(error));
    return all;
  }

  /// Reads the records of the set, which are dropped when it is done.
  std::vector<Share> shares_of(const Set& set) {
    std::vector<HeldPart> parts;
    for (const int rank : set) {
      const auto [begin, end] = parts_.equal_range(rank);
      for (auto part = begin; part != end; ++part)
        parts.push_back(read_part(files_, part->second->folder, rank, remains_.uuid));
    }
    return share_out(set, remains_.number, plan_.generation, std::move(parts), spare_root_);
  }

  CachedDataset dataset() const {
    CachedDataset dataset;
    dataset.info.uuid = remains_.uuid;
    dataset.info.number = remains_.number;
    return dataset;
  }

  Status inspect(const Set& set, bool read_everything,
                 const std::function<void(int, const FoundPart&)>& visit) {
    const std::vector<Share> shares = shares_of(set);
    std::vector<std::optional<FoundPart>> found(set.size());
    Status status;
    teams_.run(static_cast<int>(set.size()), [&](Communicator& comm) {
      const auto me = static_cast<std::size_t>(comm.rank());
      Status mine = look(comm, shares[me], set, read_everything, found[me]);
      if (me == 0) status = std::move(mine);
    });
    const std::scoped_lock lock(mutex_);
    for (std::size_t member = 0; member < set.size(); ++member)
      if (found[member]) visit(set[member], *found[member]);
    return status;
  }

  /// Collective over the set; the status is agreed.
  Status look(Communicator& comm, const Share& share, const Set& set, bool read_everything,
              std::optional<FoundPart>& found) {
    CAIRN_ASSIGN(std::vector<Store> stores, open_store(comm, files_, share));
    CachedDataset of_rank = dataset();
    CAIRN_ASSIGN(found, examine(comm, files_, stores, settings_, share.held, plan_.generation,
                                read_everything, of_rank, log_, set));
    return agree(comm, found->examined.can_heal);
  }

  Result<RestoreAccount> rebuild(const Set& set, std::vector<RankFolder>& folders) {
    std::vector<Share> shares = shares_of(set);
    for (Share& share : shares)
      for (HeldPart& part : share.held.parts)
        CAIRN_TRY(settle_written(files_, part, plan_.generation));
    Result<RestoreAccount> account;
    teams_.run(static_cast<int>(set.size()), [&](Communicator& comm) {
      const auto me = static_cast<std::size_t>(comm.rank());
      auto mine = rebuild(comm, shares[me], set, folders[static_cast<std::size_t>(set[me])]);
      if (me == 0) account = std::move(mine);
    });
    return account;
  }

  /// Collective over the set.
  Result<RestoreAccount> rebuild(Communicator& comm, const Share& share, const Set& set,
                                 RankFolder& folder) {
    CAIRN_ASSIGN(std::vector<Store> stores, open_store(comm, files_, share));
    CachedDataset of_rank = dataset();
    CAIRN_ASSIGN(RestoreAccount account, restore(comm, files_, stores, settings_, share.held,
                                                 plan_.generation, true, of_rank, log_, set));
    folder = stores[0].rank_folder(of_rank.info, set[static_cast<std::size_t>(comm.rank())]);
    return account;
  }

  static void add(RestoreAccount& all, const RestoreAccount& one) {
    all.rebuilt_ranks += one.rebuilt_ranks;
    all.moved_ranks += one.moved_ranks;
    all.moved_bytes += one.moved_bytes;
    all.repaired_blocks += one.repaired_blocks;
    all.repaired_bytes += one.repaired_bytes;
  }

  /// It is made of what is there still, and would fill the space.
  void remove_what_was_begun() {
    const auto remove = [this]() -> Status {
      CAIRN_ASSIGN(Store store, Store::at(files_, spare_root_));
      for (const Set* set : sets_)
        for (const int rank : *set)
          if (!parts_.contains(rank))
            CAIRN_TRY(store.remove(store.rank_folder(dataset().info, rank)));
      return {};
    };
    if (const Status removed = remove(); !removed) log_.warning("{}", removed.error().text);
  }

  Files& files_;
  const Remains& remains_;
  const Plan& plan_;
  const std::string& spare_root_;
  Settings settings_;
  const Log& log_;
  const SetTeams& teams_;
  std::multimap<int, const HeldPart*> parts_;  ///< by owner
  std::vector<const Set*> sets_;               ///< ascending
  int at_once_ = 1;
  std::mutex mutex_;
  std::map<std::size_t, Error> errors_;  ///< by set
};

/// Ranks whose set is unknown. Empty if there are none.
std::vector<Error> lost_without_trace(const Remains& remains, const Plan& plan) {
  const std::vector<int>& lost = plan.without_set;
  if (lost.empty()) return {};
  std::vector<std::string> names;
  for (const int rank : lost) names.push_back(std::to_string(rank));
  std::string seen;
  for (const HeldPart& part : remains.parts)
    if (seen.empty() && std::binary_search(lost.begin(), lost.end(), part.owner))
      seen = fmt::format(" (files of rank {} are in {})", part.owner, part.folder.path);
  return {Error{Code::lost,
                fmt::format("no intact record of rank {} is left on any node{}: {}",
                            format_first(names, names.size()), seen,
                            plan.protected_at_all
                                ? "it was not protected, or its whole redundancy set is lost"
                                : "it was not protected against the loss of its node")}};
}

Rebuild not_whole(Rebuild::Outcome outcome, std::string reason) {
  return {outcome, std::move(reason), {}, {}};
}

Rebuild not_whole(const std::vector<Error>& errors) {
  constexpr std::size_t most_named = 8;
  std::string reason;
  for (std::size_t i = 0; i < std::min(errors.size(), most_named); ++i)
    reason += (reason.empty() ? "" : "; ") + errors[i].text;
  if (errors.size() > most_named)
    reason += fmt::format("; and {} more sets", errors.size() - most_named);
  const bool later = std::all_of(errors.begin(), errors.end(), may_pass);
  return not_whole(later ? Rebuild::Outcome::failed : Rebuild::Outcome::lost, std::move(reason));
}

/// Before several sets make folders in it.
Status clear_way(Files& files, const Remains& remains, const std::string& spare_root) {
  CAIRN_ASSIGN(const Store store, Store::at(files, spare_root));
  DatasetInfo info;
  info.uuid = remains.uuid;
  info.number = remains.number;
  return remove_unless(files, Kind::folder, store.dataset_folder(info));
}

/// All of what an outline is the beginning of, by a record of a member that is there.
std::optional<Encoding> read_encoding(Files& files, const Remains& remains, const Plan& plan,
                                      const Set& set) {
  for (const HeldPart& part : remains.parts) {
    if (std::find(set.begin(), set.end(), part.owner) == set.end()) continue;
    const HeldPart whole = read_part(files, part.folder, part.owner, remains.uuid);
    for (const auto* records : {&whole.own, &whole.kept})
      for (const HeldRecord& held : *records)
        if (held.record.encoding.generation == plan.generation &&
            held.record.encoding.members == set)
          return held.record.encoding;
  }
  return std::nullopt;
}

/// Members of a set of which no part is there, as an error if the others do not bring them back.
std::optional<Error> lost_members(Files& files, const Remains& remains, const Plan& plan,
                                  const Set& set, const std::set<int>& there) {
  std::vector<bool> lost;
  for (const int rank : set) lost.push_back(!there.contains(rank));
  if (std::none_of(lost.begin(), lost.end(), [](bool is_lost) { return is_lost; })) return {};
  const auto encoding = read_encoding(files, remains, plan, set);
  if (encoding && survives(SetLayout(*encoding), lost)) return {};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < set.size(); ++i)
    if (lost[i])
      names.push_back(encoding ? fmt::format("rank {} ({})", set[i], encoding->member_nodes[i])
                               : fmt::format("rank {}", set[i]));
  return Error{Code::lost,
               fmt::format("in a redundancy set of {} ranks, the parts of {} are missing",
                           set.size(), fmt::join(names, ", "))};
}

}  // namespace

SetTeams::SetTeams()
    : run([](int ranks, const RankMain& rank_main) { Team(ranks).run(rank_main); }),
      sets(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U))) {}

Rebuild rebuild_remains(Files& files, const Remains& remains, const std::string& spare_root,
                        const Settings& settings, const Log& log, const SetTeams& teams) {
  const Summary summary = summarise(remains);
  const CacheState state = judge(summary, remains.ranks, true);
  const std::string reason = reason_of(state, summary);
  if (state == CacheState::newer_format) return not_whole(Rebuild::Outcome::newer, reason);
  if (state == CacheState::incomplete) return not_whole(Rebuild::Outcome::uncommitted, reason);
  if (state != CacheState::committed) return not_whole(Rebuild::Outcome::lost, reason);

  const Plan plan = make_plan(remains);
  SetWork work(files, remains, plan, spare_root, settings, log, teams);
  std::vector<Error> errors = work.inspect(false, [](int, const FoundPart&) {});
  for (Error& error : lost_without_trace(remains, plan)) errors.push_back(std::move(error));
  if (!errors.empty()) return not_whole(errors);
  if (const Status cleared = clear_way(files, remains, spare_root); !cleared)
    return not_whole({cleared.error()});
  Rebuild rebuilt = not_whole(Rebuild::Outcome::whole, "");
  rebuilt.folders.resize(remains.ranks);
  errors = work.rebuild(rebuilt.account, rebuilt.folders);
  return errors.empty() ? rebuilt : not_whole(errors);
}

std::vector<Error> look_at_records(Files& files, const Remains& remains) {
  const Plan plan = make_plan(remains);
  std::set<int> there;
  for (const HeldPart& part : remains.parts)
    if (worth_of(part, plan.generation) > 0) there.insert(part.owner);
  std::vector<Error> errors;
  for (const auto& [lowest, set] : plan.sets)
    if (auto lost = lost_members(files, remains, plan, set, there))
      errors.push_back(*std::move(lost));
  for (Error& error : lost_without_trace(remains, plan)) errors.push_back(std::move(error));
  return errors;
}

std::vector<Error> inspect_remains(Files& files, const Remains& remains, const Settings& settings,
                                   bool read_everything, const Log& log,
                                   const std::function<void(int rank, const FoundPart&)>& visit,
                                   const SetTeams& teams) {
  const Plan plan = make_plan(remains);
  // For a rank that has nothing: where it is to find that there is nothing.
  const std::string any_root =
      remains.parts.empty() ? "/" : folder_of(folder_of(remains.parts.front().folder.path));
  std::vector<Error> errors =
      SetWork(files, remains, plan, any_root, settings, log, teams).inspect(read_everything, visit);
  for (Error& error : lost_without_trace(remains, plan)) errors.push_back(std::move(error));
  return errors;
}

Inspected inspect_for_run(Files& files, const Remains& remains, std::uint32_t ranks,
                          const Settings& settings, bool read_everything, const Log& log,
                          const std::function<void(int rank, const FoundPart&)>& visit,
                          const SetTeams& teams) {
  const Summary summary = summarise(remains);
  Inspected found{summary, judge(summary, ranks, settings.distribute), {}};
  if (summary.generation == 0 || summary.newer) return found;
  bool is_only_written = false;
  const auto look = [&](int rank, const FoundPart& part) {
    is_only_written = is_only_written || part.record.exposure.has_value();
    visit(rank, part);
  };
  found.errors = inspect_remains(files, remains, settings, read_everything, log, look, teams);
  if (found.state == CacheState::committed)
    found.state = !found.errors.empty() ? CacheState::lost
                  : is_only_written     ? CacheState::written
                                        : CacheState::protected_;
  return found;
}

}  // namespace cairn
