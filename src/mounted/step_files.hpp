// The checkpoint files of a mount: which these are, where they lie in the cache, and what the job
// that makes datasets of them has to know.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crfs/redirection.hpp"
#include "interpose/moving.hpp"
#include "interpose/patterns.hpp"
#include "interpose/steps_taken.hpp"
#include "mounted/checked_files.hpp"
#include "wrapped/wrapped_job.hpp"

namespace cairn {

/// A file whose name a pattern matches lies in the cache if it was created or emptied through the
/// mount (docs/adr/0038). Directories are always in the backing directory.
class StepFiles final : public Redirection {
 public:
  struct Places {
    std::string prefix;  ///< the backing directory, without symbolic links
    std::string cache;   ///< a private directory of this node; exists
    /// Of the cache's file system: with less of it free, new files go to the backing directory.
    unsigned long free_percent = 10;

    std::string files() const { return cache + "/files"; }
  };

  /// The last two must outlive it.
  StepFiles(Places places, const interpose::Patterns& patterns, CheckedFiles& checked)
      : places_(std::move(places)),
        files_(places_.files()),
        patterns_(patterns),
        checked_(checked) {}

  /// Before the first call of the next ones. `job` must outlive them.
  void begin(WrappedJob& job) { job_ = &job; }
  /// From any thread. New files then go to the backing directory, except those of the step that is
  /// being written.
  void take_no_new_steps() { steps_taken_.take_no_new_ones(); }
  /// Moves a redirected file to the place that it has without --scr. 0 or an errno: EBUSY if a
  /// program has it open for writing.
  int move_to_plain_place(const std::string& name);
  /// After the job has ended. Files that are in no checkpoint and could not be moved, as a program
  /// has them open still (passthrough): the next job must not take them for files of half a step.
  /// Their number.
  int set_aside();
  /// Before a job begins: moves these to the backing directory. The first error, if any.
  std::string settle_set_aside() const;
  /// The part of a name that stands for the step.
  std::string_view step_in(std::string_view name) const { return patterns_.find(name).step; }

  Descriptor find(const std::string& path) override;
  std::vector<Listed> files_in(const std::string& directory) override;
  bool has_files_below(const std::string& directory) override;
  bool hides_names(const Descriptor& file) override;
  int admit(const Descriptor& file, int flags, pid_t caller,
            std::unique_ptr<Change>& change) override;
  std::optional<Descriptor> create(const MountedName& at, mode_t mode) override;
  void made(const MountedName& at) override;
  int remove(const MountedName& at) override;
  std::optional<int> rename(const MountedName& from, const MountedName& to,
                            unsigned flags) override;
  void renamed(const MountedName& from, const MountedName& to) override;
  std::optional<int> link(const Descriptor& file, const MountedName& to) override;
  void removed_directory(const std::string& path) override;
  void note_loss(const Descriptor& file) override;

 private:
  class Changed;

  std::string place_of(const std::string& name) const { return files_ + "/" + name; }
  bool is_redirected(const std::string& name) const;
  bool matches(const std::string& name) const { return bool(patterns_.find(name)); }
  /// The name of the file if it lies in the cache, and else in the backing directory.
  std::optional<std::string> name_in_cache(const std::string& path) const;
  std::optional<std::string> name_in_backing(const std::string& path) const;
  /// Whether a new file of this name goes to the cache.
  bool has_room_for(const std::string& name);
  Descriptor make_file(const std::string& name, mode_t mode) const;
  bool has_name(const Descriptor& file, const std::string& name) const;
  int leave_to_checkpoint(const std::string& name, bool empties);
  int admit_redirected(const Descriptor& file, const std::string& name, bool empties, pid_t caller,
                       std::unique_ptr<Change>& change);
  int lead_elsewhere(std::string path, int flags);
  int admit_plain(const std::string& name, int flags, pid_t caller, const struct stat& state);
  std::optional<int> rename_redirected(const MountedName& from, const MountedName& to,
                                       unsigned flags);
  bool may_enter_cache(const MountedName& from, const MountedName& to);
  int rename_into_cache(const MountedName& from, const MountedName& to);
  void remove_from_cache(const std::string& name);
  void follow_directory(const std::string& from, const std::string& to, pid_t caller);
  void move_out_below(const std::string& directory);
  int move_out(const std::string& name);
  bool begins_anew(const std::string& name, bool empties, pid_t caller);
  void note_opened(const std::string& name, pid_t caller);
  void note_plain(const std::string& name, bool empties, pid_t caller);
  pid_t writer_of(const std::string& name, pid_t caller);

  const Places places_;
  const std::string files_;
  const interpose::Patterns& patterns_;
  CheckedFiles& checked_;
  WrappedJob* job_ = nullptr;
  interpose::StepsTaken steps_taken_;
  std::atomic<pid_t> unknown_writers_ = 0;
  /// Held while a call, or the job, changes the names of a file in the cache. Before the job's
  /// mutex, and the next one.
  std::mutex names_;
  std::mutex mutex_;  ///< guards what follows
  /// Names that a call has emptied which the kernel repeats, and its thread.
  std::set<std::pair<std::string, pid_t>> begun_;
};

}  // namespace cairn
