// A wave travels around a ring of cells. Each rank computes one part of the ring.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

constexpr int cells = 10000;
constexpr int last_step = 60;

// One rank's part of the ring, and the step: everything that the rank needs to continue.
class Wave {
 public:
  Wave(int rank, int ranks) : rank_(rank), ranks_(ranks) { begin(); }

  int step() const { return step_; }

  void begin() {
    step_ = 0;
    for (int i = 1; i <= cells; ++i) wave_[i] = (rank_ + i) % 100;
  }

  void advance() {
    MPI_Sendrecv(&wave_[cells], 1, MPI_DOUBLE, (rank_ + 1) % ranks_, 0, &wave_[0], 1, MPI_DOUBLE,
                 (rank_ + ranks_ - 1) % ranks_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = cells; i > 0; --i) wave_[i] += 0.4 * (wave_[i - 1] - wave_[i]);
    ++step_;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // in place of a longer computation
  }

  void report() const {
    if (rank_ == 0) std::printf("step %d: %.6f\n", step_, wave_[1]);
    std::fflush(stdout);
  }

 private:
  int rank_, ranks_;
  int step_ = 0;
  // wave_[0] is a copy of the left neighbour's last cell.
  std::vector<double> wave_ = std::vector<double>(cells + 1);
};

void compute(Wave& wave) {
  wave.report();
  while (wave.step() < last_step) {
    wave.advance();
    if (wave.step() % 10 == 0) wave.report();
  }
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Wave wave(rank, ranks);
  compute(wave);
  MPI_Finalize();
  return 0;
}
