#include "recovery/restore.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/units.hpp"
#include "comm/group.hpp"
#include "records/wire.hpp"
#include "recovery/commit.hpp"
#include "recovery/relocate.hpp"
#include "recovery/written.hpp"
#include "redundancy/rank_blocks.hpp"
#include "redundancy/repair.hpp"
#include "redundancy/replicas.hpp"

namespace cairn {
namespace {

/// What a holder offers to an owner.
enum class Offer : std::int32_t { record, bare_files, files_with_record };

/// What is left of a rank, for the others of its set.
enum class Trace : std::int32_t { no_record, no_files, whole };

template <class Word>
Parcel parcel(int peer, Word word) {
  const Bytes bytes = bytes_of(word);
  return {peer, Blob(bytes.begin(), bytes.end())};
}

template <class Word>
Word word_of(const Parcel& parcel) {
  Word word{};
  std::memcpy(&word, parcel.payload.data(), sizeof word);
  return word;
}

bool is_of(std::uint64_t generation, const HeldRecord& held) {
  return held.record.encoding.generation == generation;
}

/// Of this generation, if it is asked for what was offered.
const Blob* find_record(const HeldDataset& held, int rank, std::uint64_t generation) {
  for (const HeldPart& part : held.parts)
    for (const auto* records : {&part.own, &part.kept})
      for (const HeldRecord& record : *records)
        if (record.record.rank == rank && is_of(generation, record)) return &record.sealed;
  return nullptr;
}

/// There is one: it was offered.
const HeldPart& find_part(const HeldDataset& held, int owner) {
  return *std::find_if(held.parts.begin(), held.parts.end(),
                       [owner](const HeldPart& part) { return part.owner == owner; });
}

Offer offer_of_files(const HeldPart& part, std::uint64_t generation) {
  const bool has_record =
      std::any_of(part.own.begin(), part.own.end(),
                  [&](const HeldRecord& held) { return is_of(generation, held); });
  return has_record ? Offer::files_with_record : Offer::bare_files;
}

/// The members of a set that are gone, and where they ran.
std::string text_of_gone(const Encoding& encoding, const std::vector<Trace>& traces) {
  std::string gone;
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (traces[i] != Trace::whole)
      gone += fmt::format("{}rank {} (written on {})", gone.empty() ? "" : ", ",
                          encoding.members[i], encoding.member_nodes[i]);
  return gone;
}

Status status_of(const Result<Healed>& healed) {
  return healed ? Status{} : Status(tl::unexpected(healed.error()));
}

/// Where a rank has no part, nothing behind a file or a link can be one. Before any rank makes the
/// dataset's folder, which is that of several ranks.
Status clear_way(Files& files, const RankFolder& part) {
  for (const std::string& folder : {folder_of(part.path), part.path})
    CAIRN_TRY(remove_unless(files, Kind::folder, folder));
  return {};
}

/// Those that were repaired are settled by heal(); it leaves alone what came here whole.
Status settle_moved_files(RankBlocks& blocks, bool copy_metadata, bool durable) {
  if (copy_metadata) CAIRN_TRY(blocks.restore_attributes());
  return durable ? blocks.sync() : Status{};
}

/// One set knows nothing of the others.
std::string of_all(const Communicator& comm, std::int64_t without_record) {
  return fmt::format("; {} of all {} ranks have no record left", without_record, comm.size());
}

class Restorer {
 public:
  Restorer(Communicator& comm, Files& files, Store& store, const Settings& settings,
           const HeldDataset& held, std::uint64_t generation, CachedDataset& dataset,
           const Log& log, const std::vector<int>& set)
      : comm_(comm),
        set_(set),
        me_(rank_of(comm.rank())),
        files_(files),
        store_(store),
        settings_(settings),
        held_(held),
        generation_(generation),
        dataset_(dataset),
        log_(log) {}

  Result<RestoreAccount> run(bool read_everything) {
    auto account = try_to_restore(read_everything);
    if (!account) dataset_.repair = chance_after(comm_, account.error(), look_at_own_part());
    return account;
  }

  Result<RestoreAccount> try_to_restore(bool read_everything) {
    find_local();
    find_remote();
    CAIRN_TRY(fetch_records());
    folder_ = store_.rank_folder(dataset_.info, me_);
    for (const HeldPart& part : held_.parts) dataset_.parts.push_back(part.folder);
    if (local_ == nullptr) dataset_.parts.push_back(folder_);
    auto account = restore_files(read_everything);
    // What was begun here must not fill the space that an older dataset needs. All it was made of
    // is still where it was.
    const bool begun_here = local_ == nullptr || files_from_ >= 0;
    if (!account && begun_here && set_.empty()) warn(store_.remove(folder_));
    return account;
  }

  Result<FoundPart> examine(bool read_everything) {
    find_local();
    find_remote();
    CAIRN_TRY(fetch_records());
    FoundPart part;
    part.folder = find_files();
    part.record_is_whole = record_file_is_whole();
    folder_ = {part.folder.empty() ? store_.rank_folder(dataset_.info, me_).path : part.folder};
    Group set(comm_, peers_in_set());
    part.examined = cairn::examine(set, files_, folder_, dataset_.record, read_everything);
    if (part.examined.presence == RankBlocks::Presence::missing) part.folder.clear();
    // It has no checksums that could be compared.
    if (dataset_.record.exposure)
      part.examined.can_heal = check_written(files_, folder_, dataset_.record);
    part.record = dataset_.record;
    return part;
  }

 private:
  int rank_of(int peer) const { return set_.empty() ? peer : set_[static_cast<std::size_t>(peer)]; }

  /// Nothing where a rank is not among those that take part, or where there is no such rank.
  std::optional<int> peer_of(int rank) const {
    if (set_.empty()) return rank < comm_.size() ? std::optional(rank) : std::nullopt;
    const auto found = std::find(set_.begin(), set_.end(), rank);
    if (found == set_.end()) return std::nullopt;
    return static_cast<int>(found - set_.begin());
  }

  /// The members of this rank's set, as peers.
  std::vector<int> peers_in_set() const {
    std::vector<int> peers;
    for (const int member : dataset_.record.encoding.members) peers.push_back(*peer_of(member));
    return peers;
  }

  /// Those that are not this rank's to look after, from those that do.
  std::string find_files() {
    std::vector<Parcel> places;
    for (const OutgoingPart& part : outgoing_) {
      const Bytes path = std::as_bytes(std::span(part.folder.path));
      places.push_back({part.to, Blob(path.begin(), path.end())});
    }
    std::string found = local_ != nullptr && files_from_ < 0 ? local_->folder.path : "";
    for (const Parcel& place : exchange(comm_, std::move(places)))
      found.assign(reinterpret_cast<const char*>(place.payload.data()), place.payload.size());
    return found;
  }

  Result<RestoreAccount> restore_files(bool read_everything) {
    CAIRN_TRY(fetch_files());
    CAIRN_TRY(heal_set(read_everything));
    CAIRN_TRY(agree(comm_, settle_records()));
    warn(remove_leftovers());
    return sum_up();
  }

  void find_local() {
    for (const HeldPart& part : held_.parts)
      if (part.owner == me_) local_ = &part;
    if (const HeldRecord* own = held_.own_record(me_, generation_)) sealed_ = own->sealed;
  }

  /// Holders send owners what they have; owners choose.
  void find_remote() {
    std::vector<Parcel> offers;
    for (const HeldPart& part : held_.parts) {
      const auto owner = peer_of(part.owner);
      if (!owner) continue;  // a foreign directory: there is no such rank
      if (part.owner != me_) offers.push_back(parcel(*owner, offer_of_files(part, generation_)));
      for (const auto* records : {&part.own, &part.kept})
        for (const HeldRecord& held : *records)
          if (const auto peer = peer_of(held.record.rank); peer && is_of(generation_, held))
            offers.push_back(parcel(*peer, Offer::record));
    }
    std::int32_t best =
        local_ != nullptr ? static_cast<std::int32_t>(offer_of_files(*local_, generation_)) : 0;
    for (const Parcel& offer : exchange(comm_, std::move(offers))) {
      const auto kind = word_of<Offer>(offer);
      if (kind == Offer::record && record_from_ < 0) record_from_ = offer.peer;
      is_elsewhere_too_ = is_elsewhere_too_ || kind != Offer::record;
      if (static_cast<std::int32_t>(kind) > best) {
        best = static_cast<std::int32_t>(kind);
        files_from_ = offer.peer;
      }
    }
  }

  /// After this every rank has its record, or all return the same error.
  Status fetch_records() {
    const bool needs_record = sealed_.empty();
    const bool any_request = allreduce(comm_, needs_record || files_from_ >= 0, Reduce::max) != 0;
    if (any_request) {
      std::vector<Parcel> requests;
      if (needs_record && record_from_ >= 0)
        requests.push_back(parcel(record_from_, Offer::record));
      if (files_from_ >= 0) requests.push_back(parcel(files_from_, Offer::bare_files));
      for (Parcel& answer : exchange(comm_, answer_requests(exchange(comm_, std::move(requests)))))
        sealed_ = std::move(answer.payload);
    }
    const bool decoded = decode();
    if (allreduce(comm_, decoded ? 0 : 1, Reduce::max) == 0) return {};
    return explain_missing(decoded);
  }

  std::vector<Parcel> answer_requests(const std::vector<Parcel>& requests) {
    std::vector<Parcel> answers;
    for (const Parcel& request : requests) {
      const int rank = rank_of(request.peer);
      if (word_of<Offer>(request) == Offer::record)
        answers.push_back({request.peer, *find_record(held_, rank, generation_)});
      else
        outgoing_.push_back({request.peer, find_part(held_, rank).folder});
    }
    return answers;
  }

  bool decode() {
    const auto envelopes = find_envelopes(sealed_);
    if (envelopes.empty()) return false;
    auto record = decode_rank_record(envelopes[0].payload, envelopes[0].version);
    if (!record) return false;
    const std::vector<int>& members = record->encoding.members;
    if (!std::all_of(members.begin(), members.end(), [this](int rank) { return peer_of(rank); }))
      return false;
    dataset_.record = *std::move(record);
    dataset_.info = dataset_.record.dataset;
    return true;
  }

  /// Called where some rank has no record. The lowest rank that knows such a rank's set says which
  /// of its members are gone, and where they ran.
  Status explain_missing(bool have_record) {
    const std::vector<Trace> traces = exchange_traces(have_record);
    const bool witness = std::find(traces.begin(), traces.end(), Trace::no_record) != traces.end();
    const Encoding& encoding = dataset_.record.encoding;
    const bool in_a_set = have_record && encoding.scheme != Scheme::single;
    std::array<std::int64_t, 3> counts = {have_record ? 0 : 1, witness ? 1 : 0, in_a_set ? 1 : 0};
    comm_.allreduce(counts, Reduce::sum);
    const auto& [without_record, witnesses, in_sets] = counts;
    if (witness)
      return agree(comm_,
                   fail(Code::lost,
                        "in the redundancy set of ranks {}, the files or records of {} are "
                        "lost, and the redundancy scheme can rebuild only {}{}",
                        fmt::join(encoding.members, ","), text_of_gone(encoding, traces),
                        encoding.failures, set_.empty() ? of_all(comm_, without_record) : ""));
    if (witnesses > 0 || have_record) return agree(comm_, {});
    return agree(
        comm_,
        fail(Code::lost, "no intact record of rank {} is left on any node{}: {}", me_, files_seen(),
             in_sets > 0 ? "it was not protected, or its whole redundancy set is lost"
                         : "it was not protected against the loss of its node"));
  }

  /// Of the members of this rank's set, in its order; nothing where it has no record. Only a record
  /// says which ranks are in a set: a rank that has one writes to the others; a rank that does not
  /// write has none.
  std::vector<Trace> exchange_traces(bool have_record) {
    const bool have_files = local_ != nullptr || files_from_ >= 0;
    const std::vector<int> peers = have_record ? peers_in_set() : std::vector<int>{};
    std::vector<Parcel> messages;
    for (const int peer : peers)
      messages.push_back(parcel(peer, have_files ? Trace::whole : Trace::no_files));
    std::vector<Trace> traces(peers.size(), Trace::no_record);
    for (const Parcel& message : exchange(comm_, std::move(messages))) {
      const auto from = std::find(peers.begin(), peers.end(), message.peer);
      if (from != peers.end())
        traces[static_cast<std::size_t>(from - peers.begin())] = word_of<Trace>(message);
    }
    return traces;
  }

  /// Where the files are of a rank that has no record.
  std::string files_seen() const {
    if (local_ != nullptr && local_->unread) {
      const auto again = read_file(files_, local_->folder.record(), largest_record_bytes);
      if (!again) return fmt::format(" ({})", again.error().text);
    }
    if (local_ != nullptr)
      return fmt::format(" (its files are in {} on {})", local_->folder.path, settings_.node_name);
    return files_from_ < 0 ? ""
                           : fmt::format(" (its files are on the node of rank {})", files_from_);
  }

  /// This rank's part is made here: moved, made anew, or both once more after a crash.
  bool gets_part() const {
    const bool is_begun = local_ != nullptr && (!local_->own.empty() || local_->damaged);
    return !is_begun || files_from_ >= 0;
  }

  /// Where `here`, says in this rank's folder that parts have a second place. Collective. No
  /// restart fails for want of room for that; an output that is no checkpoint waits for another
  /// run.
  Status note_second_place(bool here) {
    Status noted = here ? store_.make_rank_folder(dataset_.info, me_) : Status{};
    if (here && noted && !files_.info(folder_.elsewhere()))
      noted = write_file_atomically(files_, folder_.elsewhere(), {}, store_.durable());
    if (dataset_.info.is_output() && !dataset_.info.is_checkpoint()) return agree(comm_, noted);
    warn(noted);
    return {};
  }

  Status fetch_files() {
    CAIRN_TRY(agree(comm_, local_ != nullptr ? Status{} : clear_way(files_, folder_)));
    const bool is_marked =
        !store_.shared() && allreduce(comm_, gets_part() ? 1 : 0, Reduce::max) != 0;
    if (is_marked) CAIRN_TRY(note_second_place(!gets_part()));
    std::optional<IncomingPart> incoming;
    if (files_from_ >= 0) incoming = IncomingPart{files_from_, folder_, &dataset_.record};
    const auto piece = static_cast<std::size_t>(settings_.block_bytes);
    const auto bytes = relocate(comm_, files_, outgoing_, incoming, piece);
    if (bytes) {
      account_.moved_bytes = static_cast<std::int64_t>(*bytes);
      account_.moved_ranks = incoming ? 1 : 0;
      account_.rebuilt_ranks = local_ == nullptr && !incoming ? 1 : 0;
    }
    CAIRN_TRY(agree(comm_, bytes ? Status{} : Status(tl::unexpected(bytes.error()))));
    return is_marked ? note_second_place(gets_part()) : Status{};
  }

  Status heal_set(bool read_everything) {
    Group set(comm_, peers_in_set());
    HealOptions options;
    // What was moved is compared, and what has no record, as a rebuild that a crash has ended. Of
    // two copies the other is removed then.
    options.read_everything = read_everything || is_elsewhere_too_ || !is_committed_here();
    options.durable = store_.durable();
    options.copy_metadata = settings_.copy_metadata;
    options.encode_bytes = settings_.encode_bytes;
    const auto healed = heal(set, files_, folder_, dataset_.record, options);
    CAIRN_TRY(agree_lost_first(comm_, status_of(healed)));
    dataset_.checked = allreduce(comm_, healed->checked ? 1 : 0, Reduce::min) != 0;
    account_.repaired_blocks = static_cast<std::int64_t>(healed->repaired_blocks);
    account_.repaired_bytes = static_cast<std::int64_t>(healed->repaired_bytes);
    return {};
  }

  /// Of a part without any record only its place says that a move has not begun it here.
  PartSeen look_at_own_part() const {
    if (local_ == nullptr) return {false, held_.has_unread()};
    const bool is_begun = !dataset_.record.encoding.members.empty() || local_->damaged;
    const bool is_only_one =
        is_begun && !is_elsewhere_too_ && !may_be_elsewhere(files_, local_->folder);
    return {is_only_one, held_.has_unread()};
  }

  bool is_committed_here() const {
    return local_ != nullptr &&
           std::any_of(local_->own.begin(), local_->own.end(), [this](const HeldRecord& held) {
             return held.committed && is_of(generation_, held);
           });
  }

  /// The record file is there, committed, with the copies it has to keep for others.
  bool record_file_is_whole() const {
    if (local_ == nullptr || local_->damaged || files_from_ >= 0) return false;
    const Encoding& encoding = dataset_.record.encoding;
    for (const int member : records_kept_by(encoding, dataset_.record.index_in_set())) {
      const int rank = encoding.members[static_cast<std::size_t>(member)];
      const bool kept =
          std::any_of(local_->kept.begin(), local_->kept.end(), [&](const HeldRecord& held) {
            return held.committed && is_of(generation_, held) && held.record.rank == rank;
          });
      if (!kept) return false;
    }
    return is_committed_here();
  }

  /// Commits what was moved or rebuilt here: the files first, then the record that says they are
  /// good.
  Status settle_records() {
    Group set(comm_, peers_in_set());
    const bool whole = record_file_is_whole();
    std::vector<Blob> kept;
    if (allreduce(set, whole ? 0 : 1, Reduce::max) != 0)
      kept = exchange_records(set, dataset_.record.encoding, sealed_);
    if (whole) return {};
    CAIRN_TRY(store_.make_rank_folder(dataset_.info, me_));
    if (files_from_ >= 0) {
      RankBlocks blocks(files_, folder_, dataset_.record);
      CAIRN_TRY(settle_moved_files(blocks, settings_.copy_metadata, store_.durable()));
    }
    CAIRN_TRY(rewrite_record(files_, store_, folder_, join_records(sealed_, kept)));
    return store_.sync_names(dataset_.info);
  }

  /// Parity of other generations, records prepared and given up.
  Status remove_leftovers() {
    CAIRN_ASSIGN(const auto names, files_.list(folder_.path));
    const std::array<std::string, 4> wanted = {folder_.record(), folder_.parity(generation_),
                                               folder_.elsewhere(), folder_.files()};
    for (const std::string& name : names) {
      const std::string path = folder_.path + "/" + name;
      if (std::find(wanted.begin(), wanted.end(), path) == wanted.end())
        CAIRN_TRY(remove_all(files_, path));
    }
    return {};
  }

  void warn(const Status& status) const {
    if (!status) log_.warning("rank {}: {}", me_, status.error().text);
  }

  RestoreAccount sum_up() {
    std::array<std::int64_t, 5> sums = {account_.rebuilt_ranks, account_.moved_ranks,
                                        account_.moved_bytes, account_.repaired_blocks,
                                        account_.repaired_bytes};
    const bool rebuilt = account_.rebuilt_ranks > 0;
    comm_.allreduce(sums, Reduce::sum);
    account_ = {sums[0], sums[1], sums[2], sums[3], sums[4], {}};
    if (account_.rebuilt_ranks > 0) name_the_rebuilt(rebuilt);
    return account_;
  }

  void name_the_rebuilt(bool rebuilt) {
    std::string mine;
    if (rebuilt) {
      const Encoding& encoding = dataset_.record.encoding;
      const auto index = static_cast<std::size_t>(dataset_.record.index_in_set());
      mine = fmt::format("rank {} ({})", me_, encoding.member_nodes[index]);
    }
    for (const Blob& name : gather_first(comm_, std::as_bytes(std::span(mine)), most_named))
      account_.rebuilt_names.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
  }

  Communicator& comm_;
  const std::vector<int>& set_;  ///< the ranks of the job that take part; empty: all
  const int me_;                 ///< this rank of the job
  Files& files_;
  Store& store_;
  const Settings& settings_;
  const HeldDataset& held_;
  const std::uint64_t generation_;
  CachedDataset& dataset_;
  const Log& log_;
  RankFolder folder_;
  const HeldPart* local_ = nullptr;  ///< this rank's part, if it is on this node
  Blob sealed_;                      ///< this rank's record, once known
  int record_from_ = -1;
  int files_from_ = -1;
  bool is_elsewhere_too_ = false;  ///< another rank looks after a part of this one
  std::vector<OutgoingPart> outgoing_;
  RestoreAccount account_;
};

}  // namespace

std::string describe(const RestoreAccount& account) {
  std::vector<std::string> parts;
  const auto bytes = [](std::int64_t count) {
    return format_bytes(static_cast<std::uint64_t>(count));
  };
  if (account.rebuilt_ranks > 0)
    parts.push_back("rebuilt " + format_first(account.rebuilt_names,
                                              static_cast<std::size_t>(account.rebuilt_ranks)));
  if (account.moved_ranks > 0)
    parts.push_back(fmt::format("moved {} of {} ranks to another node", bytes(account.moved_bytes),
                                account.moved_ranks));
  if (account.repaired_blocks > 0)
    parts.push_back(fmt::format("computed {} anew from redundancy ({} blocks)",
                                bytes(account.repaired_bytes), account.repaired_blocks));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Status agree_lost_first(Communicator& comm, Status mine) {
  const bool is_lost_here = !mine && mine.error().code == Code::lost;
  const bool is_lost = allreduce(comm, is_lost_here ? 1 : 0, Reduce::max) != 0;
  return agree(comm, is_lost && !is_lost_here ? Status{} : std::move(mine));
}

bool may_be_elsewhere(Files& files, const RankFolder& part) {
  const auto mark = files.info(part.elsewhere());
  return mark || mark.error().code != Code::not_found;
}

CachedDataset::Repair chance_after(Communicator& comm, const Error& why, const PartSeen& mine) {
  std::array<std::int64_t, 2> any = {mine.unread, !mine.is_only_one};
  comm.allreduce(any, Reduce::max);
  const auto& [unread, may_be_elsewhere] = any;
  if (why.code != Code::lost || unread != 0) return CachedDataset::Repair::later;
  return may_be_elsewhere != 0 ? CachedDataset::Repair::unknown : CachedDataset::Repair::never;
}

std::string cannot_be_restored(const CachedDataset& dataset, const Error& why, bool with_remedy) {
  const std::string_view known = remedy_for(why, Storage::cache);
  const bool is_gone = dataset.repair == CachedDataset::Repair::never;  // no other node has it
  const std::string_view remedy =
      known.empty() && !is_gone ? "; start again on the nodes that have its parts" : "";
  const bool stays = dataset.info.is_output() && !dataset.is_given_up();
  const std::string_view given_up = dataset.goes_with_next_dataset()
                                        ? "; it is deleted with the next dataset"
                                        : "; it is deleted when the next checkpoint is complete";
  return fmt::format("dataset {} cannot be restored: {}{}{}{}", dataset.info.number, why.text,
                     with_remedy ? remedy : "", known.empty() ? "" : fmt::format("; {}", known),
                     stays ? "" : given_up);
}

Result<RestoreAccount> restore(Communicator& comm, Files& files, std::vector<Store>& stores,
                               const Settings& settings, const HeldDataset& held,
                               std::uint64_t generation, bool read_everything,
                               CachedDataset& dataset, const Log& log,
                               const std::vector<int>& set) {
  return Restorer(comm, files, stores[dataset.store], settings, held, generation, dataset, log, set)
      .run(read_everything);
}

Result<FoundPart> examine(Communicator& comm, Files& files, std::vector<Store>& stores,
                          const Settings& settings, const HeldDataset& held,
                          std::uint64_t generation, bool read_everything, CachedDataset& dataset,
                          const Log& log, const std::vector<int>& set) {
  return Restorer(comm, files, stores[dataset.store], settings, held, generation, dataset, log, set)
      .examine(read_everything);
}

Status check_and_heal(Communicator& comm, Files& files, std::vector<Store>& stores,
                      const Settings& settings, CachedDataset& dataset, const Log& log) {
  Group set(comm, dataset.record.encoding.members);
  const Store& store = stores[dataset.store];
  HealOptions options{true, store.durable(), settings.copy_metadata, settings.encode_bytes};
  const auto healed =
      heal(set, files, store.rank_folder(dataset.info, comm.rank()), dataset.record, options);
  const Status status = agree_lost_first(comm, status_of(healed));
  if (!status) {
    dataset.state = CacheState::lost;
    dataset.reason = status.error().text;
    const bool is_only_one = !may_be_elsewhere(files, store.rank_folder(dataset.info, comm.rank()));
    dataset.repair = chance_after(comm, status.error(), {is_only_one, false});
    if (comm.rank() == 0) log.warning("{}", cannot_be_restored(dataset, status.error()));
    return status;
  }
  dataset.checked = true;
  const auto blocks =
      allreduce(comm, static_cast<std::int64_t>(healed->repaired_blocks), Reduce::sum);
  if (blocks > 0 && comm.rank() == 0)
    log.warning("{}: {} blocks did not match their checksums and were repaired", dataset.label(),
                blocks);
  return {};
}

}  // namespace cairn
