// Maxwell's equations in a guide: nodal discontinuous Galerkin elements with upwind fluxes, and a
// Runge-Kutta method of fourth order that needs one more copy of the fields.
//
// The elements lie in layers along z. Each rank has the same number of layers, in the order of the
// ranks. What an element computes does not depend on the rank that it is on, to the last bit.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

#include "basis.hpp"
#include "curl.hpp"
#include "guide.hpp"
#include "halo.hpp"

namespace nekcem {

struct Error {
  double l2;       // of all components, over that of the exact solution
  double largest;  // at any node, in any component
};

// Since the solver was made, in seconds.
struct SolverTimes {
  double compute = 0;
  double exchange = 0;  // waiting for the neighbours
};

class Maxwell {
 public:
  // Collective. The fields are those of the exact solution at time 0.
  Maxwell(MPI_Comm comm, int layers_per_rank, int order);

  // Everything that a run needs to continue, of this rank: element by element, x fastest.
  std::vector<double>& field(int component) { return fields_[component]; }

  double stable_time_step() const;
  const Guide& guide() const { return guide_; }
  std::int64_t nodes() const { return static_cast<std::int64_t>(fields_[0].size()); }
  const SolverTimes& times() const { return times_; }

  double energy_of_rank() const;

  // Each is collective.
  void advance(double time_step);
  Error error(double time) const;
  // Equal for equal fields, whatever the number of ranks.
  std::uint64_t digest() const;

 private:
  using Components = std::array<std::vector<double>, components>;

  void add_curls(double time_step);
  void pack_faces();
  void add_fluxes(double time_step);
  void add_fluxes_of_face(int element, int direction, bool upper, double time_step);
  template <class Visit>
  void for_each_node(Visit visit) const;

  MPI_Comm comm_;
  int rank_;
  int layers_per_rank_;
  Guide guide_;
  Basis basis_;
  AddCurl add_curl_;
  int plane_, volume_;  // nodes of a face and of an element
  Components fields_;
  Components change_;
  Halo halo_;
  SolverTimes times_;
};

}  // namespace nekcem
