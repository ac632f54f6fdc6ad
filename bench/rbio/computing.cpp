// What checkpoints cost a program that computes, the solver of examples/nekcem:
//
//   computing DIRECTORY ELEMENTS ORDER STEPS INTERVALS ROUNDS NAME:BEGINS:FILES:SYNC:KIND...
//
// Per round, each variant computes INTERVALS intervals of STEPS steps, in random order, after two
// that warm up. With --briefly, two checkpoints and one step take their place, so that variants that
// are compared follow each other closely: the speed of a machine drifts. Where BEGINS is 1, each interval begins with a checkpoint; where it is 0, the
// writer is open, and what threads it has sleep. KIND, FILES and SYNC are those of `blocked`.
// Prints JSON: per variant one result per round.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <time.h>

#include <algorithm>
#include <random>

#include "maxwell.hpp"
#include "mpi_timing.hpp"
#include "rbio/writers.hpp"

namespace cairn::bench {
namespace {

constexpr int warm_up = 2;  // intervals, or checkpoints: as many buffers as rbIO has

struct Variant {
  std::string name;
  bool begins = false;
  WriterOptions options;
};

Variant parse_variant(const std::string& text, const std::string& directory) {
  std::vector<std::string> parts(1);
  for (const char character : text)
    if (character == ':' && parts.size() < 5)
      parts.emplace_back();
    else
      parts.back() += character;
  check(parts.size() == 5, text + ": a variant is NAME:BEGINS:FILES:SYNC:KIND");
  return {parts[0], parts[1] == "1", {parts[4], directory, std::stoi(parts[2]), parts[3] == "1"}};
}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Of the processor, by all threads of this process but the calling one.
double other_threads_s() {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double over_ranks(double mine, MPI_Op operation) {
  double result = 0;
  MPI_Allreduce(&mine, &result, 1, MPI_DOUBLE, operation, MPI_COMM_WORLD);
  return result;
}

std::vector<double> of_all_ranks(double mine) {
  std::vector<double> all(static_cast<std::size_t>(ranks()));
  MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
  return all;
}

/// Bytes per second that this rank has written meanwhile, as a writer.
void add_rate(std::vector<double>& rates, const rbio_statistics_t& before,
              const rbio_statistics_t& after) {
  if (after.write_s > before.write_s)
    rates.push_back(static_cast<double>(after.written_bytes - before.written_bytes) /
                    (after.write_s - before.write_s));
}

/// Of one interval, in seconds; on rank 0 those of all ranks.
struct Interval {
  double total = 0, blocked = 0;
  double other_threads = 0;                  ///< of the processor
  double own_step = 0;                       ///< the mean of this rank, without the Allreduce
  std::vector<double> steps, writing_steps;  ///< the latter: while the thread was writing
};

class Computing {
 public:
  Computing(int elements, int order, int steps, bool is_brief)
      : solver_(MPI_COMM_WORLD, elements / nekcem::Guide::elements_per_layer, order),
        steps_(steps),
        is_brief_(is_brief) {
    for (int c = 0; c < nekcem::components; ++c)
      fields_.push_back({solver_.field(c).data(), solver_.nodes()});
  }

  nlohmann::json run(const Variant& variant, int intervals) {
    const auto writer = make_writer(MPI_COMM_WORLD, variant.options, fields_);
    std::vector<double> blocked, other_threads, steps, writing_steps, raw;
    double own_step = 0;
    double total = 0;
    warm_up_for(*writer, variant.begins);
    for (int i = 0; i < intervals; ++i) {
      const rbio_statistics_t before = writer->statistics();
      const Interval interval = compute(*writer, variant.begins);
      own_step += interval.own_step / intervals;
      add_rate(raw, before, writer->statistics());
      total += interval.total;
      blocked.push_back(interval.blocked);
      other_threads.push_back(interval.other_threads);
      steps.insert(steps.end(), interval.steps.begin(), interval.steps.end());
      writing_steps.insert(writing_steps.end(), interval.writing_steps.begin(),
                           interval.writing_steps.end());
    }
    if (variant.begins) writer->wait();
    return {{"total", total},
            {"blocked", blocked},
            {"other_threads", other_threads},
            {"raw", raw},
            {"step_of_rank", of_all_ranks(own_step)},
            {"steps", steps},
            {"writing_steps", writing_steps}};
  }

  std::int64_t checkpoint_bytes() const {
    return ranks() * solver_.nodes() * static_cast<std::int64_t>(sizeof(double)) *
           nekcem::components;
  }

 private:
  void warm_up_for(Writer& writer, bool begins) {
    for (int i = 0; i < warm_up; ++i) {
      if (!is_brief_) compute(writer, begins);
      if (is_brief_ && begins) writer.begin(++checkpoint_);
    }
    if (!is_brief_) return;
    if (begins) writer.wait();
    advance();
  }

  Interval compute(Writer& writer, bool begins) {
    Interval interval;
    writer.remove_older();
    barrier();
    const double others_before = other_threads_s();
    const double begin = now();
    if (begins) {
      writer.begin(++checkpoint_);
      interval.blocked = over_ranks(now() - begin, MPI_MAX);
    }
    for (int step = 0; step < steps_; ++step) {
      const double step_begin = now();
      interval.own_step += advance() / steps_;
      const double took = now() - step_begin;
      interval.steps.push_back(took);
      if (begins && writer.is_writing()) interval.writing_steps.push_back(took);
    }
    interval.total = span(begin, now());
    interval.other_threads = over_ranks(other_threads_s() - others_before, MPI_SUM);
    return interval;
  }

  /// A step of a solver that watches its energy. Seconds of this rank without that.
  double advance() {
    const double begin = now();
    solver_.advance(solver_.stable_time_step());
    const double took = now() - begin;
    check(over_ranks(solver_.energy_of_rank(), MPI_SUM) > 0, "the solver has failed");
    return took;
  }

  nekcem::Maxwell solver_;
  int steps_;
  bool is_brief_;
  std::int64_t checkpoint_ = 0;
  std::vector<FieldData> fields_;
};

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  using namespace cairn::bench;
  std::string directory;
  int elements = 0, order = 0, steps = 0, intervals = 0, rounds = 0;
  std::vector<std::string> texts;
  CLI::App app("What checkpoints cost a program that computes");
  bool is_brief = false;
  app.add_flag("--briefly", is_brief, "warm up with checkpoints and one step");
  app.add_option("DIRECTORY", directory)->required();
  app.add_option("ELEMENTS", elements)->required();
  app.add_option("ORDER", order)->required();
  app.add_option("STEPS", steps)->required();
  app.add_option("INTERVALS", intervals)->required();
  app.add_option("ROUNDS", rounds)->required();
  app.add_option("VARIANT", texts)->required();
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  std::vector<Variant> variants;
  for (const std::string& text : texts) variants.push_back(parse_variant(text, directory));

  Computing computing(elements, order, steps, is_brief);
  nlohmann::json results;
  std::mt19937 same_on_all_ranks(std::mt19937::default_seed);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(variants.begin(), variants.end(), same_on_all_ranks);
    for (const Variant& variant : variants)
      results[variant.name].push_back(computing.run(variant, intervals));
  }
  results["checkpoint_bytes"] = computing.checkpoint_bytes();
  if (rank() == 0) fmt::print("{}\n", results.dump());
  MPI_Finalize();
  return 0;
}
