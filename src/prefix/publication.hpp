// The steps that publish a dataset in the prefix directory, for any way in which its files get
// there.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "prefix/replaced.hpp"

namespace cairn {

/// The sums over the parts of a dataset; a shared file counts once.
struct FlushTotals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Collective. Each part must be in the records of one process.
FlushTotals totals_of(Communicator& comm, std::span<const RankRecord> records);

/// Local. The error of a node that cannot see `path`, which rank 0 has just created.
Status see_shared(const Site& site, const std::string& path);

/// The data of the processes that publish a dataset, and the way in which its files get to their
/// places.
class Staging {
 public:
  using Treat = std::function<Status(const RankRecord&)>;

  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  virtual ~Staging() = default;

  /// Collective. Writes the manifests durably into `folder`, after all checks that are possible
  /// before staging; `seen` is the local result of the first one. Errors are agreed. A dataset that
  /// an earlier run began has its manifests already.
  virtual Status describe(Communicator& comm, const std::string& folder, Status seen);
  /// Local. After describe(): the records of the parts of this process. Every part belongs to one
  /// process.
  virtual std::span<const RankRecord> records() const { return {}; }
  /// Collective. After describe(): the sums over all parts.
  virtual FlushTotals totals(Communicator& comm) const { return totals_of(comm, records()); }
  /// Collective. If `planned` is no error, does the parts of these processes, each durable before
  /// its marker. True if all parts of the dataset are done, by these or other processes. Errors are
  /// agreed.
  virtual Result<bool> stage(Communicator& comm, const DatasetRecord& plan,
                             const Status& planned) = 0;
  /// Collective. Calls `treat` with each record of the dataset that has staged files, each on one
  /// process. False if a damaged manifest in `folder` may hide some. Errors are agreed.
  virtual Result<bool> visit_staged(Communicator& comm, const std::string& folder,
                                    const Treat& treat);
  /// Local. Whether other processes check if it is published, and continue then.
  virtual EpochFolder::Seen seen() const { return EpochFolder::Seen::by_us_only; }
  /// Local. Other files had the names of its files before these were written or renamed.
  virtual bool has_replaced_files() const { return false; }
};

/// The record of a dataset that is about to be published.
DatasetRecord record_of(const DatasetInfo& dataset, const std::string& job_id);

struct FlushAccount {
  DatasetRecord record;
  /// After an error the dataset is published all the same, but some files may not have their own
  /// names, or it is not the current checkpoint: tidy() completes that.
  Status settled;
  Result<std::vector<Replaced>> replaced;  ///< or why they are unknown
  std::string open_elsewhere = {};         ///< of this rank, published in place: see check_closed()
};

/// The only order in which a dataset is published. Each step is durable before the next.
/// docs/format/prefix.md says what the next owner finds after a crash between any two steps.
///
/// All ranks of a communicator drive it together, and agree on each step by messages; with a
/// communicator of one rank, a process drives it alone. Markers also show which parts are done: so
/// any process may do a part, and publish_alone() needs no other process.
class Publication {
 public:
  enum class State {
    none,       ///< nothing counts
    begun,      ///< its folder exists in that of the epoch, for manifests and markers
    left,       ///< an earlier owner has planned it; the done parts are in that owner's folder
    planned,    ///< any process that has the files of a part can do it
    staged,     ///< all parts are done
    published,  ///< it is visible
    settled,    ///< its files have their own names
    withdrawn,  ///< no process continues it
  };

  /// A new one. `record` has the dataset and the job; the rest is filled in.
  Publication(const Site& site, Staging& staging, DatasetRecord record);
  /// One that is `left` or `published`, in `folder`.
  Publication(const Site& site, Staging& staging, DatasetRecord record, State state,
              std::string folder);

  State state() const { return state_; }
  const DatasetRecord& record() const { return record_; }
  const std::string& folder() const { return folder_; }

  /// Collective. Does the next step. Errors are agreed, and leave the state unchanged, although the
  /// step may be partly done. The state also stays `planned` if not all parts are done yet: then
  /// call it again, leave it to others, or withdraw.
  Status advance(Communicator& comm);
  /// Collective. Does all steps. After an error nothing is published, and it is withdrawn; the next
  /// owner removes what cannot be removed now. lost if parts are missing.
  Result<FlushAccount> run(Communicator& comm);
  /// Collective. Ends the plan, and removes staged files, markers and the files of this epoch.
  /// False if a damaged manifest may hide staged files: the manifest stays then. If another owner
  /// has taken over the plan meanwhile, with its staged files, that is an error, and nothing is
  /// removed.
  Result<bool> withdraw(Communicator& comm);

  /// After it is settled. An error if it is unknown which older datasets lost files to it.
  const Result<std::vector<Replaced>>& replaced() const { return replaced_; }

 private:
  Status begin(Communicator& comm);
  Status plan(Communicator& comm);
  Status stage(Communicator& comm);
  Status make_visible(Communicator& comm);
  Status settle(Communicator& comm);
  Status reach(State state, Status done);

  const Site& site_;
  Staging& staging_;
  DatasetRecord record_;
  State state_ = State::none;
  std::string folder_;
  Status planned_;                   ///< local: the ranks agree on it in the next step
  const bool is_left_over_ = false;  ///< an earlier run has begun it
  bool took_ = false;                ///< some of its files may already have replaced others
  Result<std::vector<Replaced>> replaced_;
};

}  // namespace cairn
