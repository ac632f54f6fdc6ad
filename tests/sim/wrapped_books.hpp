// What the ranks of a program that knows nothing of Cairn have written, and what a restart must
// find of it: by a bookkeeping of its own, which does not know how the ranks agree.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "chance.hpp"

namespace cairn::sim {

/// How far the ranks of a program may be apart.
enum class Pace {
  in_step,        ///< no rank begins a step before all have finished the one before
  first_in_step,  ///< the same for the first step of a run; then each goes on by itself
  alone,
};

/// What is known of a program before it runs.
struct ProgramKind {
  Pace pace = Pace::in_step;
  bool has_same_shapes = true;  ///< each rank has the same files in each step
  bool opens_once = true;       ///< each of them once

  bool is_certain_whole() const {
    return pace == Pace::in_step || (pace == Pace::first_in_step && has_same_shapes && opens_once);
  }
  bool is_provisional_whole() const { return pace != Pace::alone && has_same_shapes && opens_once; }
};

/// A step is newer if it is of a later run, or later in the same one.
struct StepOfRun {
  int run = 0;
  int index = 0;

  auto operator<=>(const StepOfRun&) const = default;
};

class WrappedBooks {
 public:
  explicit WrappedBooks(ProgramKind kind) : kind_(kind) {}

  // --- a run ---

  void begin_run(int run);
  /// After the restart: how many actions each rank will have in each step. `has_numbers`: steps of
  /// two runs with one index have one name.
  void plan(std::vector<std::map<int, int>> actions, bool has_numbers);
  bool is_complete(int index) const;

  // --- what the program does ---

  /// A rank is about to open a file of a step.
  void begins(int rank, int index);
  void ends(int rank);
  /// The bytes that the file gets: those that it had, if it keeps them, and new ones.
  Blob begin_writing(int rank, const std::string& name, int index, Blob kept, Chance& chance);
  /// All its bytes are written, and it is closed next.
  void finish_writing(const std::string& name, const Blob& bytes);
  /// It is never closed.
  void left_open(const std::string& name) { unfinished_.insert(name); }
  void renamed(const std::string& from, const std::string& to);
  void removed(const std::string& name);
  void action_done(int rank, int index) { --left_[static_cast<std::size_t>(rank)][index]; }

  // --- what is open ---

  void opened(int rank, const std::string& name, int index);
  void closed(int rank, const std::string& name);

  // --- what the job has found out ---

  /// After a round of this rank: these steps are checkpoints, and that is the newest certain one.
  void note_round(int rank, const std::set<int>& checkpoints, std::optional<int> certain);

  /// The program has left the job time for each step: all from this one on were checkpoints.
  void check_kept(int rank, int from) const;

  // --- a restart ---

  /// The storage of a node is gone; all of it, if `tolerated` is false.
  void lost(const std::string& node, bool tolerated);
  /// A run has begun: what a rank finds in place of its files. `from`: whether there is a
  /// checkpoint. The last rank's call checks all.
  void found(int rank, int ranks, bool from, const std::map<std::string, Blob>& files,
             bool disturbed);
  /// The index of the step that was restored; 0: none.
  int restored_index() const { return restored_ ? restored_->index : 0; }

  // --- an orderly end ---

  /// What a rank finds under a name, and whether that is in the cache.
  void check_end(int rank, const std::string& name, const std::optional<Blob>& bytes,
                 bool is_redirected) const;
  std::set<std::string> names_of(int rank) const;

 private:
  struct Writing {
    StepOfRun step;
    int rank = 0;
    Blob bytes;
    bool is_finished = false;
  };
  struct Promise {
    StepOfRun step;
    bool is_exact = false;
    std::map<std::string, std::uint64_t> files;  ///< names, and the writings that they have
  };
  struct Opening {
    int index = 0;
    int round = 0;
  };

  void note_new_checkpoint(int index, bool is_certain);
  void note_certain(int rank, std::optional<int> certain);
  int first_index() const;
  void check_passed(int index) const;
  std::uint64_t writing_in(int rank, const std::string& name, const Blob& bytes) const;
  void check_restored(bool from, bool disturbed);
  void check_files(const Promise& promise) const;

  const ProgramKind kind_;
  std::map<std::uint64_t, Writing> writings_;
  std::map<StepOfRun, std::map<std::string, std::uint64_t>> steps_;  ///< finished
  std::map<std::string, std::uint64_t> newest_;  ///< finished, of what the program has now
  std::set<std::string> unfinished_;             ///< open for ever, or begun and not finished

  std::map<StepOfRun, Promise> made_;  ///< as they were when they became checkpoints
  std::set<StepOfRun> have_been_;      ///< checkpoints

  // Of this run:
  int run_ = 0;
  std::vector<std::map<int, int>> planned_;
  std::vector<std::map<int, int>> left_;
  std::map<int, int> newest_begun_;  ///< by rank, as those that follow
  std::set<int> ended_;
  std::map<int, int> rounds_;
  std::map<int, std::map<std::string, Opening>> open_;
  std::map<int, std::set<int>> checkpoints_;
  std::map<int, std::optional<int>> certain_of_rank_;
  std::optional<int> certain_;
  int newest_certain_ = 0;  ///< also if it was given up since

  // Of the restart:
  std::optional<Promise> promise_;
  std::set<std::string> lost_;
  int have_found_ = 0;
  std::map<std::string, std::uint64_t> found_;
  std::optional<StepOfRun> restored_;
};

}  // namespace cairn::sim
