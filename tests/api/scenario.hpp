// What the scenarios of the API test share: checks, and what to expect on stderr.
//
// A scenario is a function that calls scr.h only. A check that does not hold is told on stdout and
// makes the program exit with 1. A rank announces each error line that it is about to provoke on
// its own stderr; test_api.py compares the two.
#pragma once

#include <mpi.h>
#include <scr.h>

#include <string>
#include <vector>

inline int rank_of_this() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// On stdout.
void say(const std::string& text);
/// Announces one line from this rank that holds all words of "WORD|WORD".
void expect_line(const std::string& words);

/// What did not hold on this rank.
class Verdict {
 public:
  void check(bool holds, const std::string& what, int line) {
    if (holds) return;
    ++failures_;
    say("failed on rank " + std::to_string(rank_of_this()) + ", line " + std::to_string(line) +
        ": " + what);
  }
  int failures() const { return failures_; }

 private:
  int failures_ = 0;
};

#define CHECK(condition) verdict.check((condition), #condition, __LINE__)
#define CHECK_CODE(expected, call)                                                         \
  do {                                                                                     \
    const int code_ = (call);                                                              \
    verdict.check(code_ == (expected),                                                     \
                  #call " gives " + std::to_string(code_) + ", not " #expected, __LINE__); \
  } while (false)

/// Announces one line from rank 0, of a collective call.
inline void expect_error(const std::string& words) {
  if (rank_of_this() == 0) expect_line(words);
}

/// A file whose content follows from rank and name.
bool write_file(const std::string& name, const char* path);
bool holds_file(const std::string& name, const char* path);
/// Routes this rank's file `name`, and writes or reads it.
bool route_and_write(const std::string& name);
bool route_and_read(const std::string& name);
std::string own(const std::string& name);  ///< NAME.RANK

/// A checkpoint of one file per rank with this name; false if any call fails.
bool make_checkpoint(const std::string& name);

/// The name that SCR_Have_restart offers, or "".
std::string offered();

using Scenario = void (*)(Verdict&);

void wrong_order(Verdict& verdict);
void unequal_calls(Verdict& verdict);
void bad_arguments(Verdict& verdict);
void routes(Verdict& verdict);
void threads(Verdict& verdict);
void settings(Verdict& verdict);
void switched_off(Verdict& verdict);
void no_prefix(Verdict& verdict);
void when_to_checkpoint(Verdict& verdict);
void when_to_stop(Verdict& verdict);
void ended_by_init(Verdict& verdict);
void ended_by_complete(Verdict& verdict);
void calls_of_2009(Verdict& verdict);
void names_first_run(Verdict& verdict);
void names_second_run(Verdict& verdict);
void names_third_run(Verdict& verdict);
void linked_prefix(Verdict& verdict);
void linked_folder(Verdict& verdict);
void shared_file(Verdict& verdict);
void open_files(Verdict& verdict);
void wrong_names(Verdict& verdict);
void until_halted(Verdict& verdict);
void until_ended(Verdict& verdict);
void ended_after_late_failure(Verdict& verdict);
void dataset_states(Verdict& verdict);
void dataset_states_restarted(Verdict& verdict);
void lost_connections(Verdict& verdict);
