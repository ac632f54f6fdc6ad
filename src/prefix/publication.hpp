// The way of a dataset into the prefix directory, step by step, however its files get there.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "prefix/replaced.hpp"

namespace cairn {

/// What the parts of a dataset come to; a file that ranks share counts once.
struct FlushTotals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Collective. Each part is in the records of one process.
FlushTotals totals_of(Communicator& comm, std::span<const RankRecord> records);

/// Local. The error of a node that does not see `path`, which rank 0 has just made.
Status see_shared(const Site& site, const std::string& path);

/// What the processes that publish a dataset have of it, and how its files get where they are to
/// be.
class Staging {
 public:
  using Treat = std::function<Status(const RankRecord&)>;

  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  virtual ~Staging() = default;

  /// Collective. Writes the manifests into `folder`, durable, after all checks that can be made
  /// before a byte is staged, of which `seen` is the first, and local. Errors are agreed. A dataset
  /// that an earlier run began has its manifests.
  virtual Status describe(Communicator& comm, const std::string& folder, Status seen);
  /// Local. Once it is described: the records of the parts that this process answers for. Every
  /// part is on one process.
  virtual std::span<const RankRecord> records() const { return {}; }
  /// Collective. Once it is described: what all parts come to.
  virtual FlushTotals totals(Communicator& comm) const { return totals_of(comm, records()); }
  /// Collective. Does the parts that these processes have, each durable before its marker, if
  /// `planned` is good. True if all parts of the dataset are done, by these processes or others.
  /// Errors are agreed.
  virtual Result<bool> stage(Communicator& comm, const DatasetRecord& plan,
                             const Status& planned) = 0;
  /// Collective. Calls `treat` with each record of the dataset that has staged files, on some
  /// process. False if a damaged manifest in `folder` hides some. Errors are agreed.
  virtual Result<bool> visit_staged(Communicator& comm, const std::string& folder,
                                    const Treat& treat);
  /// Local. Other processes look whether it is published, and go on by that.
  virtual EpochFolder::Seen seen() const { return EpochFolder::Seen::by_us_only; }
  /// Local. Under the own names of its files there were others, before those were written or named.
  virtual bool has_replaced_files() const { return false; }
};

/// Of a dataset that is to be published.
DatasetRecord record_of(const DatasetInfo& dataset, const std::string& job_id);

struct FlushAccount {
  DatasetRecord record;
  /// After an error it is published all the same, but some files may not have their own names, or
  /// it is not the current checkpoint: tidy() ends that.
  Status settled;
  Result<std::vector<Replaced>> replaced;  ///< or why that is not known
  std::string open_elsewhere = {};         ///< of this rank, published in place: see check_closed()
};

/// The one order in which a dataset is published. Each step is durable before the next; a crash
/// after any leaves what docs/format/prefix.md says the next owner finds.
///
/// All ranks of a communicator drive it together, and agree on each step by messages; where that
/// has one rank, a process drives it alone. Which parts are done, markers tell as well: so any
/// process may do a part, and publish_alone() needs nobody.
class Publication {
 public:
  enum class State {
    none,       ///< nothing counts
    begun,      ///< its folder is in that of the epoch, for manifests and markers
    left,       ///< an earlier owner has planned it; what is done of it is in the folder of that
    planned,    ///< any process that has the files of a part can do it
    staged,     ///< all parts are done
    published,  ///< it is there
    settled,    ///< its files have their own names
    withdrawn,  ///< no process carries it on
  };

  /// A new one. `record` says what the dataset is, and of which job; the rest is filled in.
  Publication(const Site& site, Staging& staging, DatasetRecord record);
  /// One that is `left` or `published`, in `folder`.
  Publication(const Site& site, Staging& staging, DatasetRecord record, State state,
              std::string folder);

  State state() const { return state_; }
  const DatasetRecord& record() const { return record_; }
  const std::string& folder() const { return folder_; }

  /// Collective. Does the next step. Errors are agreed, and leave the state as it was, but for what
  /// is half done of the step. `planned` also stays where not all parts are done yet: to be tried
  /// again, left to others, or withdrawn.
  Status advance(Communicator& comm);
  /// Collective. All steps. After an error nothing is published, and it is withdrawn; what cannot
  /// be removed is left to the next owner. lost if parts are missing.
  Result<FlushAccount> run(Communicator& comm);
  /// Collective. Then what was staged, the markers and what this epoch has made are removed. False
  /// if a damaged manifest hides staged files: it stays, to tell of them. Whoever has taken over
  /// meanwhile has the plan, and all that was staged for it: an error, and nothing is removed.
  Result<bool> withdraw(Communicator& comm);

  /// Once it is settled. The error if it is not known which older datasets lost files to it.
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
  Status planned_;     ///< local: all hear of it with the next step that they agree on
  bool took_ = false;  ///< some of its files may have taken the names of others already
  Result<std::vector<Replaced>> replaced_;
};

}  // namespace cairn
