// The simulation from the command line.
//
//   sim --seed N [--trace]            replays one seed
//   sim --soak COUNT [--from N] [--jobs J]   as many seeds as wanted
//   sim --behind ...                  seeds of jobs that protect checkpoints behind the program
//   sim --prefix ...                  seeds of jobs with a prefix directory
//   sim --bypass ...                  and such as bypass the cache
//   sim --async ...                   and such as copy in the background
//   sim --rbio ...                    jobs that write with rbIO
//   sim --rbio-death ...              such jobs; the seed says what dies, and at which call
//   sim --wrapped ...                 programs that know nothing of Cairn
//   sim --list FILE                   the seeds in a file, one a line, text after it is a comment
//
// Exit code 1 if a property does not hold; the last lines name the command that replays it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "prefix_job.hpp"
#include "rbio_job.hpp"
#include "simulation.hpp"
#include "soak.hpp"
#include "wrapped_job.hpp"

namespace cairn::sim {
namespace {

struct KindOfJob {
  std::string name;
  Simulate simulate;
  std::string about;
};

std::vector<KindOfJob> kinds_of_jobs() {
  return {{"behind", simulate_behind, "jobs whose checkpoints are protected behind the program"},
          {"prefix", simulate_prefix, "jobs with a prefix directory"},
          {"bypass", simulate_bypass, "such jobs that bypass the cache"},
          {"trouble", simulate_trouble,
           "such jobs whose flushed files are damaged, whose datasets are dropped and deleted, and "
           "whose restarts die"},
          {"async", simulate_async, "such jobs that copy in the background"},
          {"rbio", simulate_rbio, "jobs that write with rbIO"},
          {"wrapped", simulate_wrapped, "programs that know nothing of Cairn"},
          {"rbio-death", simulate_rbio_death, "such jobs, with one death at any call"}};
}

int replay(Simulate simulate, std::uint64_t seed, bool trace) {
  const Outcome outcome = simulate(seed, trace);
  fmt::print("seed {}: {} runs, {} crashes, {} restarts, {} calls, trace {:016x}\n", seed,
             outcome.runs, outcome.crashes, outcome.restarts, outcome.calls, outcome.trace_hash);
  if (outcome.failure.empty()) return 0;
  fmt::print("seed {} fails: {}\n", seed, outcome.failure);
  return 1;
}

std::vector<std::uint64_t> seeds_in(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::uint64_t> seeds;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') seeds.push_back(std::stoull(line));
  return seeds;
}

}  // namespace
}  // namespace cairn::sim

int main(int argc, char** argv) {
  using namespace cairn::sim;
  CLI::App app(
      "Simulates jobs whose nodes, processes, files and bits fail, and checks what is left.");
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  std::uint64_t from = 1;
  int jobs = 1;
  bool trace = false;
  std::string list;
  auto* one = app.add_option("--seed", seed, "replay this seed");
  app.add_flag("--trace", trace, "print every call")->needs(one);
  auto* many = app.add_option("--soak", count, "so many seeds")->excludes(one);
  app.add_option("--from", from, "the first of them")->needs(many);
  app.add_option("--jobs", jobs, "processes at once")->needs(many);
  auto* file =
      app.add_option("--list", list, "the seeds in this file")->excludes(one)->excludes(many);
  std::map<std::string, bool> chosen;
  auto* kinds = app.add_option_group("kinds");
  for (const auto& [name, simulate_one, about] : kinds_of_jobs())
    kinds->add_flag("--" + name, chosen[name], about);
  kinds->require_option(0, 1);
  app.require_option(1, 0);
  CLI11_PARSE(app, argc, argv);
  Simulate kind = simulate;
  std::string program = argv[0];
  for (const auto& [name, simulate_one, about] : kinds_of_jobs()) {
    if (!chosen[name]) continue;
    kind = simulate_one;
    program += " --" + name;
  }
  if (*one) return replay(kind, seed, trace);
  if (*file) return soak(kind, seeds_in(list), 1, program);
  std::vector<std::uint64_t> seeds(count);
  for (std::uint64_t i = 0; i < count; ++i) seeds[i] = from + i;
  return soak(kind, seeds, jobs, program);
}
