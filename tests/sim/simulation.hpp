// One seed: a job of several runs, with all that befalls it.
#pragma once

#include <cstdint>
#include <string>

namespace cairn::sim {

/// How many datasets had these states.
struct DerivedCounts {
  int protected_ = 0;
  int lost = 0;
};

struct Outcome {
  std::string failure;  ///< the property that does not hold; empty: all do
  std::uint64_t trace_hash = 0;
  std::uint64_t calls = 0;  ///< at the seam
  int runs = 0;
  int crashes = 0;
  int restarts = 0;       ///< runs in which a dataset was read back
  int removals = 0;       ///< datasets taken away on purpose, for good
  int refusals = 0;       ///< runs of another number of ranks, refused
  int in_flight = 0;      ///< ends of all processes while the program did not wait for a copy
  int found_whole = 0;    ///< datasets of which the program did not hear that they are copied
  DerivedCounts derived;  ///< states of datasets, at all looks at what the nodes have
};

/// The same seed gives the same outcome, on every machine, for one state of the sources. `print`
/// writes every call to standard output.
Outcome simulate(std::uint64_t seed, bool print = false);
/// Of a job that protects checkpoints behind the program.
Outcome simulate_behind(std::uint64_t seed, bool print = false);

}  // namespace cairn::sim
