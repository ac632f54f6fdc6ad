// A wave travels around a ring of cells. Each rank computes one part of the ring.
#include <mpi.h>
#include <scr.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
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

  bool save(const std::string& checkpoint) const {
    std::ofstream file(path_of_file(checkpoint), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&step_), sizeof step_);
    file.write(reinterpret_cast<const char*>(wave_.data()), bytes());
    file.close();
    return file.good();
  }

  bool load(const std::string& checkpoint) {
    std::ifstream file(path_of_file(checkpoint), std::ios::binary);
    file.read(reinterpret_cast<char*>(&step_), sizeof step_);
    file.read(reinterpret_cast<char*>(wave_.data()), bytes());
    return file.good();
  }

 private:
  // Where this rank writes or reads its file of the checkpoint; "" after an error.
  std::string path_of_file(const std::string& checkpoint) const {
    const std::string name = checkpoint + "/rank." + std::to_string(rank_);
    char path[SCR_MAX_FILENAME];
    return SCR_Route_file(name.c_str(), path) == SCR_SUCCESS ? path : "";
  }

  std::streamsize bytes() const {
    return static_cast<std::streamsize>(wave_.size() * sizeof(double));
  }

  int rank_, ranks_;
  int step_ = 0;
  // wave_[0] is a copy of the left neighbour's last cell.
  std::vector<double> wave_ = std::vector<double>(cells + 1);
};

void write_checkpoint(const Wave& wave) {
  const std::string name = "step." + std::to_string(wave.step());
  if (SCR_Start_output(name.c_str(), SCR_FLAG_CHECKPOINT) == SCR_SUCCESS)
    SCR_Complete_output(wave.save(name));
}

// Restores the newest checkpoint that all ranks can load. Without one, begins at step 0. Returns
// false if there is a checkpoint that Cairn cannot read now.
bool restart(Wave& wave) {
  char name[SCR_MAX_FILENAME];
  int found = 0, error;
  while ((error = SCR_Have_restart(&found, name)) == SCR_SUCCESS && found) {
    if (SCR_Start_restart(name) != SCR_SUCCESS) continue;
    if (SCR_Complete_restart(wave.load(name)) == SCR_SUCCESS) return true;
  }
  wave.begin();
  return error == SCR_SUCCESS || error == CAIRN_E_DISABLED;
}

void compute(Wave& wave) {
  wave.report();
  while (wave.step() < last_step) {
    wave.advance();
    if (wave.step() % 10 == 0) {
      write_checkpoint(wave);
      wave.report();
    }
  }
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  SCR_Init();  // if it fails, it prints why, and the program runs without checkpoints
  Wave wave(rank, ranks);
  const bool ready = restart(wave);
  if (ready) compute(wave);
  SCR_Finalize();
  MPI_Finalize();
  return ready ? 0 : 1;
}
