// What the ranks below and above along the guide have on the faces that they share with this rank.
#pragma once

#include <mpi.h>

#include <array>
#include <vector>

namespace nekcem {

class Halo {
 public:
  // `values` per face of a layer, for both directions.
  Halo(MPI_Comm comm, int values);

  // To fill before start(): what this rank has on its lowest and on its highest face.
  std::vector<double>& lowest() { return sent_[0]; }
  std::vector<double>& highest() { return sent_[1]; }

  void start();
  void finish();

  // After finish(): the highest face of the rank below, and the lowest one of the rank above.
  const std::vector<double>& below() const { return received_[0]; }
  const std::vector<double>& above() const { return received_[1]; }

 private:
  MPI_Comm comm_;
  int rank_below_, rank_above_;
  std::array<std::vector<double>, 2> sent_, received_;
  std::array<MPI_Request, 4> requests_;
};

}  // namespace nekcem
