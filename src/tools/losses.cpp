#include "tools/losses.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>

namespace cairn {
namespace {

/// Members to look at: some seconds, for millions of losses in sets of usual sizes.
constexpr int most_steps = 200'000'000;
/// Whatever survives the loss of n groups survives that of each of the 2^n selections of them, and
/// these would have to be counted too.
constexpr int most_lost = 28;

SetLayout layout_of(std::size_t members, const CheckpointSettings& checkpoint) {
  Encoding encoding = make_encoding(checkpoint, std::vector<int>(members), 1);
  encoding.member_bytes.resize(members);
  return SetLayout(encoding);
}

/// Ways to choose `k` of `n`, exact below 1e14, infinite where that is too large for a number.
double choose(int n, int k) {
  double ways = 1;
  for (int i = 0; i < std::min(k, n - k); ++i) ways = ways * (n - i) / (i + 1);
  return std::isfinite(ways) ? ways : HUGE_VAL;
}

/// Of how many losses of 0, 1, 2, ... groups are survived, in two clusters together.
std::vector<double> combined(const std::vector<double>& a, const std::vector<double>& b,
                             std::size_t most) {
  std::vector<double> both(std::min(a.size() + b.size() - 1, most + 1));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size() && i + j < both.size(); ++j) both[i + j] += a[i] * b[j];
  return both;
}

/// The probability that exactly `lost` of `groups` are lost, each at this rate.
double chance(int groups, int lost, double rate) {
  const int left = groups - lost;
  const double ways = std::lgamma(groups + 1.0) - std::lgamma(lost + 1.0) - std::lgamma(left + 1.0);
  return std::exp(ways + lost * std::log(rate) + (left == 0 ? 0 : left * std::log1p(-rate)));
}

/// The probability that a cluster of `groups`, each lost at this rate, is not survived.
double cluster_not_survived(const std::vector<double>& survived, int groups, double rate) {
  double sum = 0;
  for (int lost = 1; lost <= groups; ++lost) {
    const auto place = static_cast<std::size_t>(lost);
    const double held = place < survived.size() ? survived[place] / choose(groups, lost) : 0;
    sum += chance(groups, lost, rate) * (1 - held);
  }
  return std::min(sum, 1.0);
}

using Random = std::mt19937_64;

/// Even over [0, 1); the standard's distributions differ between libraries.
double uniform(Random& random) { return std::ldexp(static_cast<double>(random() >> 11U), -53); }

/// `number` of `groups`, each choice equally likely, in as many steps (Floyd).
std::vector<int> draw_number(int groups, int number, Random& random, std::vector<bool>& taken) {
  std::vector<int> drawn;
  for (int last = groups - number; last < groups; ++last) {
    const int any = static_cast<int>(uniform(random) * (last + 1));
    drawn.push_back(taken[static_cast<std::size_t>(any)] ? last : any);
    taken[static_cast<std::size_t>(drawn.back())] = true;
  }
  for (const int group : drawn) taken[static_cast<std::size_t>(group)] = false;
  return drawn;
}

/// Each group at this rate, in a step for each that is lost.
std::vector<int> draw_rate(int groups, double rate, Random& random) {
  std::vector<int> drawn;
  for (double next = 0;; ++next) {
    next += std::floor(std::log(1 - uniform(random)) / std::log1p(-rate));
    if (next >= groups) return drawn;
    drawn.push_back(static_cast<int>(next));
  }
}

}  // namespace

double error_95(double hits, double samples) {
  constexpr double z = 1.959964;
  const double share = hits / samples;
  const double half =
      z * std::sqrt(share * (1 - share) / samples + z * z / (4 * samples * samples));
  const double centre = share + z * z / (2 * samples);
  return (half + std::abs(centre - share * (1 + z * z / samples))) / (1 + z * z / samples);
}

Losses::Losses(const std::vector<RedundancySet>& sets, const CheckpointSettings& checkpoint,
               const std::vector<int>& group_of_rank) {
  std::set<Ring> rings;
  for (const RedundancySet& set : sets) {
    Ring ring;
    for (const int rank : set) ring.push_back(group_of_rank[static_cast<std::size_t>(rank)]);
    if (layout_of_size_.count(ring.size()) == 0)
      layout_of_size_.emplace(ring.size(), layout_of(ring.size(), checkpoint));
    rings.insert(std::move(ring));
  }
  rings_.assign(rings.begin(), rings.end());
  rings_of_group_.resize(
      static_cast<std::size_t>(*std::max_element(group_of_rank.begin(), group_of_rank.end()) + 1));
  members_around_.resize(rings_of_group_.size());
  for (std::size_t number = 0; number < rings_.size(); ++number)
    for (const int group : std::set<int>(rings_[number].begin(), rings_[number].end())) {
      rings_of_group_[static_cast<std::size_t>(group)].push_back(static_cast<int>(number));
      members_around_[static_cast<std::size_t>(group)] += static_cast<int>(rings_[number].size());
    }
}

bool Losses::holds(const Ring& ring, const std::vector<bool>& lost) const {
  std::vector<bool> lost_members;
  for (const int group : ring) lost_members.push_back(lost[static_cast<std::size_t>(group)]);
  return survives(layout_of_size_.at(ring.size()), lost_members);
}

bool Losses::holds_around(int group, const std::vector<bool>& lost) const {
  const auto& rings = rings_of_group_[static_cast<std::size_t>(group)];
  return std::all_of(rings.begin(), rings.end(),
                     [&](int ring) { return holds(rings_[static_cast<std::size_t>(ring)], lost); });
}

bool Losses::survived(const std::vector<int>& groups) const {
  std::vector<bool> lost(rings_of_group_.size());
  for (const int group : groups) lost[static_cast<std::size_t>(group)] = true;
  return std::all_of(groups.begin(), groups.end(),
                     [&](int group) { return holds_around(group, lost); });
}

std::vector<int> Losses::smallest(std::vector<int> groups) const {
  std::sort(groups.begin(), groups.end());
  for (std::size_t i = groups.size(); i-- > 0;) {
    std::vector<int> fewer = groups;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!survived(fewer)) groups = std::move(fewer);
  }
  return groups;
}

std::vector<std::vector<int>> Losses::clusters() const {
  std::vector<std::vector<int>> found;
  std::vector<bool> seen(rings_of_group_.size());
  for (int first = 0; first < groups(); ++first) {
    if (seen[static_cast<std::size_t>(first)]) continue;
    seen[static_cast<std::size_t>(first)] = true;
    std::vector<int> cluster = {first};
    for (std::size_t i = 0; i < cluster.size(); ++i)
      for (const int ring : rings_of_group_[static_cast<std::size_t>(cluster[i])])
        for (const int group : rings_[static_cast<std::size_t>(ring)])
          if (!seen[static_cast<std::size_t>(group)]) {
            seen[static_cast<std::size_t>(group)] = true;
            cluster.push_back(group);
          }
    std::sort(cluster.begin(), cluster.end());
    found.push_back(std::move(cluster));
  }
  return found;
}

std::vector<Losses::Ring> Losses::shape_of(const std::vector<int>& cluster) const {
  std::set<Ring> shape;
  for (const int group : cluster)
    for (const int number : rings_of_group_[static_cast<std::size_t>(group)]) {
      Ring ring = rings_[static_cast<std::size_t>(number)];
      for (int& member : ring)
        member = static_cast<int>(std::lower_bound(cluster.begin(), cluster.end(), member) -
                                  cluster.begin());
      shape.insert(std::move(ring));
    }
  return {shape.begin(), shape.end()};
}

/// Counts the losses in one cluster after another that are survived, by how many groups they take.
/// A loss that is not survived is not made worse: nothing that includes it is.
class Losses::Search {
 public:
  Search(const Losses& losses, int most)
      : losses_(losses), lost_(losses.rings_of_group_.size()), most_(most) {}

  /// By number of groups lost, from 0; nothing if that takes too many steps.
  std::optional<std::vector<double>> survived(const std::vector<int>& cluster) {
    const auto shape = losses_.shape_of(cluster);
    if (const auto known = known_.find(shape); known != known_.end()) return known->second;
    counts_ = {1};
    if (!extend(cluster, 0)) return std::nullopt;
    return known_[shape] = counts_;
  }

  const std::vector<int>& first_not_survived() const { return first_not_survived_; }

 private:
  bool extend(const std::vector<int>& cluster, std::size_t from) {
    const int lost = static_cast<int>(chosen_.size());
    if (lost == most_) return true;
    if (lost == most_lost) return false;
    bool in_time = true;
    for (std::size_t i = from; i < cluster.size() && in_time; ++i) {
      lost_[static_cast<std::size_t>(cluster[i])] = true;
      chosen_.push_back(cluster[i]);
      steps_left_ -= losses_.members_around_[static_cast<std::size_t>(cluster[i])];
      in_time = steps_left_ >= 0 && extend_or_give_up(cluster, i);
      chosen_.pop_back();
      lost_[static_cast<std::size_t>(cluster[i])] = false;
    }
    return in_time;
  }

  bool extend_or_give_up(const std::vector<int>& cluster, std::size_t last) {
    if (losses_.holds_around(chosen_.back(), lost_)) {
      counts_.resize(std::max(counts_.size(), chosen_.size() + 1));
      ++counts_[chosen_.size()];
      return extend(cluster, last + 1);
    }
    if (first_not_survived_.empty()) first_not_survived_ = losses_.smallest(chosen_);
    return true;
  }

  const Losses& losses_;
  std::map<std::vector<Ring>, std::vector<double>> known_;
  std::vector<bool> lost_;
  std::vector<int> chosen_;
  std::vector<double> counts_;
  std::vector<int> first_not_survived_;
  int most_;
  int steps_left_ = most_steps;
};

std::optional<Survival> Losses::count(const LossModel& model) const {
  return model.number > 0 ? count_number(model.number) : count_rate(model.rate);
}

std::optional<Survival> Losses::count_number(int number) const {
  Survival answer;
  answer.losses = choose(groups(), number);
  if (!std::isfinite(answer.losses)) return std::nullopt;
  const auto most = static_cast<std::size_t>(number);
  Search search(*this, number);
  std::vector<double> together = {1};
  for (const std::vector<int>& cluster : clusters()) {
    const auto survived = search.survived(cluster);
    if (!survived) return std::nullopt;
    together = combined(together, *survived, most);
  }
  answer.survived = most < together.size() ? together[most] : 0;
  answer.not_survived = (answer.losses - answer.survived) / answer.losses;
  answer.example = search.first_not_survived();
  return answer;
}

std::optional<Survival> Losses::count_rate(double rate) const {
  Search search(*this, groups());
  double all_well = 0;  // logarithm of its probability, so that small chances do not drown
  for (const std::vector<int>& cluster : clusters()) {
    const auto survived = search.survived(cluster);
    if (!survived) return std::nullopt;
    all_well +=
        std::log1p(-cluster_not_survived(*survived, static_cast<int>(cluster.size()), rate));
  }
  Survival answer;
  answer.not_survived = 0 - std::expm1(all_well);  // where it is nothing, 0 and not -0
  answer.example = search.first_not_survived();
  return answer;
}

Survival Losses::estimate(const LossModel& model, std::uint64_t seed, int samples) const {
  Random random(seed);
  Survival answer;
  std::vector<bool> taken(rings_of_group_.size());
  for (int sample = 0; sample < samples; ++sample) {
    const std::vector<int> drawn = model.number > 0
                                       ? draw_number(groups(), model.number, random, taken)
                                       : draw_rate(groups(), model.rate, random);
    if (survived(drawn))
      ++answer.survived;
    else if (answer.example.empty())
      answer.example = smallest(drawn);
  }
  answer.losses = samples;
  answer.not_survived = (answer.losses - answer.survived) / answer.losses;
  answer.error_95 = error_95(answer.losses - answer.survived, answer.losses);
  return answer;
}

}  // namespace cairn
