#include "maxwell.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace nekcem {
namespace {

constexpr int layer = Guide::elements_per_layer;
constexpr double edge = Guide::element_edge;
constexpr double from_reference = 2 / edge;  // derivatives on [-1, 1] to those of an element

// Carpenter and Kennedy, NASA TM 109112 (1994): five stages, fourth order, two registers.
struct Stage {
  double keep, take;
};
constexpr std::array<Stage, 5> stages = {{
    {0.0, 1432997174477.0 / 9575080441755.0},
    {-567301805773.0 / 1357537059087.0, 5161836677717.0 / 13612068292357.0},
    {-2404267990393.0 / 2016746695238.0, 1720146321549.0 / 2090206949498.0},
    {-3550918686646.0 / 2091501179385.0, 3134564353537.0 / 4481467310338.0},
    {-1275806237668.0 / 842570457699.0, 2277821191437.0 / 14882151754819.0},
}};

// The components of E and H along a face whose normal has the direction given, in the order in
// which the halo has them.
std::array<int, 4> along_face(int direction) {
  const int u = (direction + 1) % 3, v = (direction + 2) % 3;
  return {Ex + u, Ex + v, Hx + u, Hx + v};
}

int rank_in(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int ranks_in(MPI_Comm comm) {
  int ranks;
  MPI_Comm_size(comm, &ranks);
  return ranks;
}

double sum_over_ranks(MPI_Comm comm, double mine) {
  double sum;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  return sum;
}

}  // namespace

Maxwell::Maxwell(MPI_Comm comm, int layers_per_rank, int order)
    : comm_(comm),
      rank_(rank_in(comm)),
      layers_per_rank_(layers_per_rank),
      guide_(std::int64_t{layers_per_rank} * ranks_in(comm)),
      basis_(order),
      add_curl_(add_curl_for(basis_.points)),
      plane_(basis_.points * basis_.points),
      volume_(plane_ * basis_.points),
      halo_(comm, 4 * layer * plane_) {
  const std::size_t nodes = std::size_t{static_cast<unsigned>(layers_per_rank * layer)} * volume_;
  for (auto& field : fields_) field.resize(nodes);
  for (auto& change : change_) change.resize(nodes);
  for_each_node([&](std::size_t node, double x, double y, double z, double) {
    const auto exact = guide_.exact(x, y, z, 0);
    for (int c = 0; c < components; ++c) fields_[c][node] = exact[c];
  });
}

double Maxwell::stable_time_step() const {
  constexpr double courant = 0.4;  // found by trial: 0.55 is stable for all orders, 0.7 is not
  return courant * (basis_.nodes[1] - basis_.nodes[0]) / from_reference;
}

void Maxwell::advance(double time_step) {
  for (const Stage& stage : stages) {
    const double begin = MPI_Wtime();
    pack_faces();
    halo_.start();
    for (auto& change : change_)
      for (double& value : change) value *= stage.keep;
    add_curls(time_step);
    const double computed = MPI_Wtime();
    halo_.finish();
    const double exchanged = MPI_Wtime();
    add_fluxes(time_step);
    for (int c = 0; c < components; ++c)
      for (std::size_t i = 0; i < fields_[c].size(); ++i)
        fields_[c][i] += stage.take * change_[c][i];
    times_.exchange += exchanged - computed;
    times_.compute += (computed - begin) + (MPI_Wtime() - exchanged);
  }
}

// dE/dt = curl H and dH/dt = -curl E.
void Maxwell::add_curls(double time_step) {
  const double factor = time_step * from_reference;
  const auto vector_at = [](auto& fields, int first, std::size_t node) {
    return std::array{&fields[first][node], &fields[first + 1][node], &fields[first + 2][node]};
  };
  for (std::size_t node = 0; node < fields_[0].size(); node += volume_) {
    const Components& fields = fields_;
    add_curl_(basis_.derivative.data(), factor, vector_at(fields, Hx, node),
              vector_at(change_, Ex, node));
    add_curl_(basis_.derivative.data(), -factor, vector_at(fields, Ex, node),
              vector_at(change_, Hx, node));
  }
}

void Maxwell::pack_faces() {
  const auto along = along_face(2);
  const std::size_t last_layer = std::size_t{static_cast<unsigned>(layers_per_rank_ - 1)} * layer;
  for (std::size_t c = 0; c < along.size(); ++c)
    for (std::size_t element = 0; element < layer; ++element) {
      const double* lowest = &fields_[along[c]][element * volume_];
      const double* highest =
          &fields_[along[c]][(last_layer + element + 1) * volume_ - static_cast<unsigned>(plane_)];
      const std::size_t place = (c * layer + element) * plane_;
      std::copy_n(lowest, plane_, &halo_.lowest()[place]);
      std::copy_n(highest, plane_, &halo_.highest()[place]);
    }
}

void Maxwell::add_fluxes(double time_step) {
  for (int element = 0; element < layers_per_rank_ * layer; ++element)
    for (int direction = 0; direction < 3; ++direction)
      for (const bool upper : {false, true})
        add_fluxes_of_face(element, direction, upper, time_step);
}

// Lets the element see how the fields beyond a face differ from its own: the flux of the Riemann
// problem between them. A metal wall has the opposite electric field beyond it.
void Maxwell::add_fluxes_of_face(int element, int direction, bool upper, double time_step) {
  const std::array<int, 3> stride = {1, basis_.points, plane_};
  const std::array<int, 3> place = {element % Guide::elements_across,
                                    element % layer / Guide::elements_across, element / layer};
  const std::array<int, 3> places = {Guide::elements_across, Guide::elements_across,
                                     layers_per_rank_};
  const std::array<int, 3> neighbour = {1, Guide::elements_across, layer};
  const bool outermost = place[direction] == (upper ? places[direction] - 1 : 0);
  const int across = (basis_.points - 1) * stride[direction];
  const std::ptrdiff_t inside = std::ptrdiff_t{element} * volume_ + (upper ? across : 0);

  const auto along = along_face(direction);
  std::array<const double*, 4> own, beyond;
  for (std::size_t c = 0; c < along.size(); ++c) {
    own[c] = fields_[along[c]].data() + inside;
    if (!outermost) {
      const int next = element + (upper ? neighbour[direction] : -neighbour[direction]);
      beyond[c] = fields_[along[c]].data() + std::ptrdiff_t{next} * volume_ + (upper ? 0 : across);
    } else if (direction == 2) {
      const auto& face = upper ? halo_.above() : halo_.below();
      beyond[c] = &face[(c * layer + static_cast<unsigned>(element % layer)) * plane_];
    } else {
      beyond[c] = own[c];
    }
  }
  const double electric = outermost && direction != 2 ? -1 : 1;
  const double normal = upper ? 1 : -1;
  const double lift = 0.5 * time_step * from_reference / basis_.weights[0];

  std::array<double*, 4> change;
  for (std::size_t c = 0; c < along.size(); ++c) change[c] = change_[along[c]].data() + inside;
  const int stride_u = stride[(direction + 1) % 3], stride_v = stride[(direction + 2) % 3];
  for (int v = 0; v < basis_.points; ++v)
    for (int u = 0; u < basis_.points; ++u) {
      const int at = u * stride_u + v * stride_v;
      const double e_u = own[0][at] - electric * beyond[0][at];
      const double e_v = own[1][at] - electric * beyond[1][at];
      const double h_u = own[2][at] - beyond[2][at];
      const double h_v = own[3][at] - beyond[3][at];
      change[0][at] += lift * (normal * h_v - e_u);
      change[1][at] += lift * (-normal * h_u - e_v);
      change[2][at] += lift * (-normal * e_v - h_u);
      change[3][at] += lift * (normal * e_u - h_v);
    }
}

// visit(index, x, y, z, weight of the quadrature)
template <class Visit>
void Maxwell::for_each_node(Visit visit) const {
  const auto place = [&](std::int64_t element, int node) {
    return edge * (static_cast<double>(element) + (basis_.nodes[node] + 1) / 2);
  };
  constexpr double jacobian = (edge / 2) * (edge / 2) * (edge / 2);
  const std::int64_t first_layer = std::int64_t{rank_} * layers_per_rank_;
  std::size_t index = 0;
  for (int element = 0; element < layers_per_rank_ * layer; ++element) {
    const int in_layer = element % layer;
    for (int k = 0; k < basis_.points; ++k)
      for (int j = 0; j < basis_.points; ++j)
        for (int i = 0; i < basis_.points; ++i)
          visit(index++, place(in_layer % Guide::elements_across, i),
                place(in_layer / Guide::elements_across, j),
                place(first_layer + element / layer, k),
                jacobian * basis_.weights[i] * basis_.weights[j] * basis_.weights[k]);
  }
}

double Maxwell::energy_of_rank() const {
  double mine = 0;
  for_each_node([&](std::size_t node, double, double, double, double weight) {
    for (const auto& field : fields_) mine += 0.5 * weight * field[node] * field[node];
  });
  return mine;
}

Error Maxwell::error(double time) const {
  double squares = 0, exact_squares = 0, largest = 0, largest_of_all;
  for_each_node([&](std::size_t node, double x, double y, double z, double weight) {
    const auto exact = guide_.exact(x, y, z, time);
    for (int c = 0; c < components; ++c) {
      const double difference = fields_[c][node] - exact[c];
      squares += weight * difference * difference;
      exact_squares += weight * exact[c] * exact[c];
      if (!(std::abs(difference) <= largest))
        largest = std::abs(difference);  // also if it is no number
    }
  });
  MPI_Allreduce(&largest, &largest_of_all, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return {std::sqrt(sum_over_ranks(comm_, squares) / sum_over_ranks(comm_, exact_squares)),
          largest_of_all};
}

std::uint64_t Maxwell::digest() const {
  // A sum modulo 2^64 does not depend on the order, and the odd factor of each place keeps equal
  // values in other places apart.
  const std::uint64_t nodes_before = static_cast<std::uint64_t>(rank_) * fields_[0].size();
  std::uint64_t mine = 0, sum;
  for (std::size_t c = 0; c < components; ++c)
    for (std::size_t node = 0; node < fields_[c].size(); ++node) {
      const std::uint64_t place = (nodes_before + node) * components + c;
      std::uint64_t bits = std::bit_cast<std::uint64_t>(fields_[c][node]);
      bits = (bits ^ (bits >> 29)) * (place * 0x9E3779B97F4A7C15u | 1);
      mine += bits ^ (bits >> 32);
    }
  MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, comm_);
  return sum;
}

}  // namespace nekcem
