#include "session/shared_warnings.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "comm/team.hpp"

namespace cairn {
namespace {

using Texts = std::vector<std::string>;

/// What is logged where each rank does this.
Texts logged(int ranks, const std::function<void(Communicator&, const Log&)>& warn) {
  Texts lines;  // only rank 0 adds to it
  const Log log([&](Severity severity, const std::string& line) {
    EXPECT_EQ(severity, Severity::warning);
    lines.push_back(line);
  });
  Team(ranks).run([&](Communicator& comm) { warn(comm, comm.rank() == 0 ? log : Log()); });
  return lines;
}

/// Where each rank is on a node of its own.
Texts logged_of_nodes(int ranks, const std::function<Texts(int)>& texts_of) {
  return logged(ranks, [&](Communicator& comm, const Log& log) {
    warn_of_nodes(comm, log, fmt::format("n{}", comm.rank()), texts_of(comm.rank()));
  });
}

TEST(SharedWarnings, WhatAllNodesHaveIsOneLine) {
  EXPECT_EQ(logged_of_nodes(7, [](int) { return Texts{"it is full"}; }),
            Texts{"7 nodes (n0 ... n6): it is full"});
}

TEST(SharedWarnings, FewNodesAreNamedAndAnotherTextHasALineOfItsOwn) {
  const auto texts_of = [](int rank) {
    if (rank == 4) return Texts{"it is slow", "it is full"};
    return rank == 1 || rank == 3 ? Texts{"it is full"} : Texts{};
  };
  EXPECT_EQ(logged_of_nodes(5, texts_of),
            (Texts{"nodes n1, n3, n4: it is full", "node n4: it is slow"}));
}

TEST(SharedWarnings, ANodeWithSeveralRanksIsNamedOnce) {
  const auto warn = [](Communicator& comm, const Log& log) {
    warn_of_nodes(comm, log, "n0", {"it is full"});
  };
  EXPECT_EQ(logged(4, warn), Texts{"node n0: it is full"});
}

TEST(SharedWarnings, WithoutAWarningNothingIsLogged) {
  EXPECT_EQ(logged_of_nodes(3, [](int) { return Texts{}; }), Texts());
  EXPECT_EQ(logged(3, [](Communicator& comm, const Log& log) { warn_of_ranks(comm, log, "", 0); }),
            Texts());
}

TEST(SharedWarnings, OfRanksTheFirstIsLoggedAndTheirNumber) {
  const auto warn = [](int first, std::int64_t ranks) {
    return logged(5, [=](Communicator& comm, const Log& log) {
      const bool has_one = comm.rank() >= first && comm.rank() < first + ranks;
      warn_of_ranks(comm, log, has_one ? fmt::format("rank {} waits", comm.rank()) : "", ranks);
    });
  };
  EXPECT_EQ(warn(1, 3), Texts{"3 ranks; the first: rank 1 waits"});
  EXPECT_EQ(warn(4, 1), Texts{"rank 4 waits"});
}

}  // namespace
}  // namespace cairn
