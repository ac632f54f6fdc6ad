// The program of the fault table: restarts through scr.h, compares every byte, writes checkpoints
// and, where told to, is killed (death.hpp). Rank 0 prints one line of JSON; the tests judge it.
//
// Each rank writes two files of one base name in two folders. Sizes differ between ranks, files and
// steps; the bytes follow from (seed, rank, file, step), so a byte of another rank, step or run is
// seen as wrong.
#include <mpi.h>
#include <scr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "death.hpp"
#include "finalize_mpi.hpp"

namespace {

struct Options {
  int checkpoints = 0;       ///< to write, after the restart
  std::string pause;         ///< after SCR_Init, from when this file is made until it is gone
  std::string pause_at_end;  ///< the same, before SCR_Finalize
  bool finalizes = true;     ///< calls SCR_Finalize
  int rests_ms = 0;          ///< after each checkpoint, so that cores are idle
  int large_from = 0;        ///< from this step on files are forty times as large; 0: none is
  std::uint64_t seed = 0;
  int writers = 0;  ///< that wrote what is restarted from: each rank reads the files of all of them
  DeathPlan death;
};

/// What a call took the last time: on this rank, and the changes to files on each.
struct Effort {
  double seconds = 0;
  std::vector<int> changes;
};

/// What rank 0 reports. A code is that of the last call of its kind, -1 if it was not made.
struct Report {
  int init = -1, have = -1, start = -1, complete = -1;
  int restart = -1;          ///< step restarted from
  int wrong = 0;             ///< files that were handed out with wrong bytes, over all ranks
  bool agreed = true;        ///< ranks got equal codes from every collective call
  std::vector<int> offered;  ///< steps offered by SCR_Have_restart, in order
  std::vector<int> written;  ///< steps committed
  std::map<std::string, Effort> effort;  ///< by call
};

struct Job {
  Options options;
  Report report;
  int rank = 0;
  int ranks = 1;
};

constexpr std::array<const char*, 2> folders = {"left", "right"};

// --- content ---

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::size_t size_of(const Job& job, int rank, int file, int step) {
  const bool is_large = job.options.large_from > 0 && step >= job.options.large_from;
  const std::size_t size =
      file == 0 ? 150'000u + 20'011u * rank + 101u * step : 30'000u * (rank % 3) + 7u * step;
  return is_large ? 40 * size : size;
}

std::vector<std::uint64_t> words_of(const Job& job, int rank, int file, int step) {
  std::vector<std::uint64_t> words((size_of(job, rank, file, step) + 7) / 8);
  std::uint64_t at = mix(mix(mix(job.options.seed + 1) + rank) + step * 2 + file);
  for (auto& word : words) word = mix(at += 0x9E3779B97F4A7C15u);
  return words;
}

std::string name_of(int rank, int file, int step) {
  return "step." + std::to_string(step) + "/" + folders[file] + "/rank." + std::to_string(rank);
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File open_file(const char* path, const char* mode) {
  return {std::fopen(path, mode), &std::fclose};
}

bool write_file(const Job& job, int file, int step) {
  char path[SCR_MAX_FILENAME];
  if (SCR_Route_file(name_of(job.rank, file, step).c_str(), path) != SCR_SUCCESS) return false;
  File out = open_file(path, "wb");
  const std::size_t size = size_of(job, job.rank, file, step);
  return out &&
         std::fwrite(words_of(job, job.rank, file, step).data(), 1, size, out.get()) == size &&
         std::fclose(out.release()) == 0;
}

enum class Found { right, absent, wrong };

/// Absent: Cairn said so, which is its right. Wrong: it handed out something else than was written.
Found check_file(const Job& job, int rank, int file, int step) {
  char path[SCR_MAX_FILENAME];
  if (SCR_Route_file(name_of(rank, file, step).c_str(), path) != SCR_SUCCESS) return Found::absent;
  File in = open_file(path, "rb");
  if (!in) return Found::wrong;
  const std::size_t size = size_of(job, rank, file, step);
  std::vector<char> bytes(size);
  const bool right = std::fread(bytes.data(), 1, size, in.get()) == size &&
                     std::fgetc(in.get()) == EOF &&
                     std::memcmp(bytes.data(), words_of(job, rank, file, step).data(), size) == 0;
  return right ? Found::right : Found::wrong;
}

// --- the calls ---

/// The code of a collective call, which must be the same everywhere.
int agreed(Job& job, int code) {
  std::array<int, 2> range = {code, -code};
  MPI_Allreduce(MPI_IN_PLACE, range.data(), 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (range[0] != -range[1]) job.report.agreed = false;
  return range[0];
}

/// A collective call in which the process may be killed.
template <class Call>
int watched(Job& job, const std::string& name, int step, Call call) {
  Effort& effort = job.report.effort[name];
  enter_call(name, step);
  const double start = MPI_Wtime();
  const int code = call();
  effort.seconds = MPI_Wtime() - start;
  const int mine = leave_call();
  effort.changes.resize(static_cast<std::size_t>(job.ranks));
  MPI_Allgather(&mine, 1, MPI_INT, effort.changes.data(), 1, MPI_INT, MPI_COMM_WORLD);
  return agreed(job, code);
}

/// Reads the checkpoint of `step` inside a restart phase; whether this rank got all it reads.
bool read_checkpoint(Job& job, int step) {
  bool whole = true;
  int wrong = 0;
  const int first = job.options.writers == 0 ? job.rank : 0;
  const int end = job.options.writers == 0 ? job.rank + 1 : job.options.writers;
  for (int i = 2 * first; i < 2 * end; ++i) {
    const Found found = check_file(job, i / 2, i % 2, step);
    whole = whole && found == Found::right;
    wrong += found == Found::wrong;
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  job.report.wrong += wrong;
  return whole;
}

void restart(Job& job) {
  Report& report = job.report;
  for (;;) {
    int found = 0, step = -1;
    char name[SCR_MAX_FILENAME] = "";
    report.have = watched(job, "have", 0, [&] { return SCR_Have_restart(&found, name); });
    if (report.have != SCR_SUCCESS || !found) return;
    std::sscanf(name, "step.%d", &step);
    report.offered.push_back(step);
    if (watched(job, "restart", 0, [&] { return SCR_Start_restart(name); }) != SCR_SUCCESS) return;
    if (agreed(job, SCR_Complete_restart(read_checkpoint(job, step))) != SCR_SUCCESS) continue;
    report.restart = step;
    return;
  }
}

bool write_checkpoint(Job& job, int step) {
  Report& report = job.report;
  const std::string name = "step." + std::to_string(step);
  pass_point("before-start", step);
  report.start = watched(job, "start", step,
                         [&] { return SCR_Start_output(name.c_str(), SCR_FLAG_CHECKPOINT); });
  if (report.start != SCR_SUCCESS) return false;
  pass_point("before-writes", step);
  bool written = write_file(job, 0, step);
  pass_point("between-writes", step);
  written = write_file(job, 1, step) && written;
  pass_point("after-writes", step);
  report.complete = watched(job, "complete", step, [&] {
    const int code = SCR_Complete_output(written);
    usleep(static_cast<useconds_t>(job.options.rests_ms) * 1000);
    return code;
  });
  if (report.complete != SCR_SUCCESS) return false;
  report.written.push_back(step);
  return true;
}

/// All ranks wait until somebody has removed the file.
void pause(const Job& job, const std::string& file) {
  const char* path = file.c_str();
  if (job.rank == 0 && *path != '\0') {
    open_file(path, "wb");
    while (access(path, F_OK) == 0) usleep(1000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

void run(Job& job) {
  Report& report = job.report;
  report.init = watched(job, "init", 0, [] { return SCR_Init(); });
  if (report.init != SCR_SUCCESS) return;
  pause(job, job.options.pause);
  restart(job);
  const int first = std::max(report.restart, 0) + 1;
  for (int i = 0; i < job.options.checkpoints; ++i)
    if (!write_checkpoint(job, first + i)) break;
  pause(job, job.options.pause_at_end);
  if (!job.options.finalizes) return;
  watched(job, "finalize", 0, [] { return SCR_Finalize(); });
}

// --- the line of JSON ---

std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

std::string object(const std::map<std::string, Effort>& efforts) {
  std::string text;
  for (const auto& [call, effort] : efforts)
    text += (text.empty() ? "\"" : ", \"") + call +
            "\": {\"seconds\": " + std::to_string(effort.seconds) +
            ", \"changes\": " + list(effort.changes) + "}";
  return "{" + text + "}";
}

void print(const Job& job) {
  const Report& r = job.report;
  std::printf(
      "{\"ranks\": %d, \"init\": %d, \"have\": %d, \"start\": %d, \"complete\": %d, "
      "\"restart\": %d, \"wrong\": %d, \"agreed\": %s, \"offered\": %s, \"written\": %s, "
      "\"effort\": %s}\n",
      job.ranks, r.init, r.have, r.start, r.complete, r.restart, r.wrong,
      r.agreed ? "true" : "false", list(r.offered).c_str(), list(r.written).c_str(),
      object(r.effort).c_str());
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--checkpoints")
      options.checkpoints = std::atoi(value.c_str());
    else if (option == "--pause")
      options.pause = value;
    else if (option == "--pause-at-end")
      options.pause_at_end = value;
    else if (option == "--finalizes")
      options.finalizes = std::atoi(value.c_str()) != 0;
    else if (option == "--rests-ms")
      options.rests_ms = std::atoi(value.c_str());
    else if (option == "--large-from")
      options.large_from = std::atoi(value.c_str());
    else if (option == "--seed")
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (option == "--writers")
      options.writers = std::atoi(value.c_str());
    else if (option == "--kill-at")
      options.death.at = value;
    else if (option == "--kill-step")
      options.death.step = std::atoi(value.c_str());
    else if (option == "--kill-striker")
      options.death.striker = std::atoi(value.c_str());
    else if (option == "--kill-ranks")
      options.death.victims = value;
    else if (option == "--kill-nth")
      options.death.nth = std::atoi(value.c_str());
    else if (option == "--kill-operation")
      options.death.operation = value;
    else if (option == "--kill-after-us")
      options.death.after_us = std::atoi(value.c_str());
    else if (option == "--full-for")
      lack_room_for(value);
    else if (option == "--kill-note")
      options.death.note = value;
    else
      return false;
  }
  return argc % 2 == 1;
}

void prepare_death(const Job& job) {
  static_assert(sizeof(pid_t) == sizeof(int));
  const pid_t mine = getpid();
  std::vector<pid_t> all(static_cast<std::size_t>(job.ranks));
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  plan_death(job.options.death, job.rank, all);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  const bool understood = parse(argc, argv, job.options);
  if (understood) {
    prepare_death(job);
    run(job);
    if (job.rank == 0) print(job);
  }
  if (job.options.finalizes)
    cairn::finalize_mpi();
  else
    MPI_Finalize();  // while Cairn works, which is what is tested then
  return understood ? 0 : 2;
}
