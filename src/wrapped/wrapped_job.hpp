// The job of a program that does not know Cairn: makes datasets of the steps that it writes, and
// gives it the newest one when it starts again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agreement/step_agreement.hpp"
#include "session/session.hpp"
#include "wrapped/sole_writer.hpp"

namespace cairn {

/// Functions with a communicator are collective. One thread of each rank calls them; the others are
/// called by the threads of the program, at any time.
class WrappedJob {
 public:
  struct Environment {
    Session& session;
    Files& files;
    Log log;         ///< of this rank
    Log shared_log;  ///< silent but on rank 0
    std::string prefix;
    /// The program's checkpoint files are really below this directory, by their names relative to
    /// the prefix directory. It is on the file system of the stores: a file gets a second name when
    /// its step becomes a dataset.
    std::string redirected;
    /// Moves a redirected file to the place that the program meant.
    std::function<Status(const std::string& name)> move_to_plain_place;
    /// The part of a name that stands for the step, as opened() gets it.
    std::function<std::string_view(std::string_view name)> find_step;
  };

  /// All must outlive this.
  explicit WrappedJob(Environment environment) : env_(std::move(environment)) {}

  /// Thread-safe, as the next seven. The program has opened a file for writing. `name` is relative
  /// to the prefix directory, and `step` the part of it that stands for the step, or empty.
  /// `empties`: what the file held is gone. That the file is closed is found out by round().
  /// `process` writes it, where several processes are one rank; 0: the same one as before.
  void opened(std::string_view name, std::string_view step, bool empties, pid_t process = 0);
  /// The same, before the program opens a file that is there, changes its size, or gives the name
  /// to another file: until changed() the file counts as open, and no dataset is made of it.
  void changes(std::string_view name, std::string_view step, bool empties, pid_t process = 0);
  /// Once for each call of changes().
  void changed(std::string_view name);
  /// The program has opened a file that could not be redirected, so its step cannot become a
  /// dataset.
  void not_redirected(std::string_view name, std::string_view step, bool empties,
                      pid_t process = 0);
  /// A file has got another name, or none: the step has it no more.
  void removed(std::string_view name);
  /// A call of the program has moved the file to its plain place: the step cannot become a dataset
  /// any more.
  void moved_out(std::string_view name);
  /// Thread-safe. False if steps whose names repeat may mix: their files belong in their plain
  /// places from then on.
  bool takes_repeated_names() const { return takes_repeated_names_; }
  /// Thread-safe. One of the calls above had no memory: which files a step has is unknown from now
  /// on, so rounds conclude nothing any more.
  void missed() { has_missed_ = true; }
  bool has_missed() const { return has_missed_; }
  /// The program writes no more files. The step of a file that it still has open is given up.
  void ended();

  /// Before the program looks for its files: puts the newest checkpoint where they are redirected,
  /// and removes all other redirected files. Its name. Nothing, if there is no checkpoint: then
  /// what is there goes to its plain place.
  Result<std::optional<std::string>> restore(Communicator& comm);

  /// Finds out how far the program is, and does what follows. To be called again and again, until
  /// it returns true: the program has ended, and all is done.
  bool round(Communicator& comm);
  /// Local. A step is under way, so the next round may have news.
  bool is_step_under_way();
  /// Local, between rounds. The steps that are checkpoints of this run, also if the store has
  /// evicted them since.
  std::set<std::int64_t> checkpoints();
  /// Local, between rounds. The newest certain one of them.
  std::optional<std::int64_t> newest_certain();
  /// Local. Of the dataset that this run makes of a step. It differs from that from which the
  /// program started, which stays if the program writes the step again and this one is withdrawn.
  std::string name_of(std::int64_t step) const;
  /// After the last round, when what the session has evicted is gone: removes what is left of it,
  /// and moves what is left of steps that were given up.
  void clean_up();

 private:
  /// A file of the program, and the step to which its name belongs.
  struct Writing {
    Step step;
    std::string name;
    std::string shape;  ///< the name without the step
    /// The dataset that is being made has the file as it was before.
    bool is_after_link = false;
  };

  void note_open(std::string_view name, std::string_view step, bool empties, pid_t process);
  void note_writer(const Writing& file, std::string_view step, pid_t process);
  Writing place_in_step(std::string_view name, std::string_view step, bool empties);
  void fail_steps_that_lose(const std::string& name, std::int64_t before, Loss loss);
  void look_for_closed();
  bool is_dataset(std::int64_t step);
  bool is_open(const std::string& name);
  bool has_changed(std::int64_t step, const std::set<std::string>& names);
  void begin_links(std::optional<std::int64_t> step);
  bool is_linked(const std::string& name) const { return linked_.contains(name); }
  void act_on(const StepNews& news);
  void make_dataset(std::int64_t step);
  Status add_files(std::int64_t step, const std::set<std::string>& names);
  void remove_dataset(std::int64_t step);
  void give_up(std::int64_t step, bool is_overwritten = false);
  void give_up_repeated_names(std::int64_t step);
  void drop_repeated_names(std::int64_t before);
  void report_given_up(std::int64_t step, bool is_overwritten);
  void move_given_up();
  void release_overwritten();
  bool is_changing(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return changing_.contains(name);
  }
  bool is_written_again(const std::string& name, std::int64_t since);
  void drop_superseded();
  Status offer_files(Communicator& comm);
  Status place_files();
  void drop_empty_steps(const std::string& name);
  void warn_of_mixed_steps(Communicator& comm);
  Status for_each_redirected(int rank,
                             const std::function<Status(const std::string& name)>& action);
  std::string place_of(const std::string& name) const { return env_.redirected + "/" + name; }
  std::set<std::string> names_of(std::int64_t step);
  std::set<std::string> names_before(std::int64_t step);
  void forget_name(const std::string& name, std::int64_t before);
  std::set<std::string> forget(std::int64_t step);
  static void report(const Log& log, const Status& status);

  Environment env_;
  StepAgreement agreement_;
  std::string started_from_;  ///< name of a dataset; empty: from none
  std::int64_t newest_certain_ = -1;
  std::map<std::string, std::int64_t> given_up_;  ///< files for their plain places, and the steps
  /// Such files that the program probably writes again in the next step.
  std::map<std::string, std::int64_t> overwritten_;
  std::set<std::int64_t> has_reported_;  ///< steps that were given up; the same on all ranks
  int overwritten_in_a_row_ = 0;         ///< steps, since the last one that became a dataset
  bool has_reported_mixed_ = false;      ///< the same on all ranks
  std::set<std::string> has_failed_;     ///< files that could not be moved

  std::atomic<bool> takes_repeated_names_ = true;
  std::atomic<bool> has_missed_ = false;

  std::mutex mutex_;  ///< guards what follows
  StepOrder order_;
  StepTracker tracker_;
  SoleWriter sole_writer_;
  std::string mixed_file_;           ///< by which this rank has found that steps mix
  std::set<std::int64_t> datasets_;  ///< steps that are datasets; the same on all ranks
  std::map<std::int64_t, std::set<std::string>> names_;  ///< of the files of each step
  std::set<std::int64_t> incomplete_;  ///< steps that have lost a file, and had no dataset then
  std::optional<std::int64_t> being_made_;  ///< step
  std::set<std::string> linked_;            ///< names of its files, as far as the dataset has them
  std::int64_t newest_ = -1;                ///< step
  std::set<std::string> names_of_newest_;   ///< also if it was given up
  std::vector<Writing> open_;
  std::multiset<std::string, std::less<>>
      changing_;  ///< names in open_ that are perhaps not open yet
};

/// Of a job of this kind: its stores have room for a provisional checkpoint, and the one before it.
void keep_two_checkpoints(Settings& settings);

/// The name of the dataset of a step: its number, or the count of steps whose names have none.
std::string dataset_name(std::int64_t step);
/// That count, from such a name. Nothing for names with other numbers than whole ones.
std::optional<std::int64_t> count_in(std::string_view dataset_name);

}  // namespace cairn
