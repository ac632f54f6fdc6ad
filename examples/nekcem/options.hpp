// The command line of nekcem.
#pragma once

#include <cstdint>
#include <string>

namespace nekcem {

struct Options {
  int elements_per_rank = 8;
  int order = 5;
  std::int64_t steps = 100;
  double time_step = 0;  // 0: the largest that is stable
  std::int64_t checkpoint_every = 0;
  std::string directory = "nekcem.rbio";
  std::string rbio;  // options of rbio_open()
  bool restart = false;
  std::string profile;  // a file; empty: none
};

// Throws std::invalid_argument with a sentence for the user.
Options parse_options(int argc, char** argv);

std::string usage();

}  // namespace nekcem
