// A flush in the background. What each process does of it needs no message and no call of the
// program: what the others have done is seen in the prefix directory.
#pragma once

#include <functional>
#include <vector>

#include "comm/alone.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/publication.hpp"

namespace cairn {

/// What one process does: manifests that are its to write, its own part, and its files' names.
/// Local; of one thread at a time.
class PartFlush {
 public:
  enum class State {
    none,
    described,  ///< the manifests that this process writes are there
    planned,    ///< all are, and the plan
    staged,     ///< the own part is done
    published,  ///< the dataset is there
    settled,    ///< the own files have their names: nothing is left to do
  };
  struct WrittenManifest {
    std::uint32_t number = 0;
    Blob records;
  };

  /// `record` is that of `part`.
  PartFlush(const Site& site, RankRecord record, CachedPart part,
            std::vector<WrittenManifest> manifests);

  State state() const { return state_; }
  const RankRecord& record() const { return record_; }
  /// Does the next step, if it can be done now; true if it could. An error leaves the state as it
  /// was: to be tried again. busy if a later owner has the plan; a code of damage if a block of the
  /// cached files is.
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

  const Site& site_;
  const RankRecord record_;
  const CachedPart part_;
  const std::vector<WrittenManifest> manifests_;
  const std::string folder_;  ///< of the plan
  State state_ = State::none;
  DatasetRecord plan_;
  std::optional<bool> takes_names_;
};

/// What the owner does besides: it begins, plans and settles, and publishes unless another process
/// has. Local; of one thread at a time, whose the site's keeper is meanwhile.
class OwnerFlush {
 public:
  struct Books {
    /// Before it is begun: the directory is still this run's, and in order.
    std::function<Status(Communicator&)> open;
    /// After it is settled.
    std::function<void(Communicator&, const FlushAccount&)> close;
  };

  OwnerFlush(const Site& site, DatasetRecord record, FlushTotals totals, Books books);

  /// Begun: the prefix directory tells of it.
  bool is_begun() const { return publication_.state() != Publication::State::none; }
  /// From here on nobody needs the owner, until the files are to get their names.
  bool is_planned() const { return publication_.state() >= Publication::State::planned; }
  bool is_settled() const { return is_closed_; }
  /// As PartFlush::advance().
  Result<bool> advance();
  /// Where nobody goes on with it: if it is published the keeper knows it.
  Status take_in_if_published();

 private:
  /// The parts are done by the processes that have them.
  class Watched final : public Staging {
   public:
    Watched(const Site& site, FlushTotals totals) : site_(site), totals_(totals) {}

    FlushTotals totals(Communicator&) const override { return totals_; }
    Result<bool> stage(Communicator& comm, const DatasetRecord& plan,
                       const Status& planned) override;
    /// Each process has seen to its own.
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
