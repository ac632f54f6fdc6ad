// The program of the fault table: restarts through scr.h, compares every byte, writes checkpoints
// and, where told to, kills itself. Rank 0 prints one line of JSON; the tests judge it.
//
// Each rank writes two files of one base name in two folders. Sizes differ between ranks, files and
// steps; the bytes follow from (seed, rank, file, step), so a byte of another rank, step or run is
// seen as wrong.
#include <mpi.h>
#include <scr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Options {
  int checkpoints = 0;  ///< to write, after the restart
  std::uint64_t seed = 0;
  std::string kill_at;    ///< init, start, in-start, between, before-complete, complete
  int kill_step = 0;      ///< in which checkpoint; no matter for init
  int kill_after_us = 0;  ///< for init, in-start and complete: time since the call was entered
  std::string kill_ranks = "all";  ///< or "2,3"
};

/// What rank 0 reports. A code is that of the last call of its kind, -1 if it was not made.
struct Report {
  int init = -1, have = -1, start = -1, complete = -1;
  int restart = -1;          ///< step restarted from
  int wrong = 0;             ///< files that were handed out with wrong bytes, over all ranks
  bool agreed = true;        ///< ranks got equal codes from every collective call
  std::vector<int> offered;  ///< steps offered by SCR_Have_restart, in order
  std::vector<int> written;  ///< steps committed
  double init_s = 0, start_s = 0, complete_s = 0;
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

std::size_t size_of(int rank, int file, int step) {
  return file == 0 ? 150'000u + 20'011u * rank + 101u * step : 30'000u * (rank % 3) + 7u * step;
}

std::vector<std::uint64_t> words_of(const Job& job, int file, int step) {
  std::vector<std::uint64_t> words((size_of(job.rank, file, step) + 7) / 8);
  std::uint64_t at = mix(mix(mix(job.options.seed + 1) + job.rank) + step * 2 + file);
  for (auto& word : words) word = mix(at += 0x9E3779B97F4A7C15u);
  return words;
}

std::string name_of(const Job& job, int file, int step) {
  return "step." + std::to_string(step) + "/" + folders[file] + "/rank." + std::to_string(job.rank);
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File open_file(const char* path, const char* mode) {
  return {std::fopen(path, mode), &std::fclose};
}

bool write_file(const Job& job, int file, int step) {
  char path[SCR_MAX_FILENAME];
  if (SCR_Route_file(name_of(job, file, step).c_str(), path) != SCR_SUCCESS) return false;
  File out = open_file(path, "wb");
  const std::size_t size = size_of(job.rank, file, step);
  return out && std::fwrite(words_of(job, file, step).data(), 1, size, out.get()) == size &&
         std::fclose(out.release()) == 0;
}

enum class Found { right, absent, wrong };

/// Absent: Cairn said so, which is its right. Wrong: it handed out something else than was written.
Found check_file(const Job& job, int file, int step) {
  char path[SCR_MAX_FILENAME];
  if (SCR_Route_file(name_of(job, file, step).c_str(), path) != SCR_SUCCESS) return Found::absent;
  File in = open_file(path, "rb");
  if (!in) return Found::wrong;
  const std::size_t size = size_of(job.rank, file, step);
  std::vector<char> bytes(size);
  const bool right = std::fread(bytes.data(), 1, size, in.get()) == size &&
                     std::fgetc(in.get()) == EOF &&
                     std::memcmp(bytes.data(), words_of(job, file, step).data(), size) == 0;
  return right ? Found::right : Found::wrong;
}

// --- being killed ---

bool dies_here(const Job& job, const std::string& point, int step) {
  const Options& options = job.options;
  if (options.kill_at != point || (point != "init" && step != options.kill_step)) return false;
  return options.kill_ranks == "all" ||
         ("," + options.kill_ranks + ",").find("," + std::to_string(job.rank) + ",") !=
             std::string::npos;
}

void die() { kill(getpid(), SIGKILL); }

void perhaps_die(const Job& job, const std::string& point, int step) {
  if (dies_here(job, point, step)) die();
}

/// Dies while the call that follows is under way, or after it when the call is faster.
void perhaps_die_soon(const Job& job, const std::string& point, int step) {
  if (!dies_here(job, point, step)) return;
  std::thread([delay = std::chrono::microseconds(job.options.kill_after_us)] {
    std::this_thread::sleep_for(delay);
    die();
  }).detach();
}

// --- the calls ---

/// The code of a collective call, which must be the same everywhere.
int agreed(Job& job, int code) {
  std::array<int, 2> range = {code, -code};
  MPI_Allreduce(MPI_IN_PLACE, range.data(), 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (range[0] != -range[1]) job.report.agreed = false;
  return range[0];
}

template <class Call>
int timed(Job& job, double& seconds, Call call) {
  const double start = MPI_Wtime();
  const int code = call();
  seconds = MPI_Wtime() - start;
  return agreed(job, code);
}

/// Reads the checkpoint of `step` inside a restart phase; whether this rank got both its files.
bool read_checkpoint(Job& job, int step) {
  bool whole = true;
  int wrong = 0;
  for (int file = 0; file < 2; ++file) {
    const Found found = check_file(job, file, step);
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
    report.have = agreed(job, SCR_Have_restart(&found, name));
    if (report.have != SCR_SUCCESS || !found) return;
    std::sscanf(name, "step.%d", &step);
    report.offered.push_back(step);
    if (agreed(job, SCR_Start_restart(name)) != SCR_SUCCESS) return;
    if (agreed(job, SCR_Complete_restart(read_checkpoint(job, step))) != SCR_SUCCESS) continue;
    report.restart = step;
    return;
  }
}

bool write_checkpoint(Job& job, int step) {
  Report& report = job.report;
  const std::string name = "step." + std::to_string(step);
  perhaps_die_soon(job, "in-start", step);
  report.start = timed(job, report.start_s,
                       [&] { return SCR_Start_output(name.c_str(), SCR_FLAG_CHECKPOINT); });
  if (report.start != SCR_SUCCESS) return false;
  perhaps_die(job, "start", step);
  bool written = write_file(job, 0, step);
  perhaps_die(job, "between", step);
  written = write_file(job, 1, step) && written;
  perhaps_die(job, "before-complete", step);
  perhaps_die_soon(job, "complete", step);
  report.complete = timed(job, report.complete_s, [&] { return SCR_Complete_output(written); });
  if (report.complete != SCR_SUCCESS) return false;
  report.written.push_back(step);
  return true;
}

void run(Job& job) {
  Report& report = job.report;
  perhaps_die_soon(job, "init", 0);
  report.init = timed(job, report.init_s, [] { return SCR_Init(); });
  if (report.init != SCR_SUCCESS) return;
  restart(job);
  const int first = std::max(report.restart, 0) + 1;
  for (int i = 0; i < job.options.checkpoints; ++i)
    if (!write_checkpoint(job, first + i)) break;
  agreed(job, SCR_Finalize());
}

// --- the line of JSON ---

std::string list(const std::vector<int>& steps) {
  std::string text;
  for (const int step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  return "[" + text + "]";
}

void print(const Job& job) {
  const Report& r = job.report;
  std::printf(
      "{\"ranks\": %d, \"init\": %d, \"have\": %d, \"start\": %d, \"complete\": %d, "
      "\"restart\": %d, \"wrong\": %d, \"agreed\": %s, \"offered\": %s, \"written\": %s, "
      "\"init_s\": %.6f, \"start_s\": %.6f, \"complete_s\": %.6f}\n",
      job.ranks, r.init, r.have, r.start, r.complete, r.restart, r.wrong,
      r.agreed ? "true" : "false", list(r.offered).c_str(), list(r.written).c_str(), r.init_s,
      r.start_s, r.complete_s);
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--checkpoints")
      options.checkpoints = std::atoi(value.c_str());
    else if (option == "--seed")
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (option == "--kill-at")
      options.kill_at = value;
    else if (option == "--kill-step")
      options.kill_step = std::atoi(value.c_str());
    else if (option == "--kill-after-us")
      options.kill_after_us = std::atoi(value.c_str());
    else if (option == "--kill-ranks")
      options.kill_ranks = value;
    else
      return false;
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  const bool understood = parse(argc, argv, job.options);
  if (understood) {
    run(job);
    if (job.rank == 0) print(job);
  }
  MPI_Finalize();
  return understood ? 0 : 2;
}
