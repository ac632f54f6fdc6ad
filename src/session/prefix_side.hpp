// What a session does with its prefix directory: publish, flush, and the calls that name a dataset
// there. How the directory is owned is prefix/prefix_owner.hpp; what a restart takes is decided in
// restart/restart_decision.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "prefix/async_flush.hpp"
#include "prefix/flush_parts.hpp"
#include "prefix/prefix_owner.hpp"
#include "prefix/retention.hpp"
#include "prefix/unread.hpp"
#include "recovery/cached_dataset.hpp"
#include "restart/restart_decision.hpp"
#include "session/saved_copies.hpp"

namespace cairn {

/// Functions with a communicator are collective; of the others only rank 0 has something to say.
class PrefixSide {
 public:
  /// All that is passed by reference must outlive this. `log`: silent but on rank 0.
  PrefixSide(Files& files, Clock& clock, Background& background, const Settings& settings, Log log,
             EventLog& events, PrefixOwner::CachedParts cached, IsItself is_itself);

  PrefixOwner& owner() { return owner_; }
  const AttemptBook& book() const { return book_; }

  /// At Init: as PrefixOwner::open(); SCR_PREFIX_PURGE then.
  Status open(Communicator& comm, int ranks_on_node);
  /// What the directory knows of each of these, into `there`. False, and nothing is done, where the
  /// directory has not come to be this run's since the last time that this went well. Where it is
  /// not known what was dropped, nothing must be copied there; agreed.
  Result<bool> look_up(Communicator& comm, std::vector<CachedDataset>& datasets);
  /// What was deleted is in the caches of this job no more, but for what is `left`.
  void forget_deleted(const std::vector<CachedDataset>& left);

  /// After PrefixOwner::claim(). Publishes what has been written there since; takes the checksums
  /// for `record`, which has all else. As flush() then. `took`: a file of one of its names was
  /// there before. `open_elsewhere` is as for check_closed().
  Status publish(Communicator& comm, RankRecord& record, const std::string& label, bool took,
                 std::string& open_elsewhere);
  /// After claim(). Copies a dataset from `store` there; it is current then, if it is a checkpoint.
  /// `cached`: one path for each file. Errors are agreed. At `end_us` of steady time it copies no
  /// block any more, and fails.
  Status flush(Communicator& comm, const CachedDataset& dataset, const std::string& store,
               const std::vector<std::string>& cached, std::int64_t end_us);
  /// On rank 0: what a flush by steps does before and after, by the thread that takes them.
  OwnerFlush::Books books(const CachedDataset& dataset, const std::string& store);
  /// The same for a dataset that another number of ranks has written, of which this rank's caches
  /// have these parts: see find_parts().
  Status flush_parts(Communicator& comm, const DatasetInfo& dataset, const std::string& store,
                     const std::vector<CachedPart>& cached, const ReadRecord& read,
                     std::int64_t end_us);

  /// What a restart could come from.
  void add_facts(RestartFacts& facts);
  /// Imports this dataset of SCR. Errors are agreed.
  Status import_from_scr(Communicator& comm, const Uuid& dataset);
  /// What of SCR could not be read now is read once more.
  void read_scr_again() { scr_.forget_transient_errors(); }
  /// Logs, once for each checkpoint that is offered, which of those begun after it are passed over.
  /// Where none is offered, and why is not known yet, returns why the newest one is.
  std::string report_passed_over(RestartFacts facts, const std::set<Uuid>& tried,
                                 const Uuid& offered, bool is_reason_known);

  /// The record of one that is there.
  std::optional<DatasetRecord> listed(Communicator& comm, const Uuid& uuid);
  /// Of the newest checkpoint there that no run has found damaged.
  std::optional<DatasetRecord> newest_sound(Communicator& comm);

  /// As scr.h has them. not_found if there is none of that name; current() returns which it is.
  Result<DatasetInfo> current(Communicator& comm, const std::string& name);
  Status drop(Communicator& comm, const std::string& name);
  /// Call it before copies in the caches are removed: fails if remove() would not delete all of
  /// that name. Changes nothing.
  Status check_removal(Communicator& comm, const std::string& name);
  Status remove(Communicator& comm, const std::string& name);

 private:
  /// The names of the events of a flush.
  struct FlushEvents {
    const char* success;
    const char* failure;
    const char* transfer;
  };
  static constexpr FlushEvents waited_for = {"FLUSH_SUCCESS", "FLUSH_FAIL", "FLUSH_SYNC"};
  static constexpr FlushEvents not_waited_for = {"ASYNC_FLUSH_SUCCESS", "ASYNC_FLUSH_FAIL",
                                                 "FLUSH_ASYNC"};

  Status log_flush(const FlushEvents& names, const DatasetInfo& dataset, const std::string& store,
                   const Result<FlushAccount>& account, double seconds);
  void log_copy(const std::string& label, const FlushAccount& account, double seconds,
                std::string_view how);
  Status check_before_flush(Communicator& alone);
  void keep_books(Communicator& comm, const DatasetInfo& dataset, const FlushAccount& account);
  double seconds_since(std::int64_t steady_us) const {
    return static_cast<double>(clock_.steady_us() - steady_us) * 1e-6;
  }
  Result<FlushAccount> copy_out(Communicator& comm, const CachedDataset& dataset,
                                const std::vector<std::string>& cached, std::int64_t end_us);
  void save_listing(Communicator& comm);
  Status purge(Communicator& comm);
  Status read_states(const std::vector<CachedDataset>& datasets, Blob& states);
  Status check_unread(Communicator& comm, UnreadMatters what, const UnreadSubject& subject = {});
  Result<DatasetRecord> share_record(Communicator& comm, const std::string& call,
                                     const std::string& name);
  void give_names_before_drop(Communicator& comm);

  Files& files_;
  Clock& clock_;
  const Settings& settings_;
  Log log_;
  EventLog& events_;
  const PrefixOwner::CachedParts cached_;
  const IsItself is_itself_;
  AttemptBook book_;
  ReplacedMarks marks_;
  ScrImports scr_;
  Retention retention_;
  SavedCopies saved_;
  PrefixOwner owner_;
  std::optional<Uuid> passed_over_for_;  ///< the offer that report_passed_over() was last given
};

}  // namespace cairn
