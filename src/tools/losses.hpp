// The share of possible losses that a job survives: counted, or estimated from samples.
//
// What is lost is one or more failure groups, each with all its ranks. Groups that share no
// redundancy set do not matter to each other, so the count is taken for each cluster of groups that
// do, and the clusters are combined by arithmetic: 1000 nodes in sets of 8 are 125 small counts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "config/settings.hpp"
#include "records/set_layout.hpp"
#include "topology/sets.hpp"

namespace cairn {

/// What may be lost: each choice of `number` groups, all equally likely; or, where that is 0, each
/// group on its own with probability `rate`.
struct LossModel {
  int number = 0;
  double rate = 0;
};

/// How often a job survives.
struct Survival {
  double not_survived = 0;   ///< share of the losses, or probability
  double error_95 = 0;       ///< of it, at 95 % confidence; 0 where counted
  double losses = 0;         ///< how many were counted or sampled; 0 for a rate that was counted
  double survived = 0;       ///< of these; both are whole numbers, exact below 1e14
  std::vector<int> example;  ///< groups whose loss is not survived, but is without any one of them
};

class Losses {
 public:
  /// `group_of_rank` numbers the failure groups from 0.
  Losses(const std::vector<RedundancySet>& sets, const CheckpointSettings& checkpoint,
         const std::vector<int>& group_of_rank);

  int groups() const { return static_cast<int>(rings_of_group_.size()); }

  /// True if every set survives the loss of these groups.
  bool survived(const std::vector<int>& groups) const;

  /// Nothing if it would take more than some millions of steps, or the numbers are too large.
  std::optional<Survival> count(const LossModel& model) const;

  /// The same seed gives the same answer.
  Survival estimate(const LossModel& model, std::uint64_t seed, int samples) const;

 private:
  class Search;

  std::optional<Survival> count_number(int number) const;
  std::optional<Survival> count_rate(double rate) const;

  /// The failure group of each member of a set, in its order.
  using Ring = std::vector<int>;

  bool holds(const Ring& ring, const std::vector<bool>& lost) const;
  bool holds_around(int group, const std::vector<bool>& lost) const;
  /// Groups that are tied to each other by rings, ascending.
  std::vector<std::vector<int>> clusters() const;
  /// The rings of a cluster, with its groups renumbered from 0: equal where clusters are alike.
  std::vector<Ring> shape_of(const std::vector<int>& cluster) const;
  /// Takes out what need not be lost for the loss to be too much.
  std::vector<int> smallest(std::vector<int> groups) const;

  std::vector<Ring> rings_;  ///< each once, however many sets lie on the same groups
  std::vector<std::vector<int>> rings_of_group_;
  std::vector<int> members_around_;  ///< of each group: in all its rings
  std::map<std::size_t, SetLayout> layout_of_size_;
};

/// How far from hits / samples the true share may be, at 95 % confidence (Wilson's interval, which
/// is not empty where there was no hit).
double error_95(double hits, double samples);

}  // namespace cairn
