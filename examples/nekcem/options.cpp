#include "options.hpp"

#include <getopt.h>

#include <charconv>
#include <stdexcept>
#include <string_view>

#include "curl.hpp"
#include "guide.hpp"

namespace nekcem {
namespace {

enum Name { elements, order, steps, time_step, every, directory, restart, profile, rbio_key };

constexpr option known[] = {
    {"elements-per-rank", required_argument, nullptr, elements},
    {"order", required_argument, nullptr, order},
    {"steps", required_argument, nullptr, steps},
    {"time-step", required_argument, nullptr, time_step},
    {"checkpoint-every", required_argument, nullptr, every},
    {"directory", required_argument, nullptr, directory},
    {"restart", no_argument, nullptr, restart},
    {"profile", required_argument, nullptr, profile},
    // Passed on to rbIO under the same names.
    {"mode", required_argument, nullptr, rbio_key},
    {"files", required_argument, nullptr, rbio_key},
    {"group", required_argument, nullptr, rbio_key},
    {"memory", required_argument, nullptr, rbio_key},
    {"keep", required_argument, nullptr, rbio_key},
    {"pace", required_argument, nullptr, rbio_key},
    {nullptr, 0, nullptr, 0},
};

template <class Number>
Number number(const char* name, std::string_view text, Number least) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    throw std::invalid_argument("--" + std::string(name) + " " + std::string(text) +
                                ": this must be a number of at least " + std::to_string(least));
  return value;
}

void set(Options& options, int found, const char* name, const char* text) {
  switch (found) {
    case elements:
      options.elements_per_rank = number(name, text, 1);
      break;
    case order:
      options.order = number(name, text, 1);
      break;
    case steps:
      options.steps = number(name, text, std::int64_t{0});
      break;
    case time_step:
      options.time_step = number(name, text, 0.0);
      break;
    case every:
      options.checkpoint_every = number(name, text, std::int64_t{0});
      break;
    case directory:
      options.directory = text;
      break;
    case restart:
      options.restart = true;
      break;
    case profile:
      options.profile = text;
      break;
    default:
      if (!options.rbio.empty()) options.rbio += ' ';
      options.rbio.append(name).append("=").append(text);
  }
}

void check(const Options& options) {
  if (options.elements_per_rank % Guide::elements_per_layer != 0)
    throw std::invalid_argument("--elements-per-rank " + std::to_string(options.elements_per_rank) +
                                ": a layer of the guide has " +
                                std::to_string(Guide::elements_per_layer) +
                                " elements, so this must be a multiple of it");
  if (options.order > order_max)
    throw std::invalid_argument("--order " + std::to_string(options.order) +
                                ": the highest order is " + std::to_string(order_max));
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  opterr = 0;
  for (int index = 0, found; (found = getopt_long(argc, argv, "", known, &index)) != -1;) {
    if (found == '?')
      throw std::invalid_argument(std::string(argv[optind - 1]) +
                                  ": this option is unknown, or its value is missing");
    set(options, found, known[index].name, optarg);
  }
  if (optind < argc)
    throw std::invalid_argument(std::string(argv[optind]) + ": nekcem takes only options");
  check(options);
  return options;
}

std::string usage() {
  return R"(usage: nekcem [option ...]

A wave travels along a metal guide; nekcem computes it and prints how far it is from the exact one.

  --elements-per-rank N  a multiple of 4 (default 8); more ranks make a longer guide
  --order N              of the polynomials in an element, 1 to 12 (default 5)
  --steps N              the step to end with (default 100)
  --time-step T          default: the largest that is stable
  --checkpoint-every N   steps; 0: never (default)
  --directory PATH       of the checkpoints (default nekcem.rbio)
  --restart              continue from the newest checkpoint, if there is one
  --profile FILE         write the seconds of each step on each rank, as CSV

Passed on to rbIO, see rbio.h: --mode, --files, --group, --memory, --keep, --pace.
)";
}

}  // namespace nekcem
