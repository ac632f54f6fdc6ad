// A flush in the background. Each process does its part without messages and without a call of the
// program: it sees the progress of the others in the prefix directory.
#pragma once

#include <functional>
#include <vector>

#include "comm/alone.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/publication.hpp"

namespace cairn {

/// The work of one process: the manifests that it must write, its own part, and the final names of
/// its files. Local; used by one thread at a time.
class PartFlush {
 public:
  enum class State {
    none,
    described,  ///< the manifests that this process writes exist
    planned,    ///< all manifests and the plan exist
    staged,     ///< this process has done its part
    published,  ///< the dataset is published
    settled,    ///< the files of this process have their final names: nothing is left to do
  };
  struct WrittenManifest {
    std::uint32_t number = 0;
    Blob records;
  };

  /// `record`: the record of `part`.
  PartFlush(const Site& site, RankRecord record, CachedPart part,
            std::vector<WrittenManifest> manifests);

  State state() const { return state_; }
  const RankRecord& record() const { return record_; }
  /// Does the next step if it is possible now; true if it did. After an error the state is
  /// unchanged, and the step can be repeated. busy if a later owner has the plan; the error of the
  /// block if cached files are damaged.
  Result<bool> advance();

 private:
  Result<bool> describe();
  Result<bool> read_plan();
  Result<bool> is_my_turn() const;
  Result<bool> do_part();
  Result<bool> look_for_publication();
  Result<bool> settle();
  Result<bool> reach(State state);
  Status refuse_if_gone() const;
  Status check_is_here() const;

  const Site& site_;
  const RankRecord record_;
  const CachedPart part_;
  const std::vector<WrittenManifest> manifests_;
  const std::string folder_;  ///< of the plan
  State state_ = State::none;
  DatasetRecord plan_;
  std::optional<bool> takes_names_;
};

/// The work of the owner: it begins, plans and settles, and publishes unless another process has
/// done so. Local; used by one thread at a time, and only this thread may use the site's keeper
/// meanwhile.
class OwnerFlush {
 public:
  struct Books {
    /// Called before it begins: makes sure that this run still owns the directory, and that the
    /// directory is in order.
    std::function<Status(Communicator&)> open;
    /// Called before it settles: this run still owns the directory.
    std::function<Status()> check_rights;
    /// Called after it is settled.
    std::function<void(Communicator&, const FlushAccount&)> close;
  };

  OwnerFlush(const Site& site, DatasetRecord record, FlushTotals totals, Books books);

  /// It has begun: the prefix directory has its folder.
  bool is_begun() const { return publication_.state() != Publication::State::none; }
  /// From this state on the other processes do not need the owner, until the files get their final
  /// names.
  bool is_planned() const { return publication_.state() >= Publication::State::planned; }
  bool is_settled() const { return is_closed_; }
  /// Like PartFlush::advance().
  Result<bool> advance();
  /// For a flush that is given up: if the dataset is published, adds it to the keeper; where that
  /// cannot be seen, as one whose record cannot be read now.
  Status take_in_if_published();

 private:
  /// The processes that have the parts do them.
  class Watched final : public Staging {
   public:
    Watched(const Site& site, FlushTotals totals) : site_(site), totals_(totals) {}

    FlushTotals totals(Communicator&) const override { return totals_; }
    Result<bool> stage(Communicator& comm, const DatasetRecord& plan,
                       const Status& planned) override;
    /// Does nothing, as each process has handled its own files.
    Result<bool> visit_staged(Communicator&, const std::string&, const Treat&) override {
      return true;
    }
    EpochFolder::Seen seen() const override { return EpochFolder::Seen::by_others; }
    bool has_replaced_files() const override { return has_replaced_files_; }
    void note_replaced_files() { has_replaced_files_ = true; }

   private:
    const Site& site_;
    const FlushTotals totals_;
    bool has_replaced_files_ = false;
  };

  Result<bool> may_advance();
  Result<bool> has_manifests() const;
  Result<bool> is_settled_by_all();

  const Site& site_;
  Alone alone_;
  Watched staging_;
  Publication publication_;
  const Books books_;
  bool is_closed_ = false;
};

}  // namespace cairn
