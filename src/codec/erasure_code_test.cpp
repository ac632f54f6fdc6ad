#include "codec/erasure_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace cairn {
namespace {

using Stripe = std::vector<Blob>;

/// Random data of different lengths, padded to the longest, and their parity.
Stripe make_stripe(const ErasureCode& code, std::size_t length, unsigned seed) {
  std::mt19937 random(seed);
  Stripe stripe(static_cast<std::size_t>(code.data() + code.parity()), Blob(length));
  std::vector<MutableBytes> parity(stripe.begin() + code.data(), stripe.end());
  const Combination encoder = code.encoder();
  for (int slot = 0; slot < code.data(); ++slot) {
    const MutableBytes block = stripe[static_cast<std::size_t>(slot)];
    for (std::byte& byte : block.first(length - static_cast<std::size_t>(slot) % length))
      byte = static_cast<std::byte>(random());
    encoder.add(slot, block, parity);
  }
  return stripe;
}

void expect_repaired(const ErasureCode& code, const Stripe& stripe, const std::vector<int>& lost) {
  const StripeRepair plan = code.repair(lost);
  ASSERT_EQ(plan.targets.size(), lost.size());
  Stripe rebuilt(lost.size(), Blob(stripe[0].size()));
  const std::vector<MutableBytes> outputs(rebuilt.begin(), rebuilt.end());
  for (std::size_t input = 0; input < plan.sources.size(); ++input) {
    for (const int slot : lost) ASSERT_NE(plan.sources[input], slot) << "reads what is lost";
    plan.combination.add(static_cast<int>(input),
                         stripe[static_cast<std::size_t>(plan.sources[input])], outputs);
  }
  for (std::size_t i = 0; i < lost.size(); ++i)
    ASSERT_EQ(rebuilt[i], stripe[static_cast<std::size_t>(plan.targets[i])]);
}

/// Every choice of at most `most` slots out of `slots`.
void each_loss(int slots, int most, const std::function<void(const std::vector<int>&)>& action,
               std::vector<int> chosen = {}) {
  action(chosen);
  if (static_cast<int>(chosen.size()) == most) return;
  for (int slot = chosen.empty() ? 0 : chosen.back() + 1; slot < slots; ++slot) {
    chosen.push_back(slot);
    each_loss(slots, most, action, chosen);
    chosen.pop_back();
  }
}

TEST(ErasureCode, EveryLossWithinTheCodesLimitIsRepaired) {
  for (const auto& [data, parity] : std::vector<std::pair<int, int>>{
           {1, 1}, {1, 3}, {2, 1}, {7, 1}, {2, 2}, {3, 2}, {6, 2}, {4, 3}, {5, 4}, {6, 6}}) {
    const ErasureCode code(data, parity);
    const Stripe stripe = make_stripe(code, 100, 5);
    each_loss(data + parity, parity,
              [&](const std::vector<int>& lost) { expect_repaired(code, stripe, lost); });
  }
}

TEST(ErasureCode, LargeSetsSurviveRandomLossesOfTheMaximum) {
  std::mt19937 random(7);
  for (const auto& [data, parity] : std::vector<std::pair<int, int>>{{56, 8}, {62, 2}, {20, 8}}) {
    const ErasureCode code(data, parity);
    const Stripe stripe = make_stripe(code, 40, 6);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> slots(static_cast<std::size_t>(data + parity));
      for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int>(i);
      std::shuffle(slots.begin(), slots.end(), random);
      slots.resize(static_cast<std::size_t>(parity));
      std::sort(slots.begin(), slots.end());
      expect_repaired(code, stripe, slots);
    }
  }
}

TEST(ErasureCode, TheFirstParityIsThatOfXor) {
  const Stripe one = make_stripe(ErasureCode(5, 1), 64, 9);
  const Stripe three = make_stripe(ErasureCode(5, 3), 64, 9);
  EXPECT_EQ(one[5], three[5]);
  Blob sum(64);
  for (int slot = 0; slot < 5; ++slot)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] ^= one[static_cast<std::size_t>(slot)][i];
  EXPECT_EQ(one[5], sum);
}

TEST(ErasureCode, CopiesAreCopies) {
  const Stripe stripe = make_stripe(ErasureCode(1, 2), 64, 9);
  EXPECT_EQ(stripe[0], stripe[1]);
  EXPECT_EQ(stripe[0], stripe[2]);
}

}  // namespace
}  // namespace cairn
