// What every Communicator must do, whatever its transport: run by communicator_test over the Team
// and by tests/mpi over real MPI. A check that fails throws, so that no other rank is left waiting.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/group.hpp"

namespace cairn::checks {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("does not hold: " + what);
}

/// Bytes that tell where they came from.
inline Blob pattern(std::uint32_t seed, std::size_t bytes) {
  std::minstd_rand random(seed + 1);
  Blob blob(bytes);
  std::generate(blob.begin(), blob.end(), [&] { return static_cast<std::byte>(random() >> 8); });
  return blob;
}

inline std::uint32_t seed_of(int from, int to) {
  return static_cast<std::uint32_t>(from * 1000 + to);
}

inline void messages_go_round_a_ring(Communicator& comm) {
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  for (const std::size_t bytes : {0, 1, 100, 1 << 17}) {
    const Blob mine = pattern(seed_of(comm.rank(), next), bytes);
    Blob theirs(bytes);
    Request requests[] = {comm.isend(mine, next, 7), comm.irecv(theirs, before, 7)};
    wait_all(comm, requests);
    require(!requests[0] && !requests[1], "a request waited for is null");
    require(theirs == pattern(seed_of(before, comm.rank()), bytes), "the message arrives");
  }
}

inline void messages_of_one_tag_keep_their_order(Communicator& comm) {
  if (comm.size() < 2 || comm.rank() > 1) return;
  constexpr std::int64_t count = 50;
  std::int64_t value = 0;
  if (comm.rank() == 0) {
    for (value = 0; value < count; ++value) send(comm, bytes_of(value), 1, 3);
    return;
  }
  for (std::int64_t expected = 0; expected < count; ++expected) {
    recv(comm, mutable_bytes_of(value), 0, 3);
    require(value == expected, "order of one tag");
  }
}

inline void tags_are_told_apart(Communicator& comm) {
  if (comm.size() < 2 || comm.rank() > 1) return;
  if (comm.rank() == 0) {
    const std::int32_t one = 1, two = 2;
    Request requests[] = {comm.isend(bytes_of(one), 1, 1), comm.isend(bytes_of(two), 1, 2)};
    return wait_all(comm, requests);
  }
  std::int32_t value = 0;
  recv(comm, mutable_bytes_of(value), 0, 2);
  require(value == 2, "the later tag can be taken first");
  recv(comm, mutable_bytes_of(value), 0, 1);
  require(value == 1, "and then the earlier");
}

inline void wait_any_takes_each_once(Communicator& comm) {
  const auto size = static_cast<std::size_t>(comm.size());
  std::vector<int> values(size, -1);
  const int mine = comm.rank();
  std::vector<Request> requests;
  for (int peer = 0; peer < comm.size(); ++peer)
    requests.push_back(
        comm.irecv(mutable_bytes_of(values[static_cast<std::size_t>(peer)]), peer, 4));
  for (int peer = 0; peer < comm.size(); ++peer)
    requests.push_back(comm.isend(bytes_of(mine), peer, 4));
  std::vector<bool> taken(2 * size);
  for (std::size_t i = 0; i < 2 * size; ++i) {
    const int index = wait_any(comm, requests);
    require(index >= 0 && !taken[static_cast<std::size_t>(index)], "each request completes once");
    taken[static_cast<std::size_t>(index)] = true;
    if (index < comm.size()) require(values[static_cast<std::size_t>(index)] == index, "its value");
  }
  require(wait_any(comm, requests) == -1, "nothing is left");
}

inline std::int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// All ranks are on one machine in tests, and share its clock.
inline void nobody_leaves_a_barrier_before_all_have_come(Communicator& comm) {
  for (int late = 0; late < comm.size(); ++late) {
    if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::int64_t came = steady_ns();
    comm.barrier();
    const std::int64_t left = steady_ns();
    const std::int64_t all_came = allreduce(comm, came, Reduce::max);
    require(allreduce(comm, left, Reduce::min) >= all_came, "a barrier holds");
  }
}

inline void allreduce_combines(Communicator& comm) {
  const std::int64_t size = comm.size(), rank = comm.rank();
  require(allreduce(comm, rank, Reduce::sum) == size * (size - 1) / 2, "sum");
  require(allreduce(comm, rank - 3, Reduce::min) == -3, "min");
  require(allreduce(comm, rank, Reduce::max) == size - 1, "max");
  std::vector<std::int64_t> values(1000);
  std::iota(values.begin(), values.end(), rank);
  comm.allreduce(values, Reduce::sum);
  for (std::int64_t i = 0; i < 1000; ++i)
    require(values[static_cast<std::size_t>(i)] == size * i + size * (size - 1) / 2, "element");
}

inline void bcast_reaches_all(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    const Blob sent = pattern(seed_of(root, 0), 1000);
    Blob data = comm.rank() == root ? sent : Blob(sent.size());
    comm.bcast(data, root);
    require(data == sent, "the root's bytes");
    for (const std::size_t bytes : {0, 17}) {
      Blob blob = pattern(seed_of(comm.rank(), 1), comm.rank() == root ? bytes : 5);
      bcast_blob(comm, blob, root);
      require(blob == pattern(seed_of(root, 1), bytes), "the root's blob");
    }
  }
}

inline void allgather_orders_by_rank(Communicator& comm) {
  for (const std::size_t bytes : {0, 1, 24}) {
    Blob all(bytes * static_cast<std::size_t>(comm.size()));
    comm.allgather(pattern(seed_of(comm.rank(), 2), bytes), all);
    Blob expected;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const Blob piece = pattern(seed_of(rank, 2), bytes);
      expected.insert(expected.end(), piece.begin(), piece.end());
    }
    require(all == expected, "pieces in the order of ranks");
  }
}

inline void agree_returns_one_verdict(Communicator& comm) {
  require(agree(comm, {}).has_value(), "all is well");
  for (int first = 0; first < comm.size(); ++first) {
    Status mine;
    if (comm.rank() >= first) mine = fail(Code::no_space, "disk {} is full", comm.rank());
    const Status all = agree(comm, std::move(mine));
    require(!all, "one error is an error of all");
    require(all.error().code == Code::no_space && all.error().rank == first &&
                all.error().text == fmt::format("disk {} is full", first),
            "the error of the lowest rank");
  }
  const Status wordless = agree(comm, tl::unexpected<Error>(Error{Code::io, "", -1}));
  require(!wordless && wordless.error().text.empty(), "an error without a text");
}

/// What `from` sends to `to`: some get nothing, some several, so that order matters.
inline std::vector<Blob> letters(int from, int to) {
  std::vector<Blob> blobs;
  const std::uint32_t seed = seed_of(from, to);
  for (std::uint32_t i = 0; i < (seed * 7919) % 4; ++i)
    blobs.push_back(pattern(seed + i, (seed * 31 + i * 5) % 40));
  return blobs;
}

inline void exchange_delivers_in_order(Communicator& comm) {
  std::vector<Parcel> outgoing;
  for (int to = comm.size() - 1; to >= 0; --to)
    for (Blob& blob : letters(comm.rank(), to)) outgoing.push_back(Parcel{to, std::move(blob)});
  const std::vector<Parcel> arrived = exchange(comm, std::move(outgoing));
  std::size_t next = 0;
  for (int from = 0; from < comm.size(); ++from) {
    for (const Blob& blob : letters(from, comm.rank())) {
      require(next < arrived.size() && arrived[next].peer == from && arrived[next].payload == blob,
              "parcels by sender, then as sent");
      ++next;
    }
  }
  require(next == arrived.size(), "nothing but what was sent");
  require(exchange(comm, {}).empty(), "nothing sent, nothing delivered");
}

inline void gather_first_is_of_the_lowest_ranks(Communicator& comm) {
  const auto of = [](int rank) {
    return rank % 3 == 1 ? Blob{} : pattern(seed_of(rank, 5), static_cast<std::size_t>(rank) + 1);
  };
  for (const std::size_t most : {1, 4, 1000}) {
    std::vector<Blob> expected;
    for (int rank = 0; rank < comm.size() && comm.rank() == 0; ++rank)
      if (!of(rank).empty() && expected.size() < most) expected.push_back(of(rank));
    require(gather_first(comm, of(comm.rank()), most) == expected, "the first, on rank 0");
  }
}

/// Random traffic that all ranks draw from one seed: everything posted in one order per pair and
/// tag, and waited for in whatever order it completes.
inline void random_traffic_arrives(Communicator& comm) {
  std::mt19937 random(20 + static_cast<unsigned>(comm.size()));
  for (int round = 0; round < 3; ++round) {
    std::vector<Blob> buffers;
    std::vector<Blob> expected;
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < 200; ++i) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(comm.size()));
      const int to = static_cast<int>(random() % static_cast<unsigned>(comm.size()));
      const int tag = static_cast<int>(random() % 3);
      const std::size_t bytes = random() % (i % 20 == 0 ? 200000 : 300);
      if (comm.rank() != from && comm.rank() != to) continue;
      Blob content = pattern(i, bytes);
      if (comm.rank() == to) {
        requests.push_back(comm.irecv(buffers.emplace_back(bytes), from, tag));
        expected.push_back(content);
      }
      if (comm.rank() == from) {
        requests.push_back(comm.isend(content, to, tag));
        expected.push_back(content);
        buffers.push_back(std::move(content));
      }
    }
    while (wait_any(comm, requests) >= 0) {
    }
    require(buffers == expected, "random traffic");
  }
}

inline void all_of_one(Communicator& comm) {
  messages_go_round_a_ring(comm);
  messages_of_one_tag_keep_their_order(comm);
  tags_are_told_apart(comm);
  wait_any_takes_each_once(comm);
  nobody_leaves_a_barrier_before_all_have_come(comm);
  allreduce_combines(comm);
  bcast_reaches_all(comm);
  allgather_orders_by_rank(comm);
  agree_returns_one_verdict(comm);
  exchange_delivers_in_order(comm);
  gather_first_is_of_the_lowest_ranks(comm);
  random_traffic_arrives(comm);
}

/// The communicator, and then its odd and even ranks as groups at the same time, highest first.
inline void all(Communicator& comm) {
  all_of_one(comm);
  std::vector<int> members;
  for (int rank = comm.size() - 1; rank >= 0; --rank)
    if (rank % 2 == comm.rank() % 2) members.push_back(rank);
  Group group(comm, members);
  require(members[static_cast<std::size_t>(group.rank())] == comm.rank(), "place in the group");
  all_of_one(group);
  comm.barrier();
}

}  // namespace cairn::checks
