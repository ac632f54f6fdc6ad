// How long ranks take that share a machine.
#pragma once

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "compute.hpp"

namespace cairn::bench {

inline int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

inline int ranks() {
  int value = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

inline void check(bool good, const std::string& what) {
  if (good) return;
  fmt::print(stderr, "rank {}: {}\n", rank(), what);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/// Seconds, by the one clock of the machine. That of MPI begins anew in each process.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Waits as the library does: a blocking call of more ranks than cores costs tens of milliseconds,
/// which would be charged to whatever is measured.
inline void finish(MPI_Request request) {
  constexpr int patience_looks = 100;
  constexpr useconds_t nap_us = 20;
  int looks = 0;
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    if (++looks < patience_looks)
      sched_yield();
    else
      usleep(nap_us);
}

inline void barrier() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  finish(request);
}

inline void write_file(const std::string& path, std::span<const char> data) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  check(file != nullptr, "cannot open " + path);
  check(std::fwrite(data.data(), 1, data.size(), file) == data.size(), "cannot write " + path);
  check(std::fclose(file) == 0, "cannot close " + path);
}

/// From when the first rank began to when the first one left the barrier: what a rank does after it
/// (deleting, for one) is not charged.
inline double span(double begin, double end) {
  double first_begin = 0;
  double first_end = 0;
  MPI_Allreduce(&begin, &first_begin, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&end, &first_end, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  return first_end - first_begin;
}

/// The floor of a checkpoint: the same bytes written plainly to `folder`, then a barrier. Seconds.
inline double floor_s(const std::string& folder, std::span<const char> data) {
  const std::string path = folder + "/floor." + std::to_string(rank());
  barrier();
  const double begin = now();
  write_file(path, data);
  barrier();
  const double seconds = span(begin, now());
  std::filesystem::remove(path);
  return seconds;
}

/// On all ranks.
inline double of_all(double mine, MPI_Op op) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  return all;
}

/// Waits for all ranks, and leaves the cores to those that still compute: no polling in MPI.
inline void sleep_until_all_come() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) usleep(1000);
}

inline double longest_of_all(double mine) {
  sleep_until_all_come();
  return of_all(mine, MPI_MAX);
}

/// The times of so many reductions of 8 bytes, each after a millisecond of computing.
inline std::vector<double> time_reductions(int times) {
  std::vector<double> each;
  for (int i = 0; i < times; ++i) {
    const double end = now() + 0.001;
    while (now() < end) compute(100);
    const double begin = now();
    double mine = i;
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    each.push_back(now() - begin);
  }
  return each;
}

}  // namespace cairn::bench
