// A program that knows nothing of Cairn, on one rank of the simulation; and what the preloaded
// library does for each of its calls (src/interpose), as that itself makes calls of the system.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chance.hpp"
#include "files/files.hpp"
#include "seam.hpp"
#include "wrapped/wrapped_job.hpp"
#include "wrapped_books.hpp"

namespace cairn::sim {

/// How the names of its files say which step they belong to.
enum class Naming {
  numbers,      ///< state.12.3
  directories,  ///< rank3/12/state
  one_name,     ///< the same name again and again
  two_names,    ///< two in turn
};

struct Action {
  enum class Kind {
    write,       ///< a new file, or an old one that is emptied
    rename,      ///< a new file under another name, which then gets its own
    append,      ///< to a file that it has written before
    touch,       ///< opens such a file for writing, and does not change it
    remove,      ///< a file of an older step
    refused,     ///< the file cannot be in the cache
    leave_open,  ///< writes a file and does not close it
  };
  Kind kind = Kind::write;
  int index = 0;  ///< of the step
  int file = 0;
  std::int64_t waits_us = 0;  ///< before it
  std::int64_t open_us = 0;
};

/// The step is not whole without it.
inline bool is_of_step(const Action& action) { return action.kind != Action::Kind::remove; }

/// Of one run.
struct ProgramPlan {
  Naming naming = Naming::numbers;
  std::vector<std::vector<Action>> actions;  ///< by rank, in order
  bool waits_for_first = false;              ///< all ranks finish the first step together
  bool waits_for_each = false;               ///< and each other one
  bool ends_together = true;
};

inline bool has_numbers(Naming naming) {
  return naming == Naming::numbers || naming == Naming::directories;
}
std::string name_of_file(Naming naming, int file, int index, int rank);
/// As WrappedJob::Environment::find_step.
std::string_view step_in_name(std::string_view name);
int rank_in_name(std::string_view name);
/// Of the job's number for it.
int index_of_step(Naming naming, std::int64_t step);

/// All ranks wait for each other.
class Gate {
 public:
  Gate(Scheduler& scheduler, int ranks) : scheduler_(scheduler), ranks_(ranks) {}
  void wait();

 private:
  Scheduler& scheduler_;
  const int ranks_;
  std::vector<int> waiting_;
  int opened_ = 0;  ///< times
};

class WrappedProgram {
 public:
  struct Environment {
    Seam& seam;
    Files& files;  ///< all calls succeed
    WrappedJob& job;
    WrappedBooks& books;
    Gate& gate;
    const ProgramPlan& plan;
    int rank = 0;
    std::string prefix;
    std::string redirected;
  };
  WrappedProgram(Environment environment, Chance chance)
      : env_(std::move(environment)), chance_(chance) {}

  /// Until it ends.
  void carry_out();
  /// What it finds under a name.
  std::optional<Blob> read(const std::string& name) const;
  bool is_redirected(const std::string& name) const;

 private:
  void act(const Action& action);
  void write(const Action& action, const std::string& name);
  void rename(const Action& action, const std::string& name);
  void change(const Action& action, const std::string& name);
  void remove(const std::string& name);
  void refused(const Action& action, const std::string& name);
  std::unique_ptr<File> open_new(const std::string& name);
  std::unique_ptr<File> open_there(const std::string& name);
  void fill(File& file, const std::string& name, const Blob& bytes, const Action& action);
  std::string place_of(const std::string& name) const { return env_.redirected + "/" + name; }
  std::string plain_place_of(const std::string& name) const { return env_.prefix + "/" + name; }
  bool is_there(const std::string& path) const { return env_.files.info(path).has_value(); }

  Environment env_;
  Chance chance_;
  std::vector<std::unique_ptr<File>> left_open_;
};

}  // namespace cairn::sim
