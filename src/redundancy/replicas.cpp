#include "redundancy/replicas.hpp"

#include <algorithm>

#include "comm/blobs.hpp"

namespace cairn {
namespace {
constexpr int record_tag = 102;
}  // namespace

std::vector<Blob> exchange_records(Communicator& set, Bytes sealed, std::uint32_t failures) {
  const int copies = std::min(static_cast<int>(failures), set.size() - 1);
  const std::uint64_t my_size = sealed.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(copies));
  std::vector<Request> requests;
  const auto right = [&](int hop) { return (set.rank() + hop) % set.size(); };
  const auto left = [&](int hop) { return (set.rank() - hop + set.size()) % set.size(); };
  for (int hop = 1; hop <= copies; ++hop) {
    auto& size = sizes[static_cast<std::size_t>(hop - 1)];
    requests.push_back(set.irecv(mutable_bytes_of(size), left(hop), record_tag));
    requests.push_back(set.isend(bytes_of(my_size), right(hop), record_tag));
    requests.push_back(set.isend(sealed, right(hop), record_tag));
  }
  std::vector<Blob> kept;
  for (int hop = 1; hop <= copies; ++hop) {
    wait(set, requests[static_cast<std::size_t>(3 * (hop - 1))]);
    kept.emplace_back(sizes[static_cast<std::size_t>(hop - 1)]);
    recv(set, kept.back(), left(hop), record_tag);
  }
  wait_all(set, requests);
  return kept;
}

Blob join_records(Bytes own, const std::vector<Blob>& kept) {
  Blob content(own.begin(), own.end());
  for (const Blob& record : kept) content.insert(content.end(), record.begin(), record.end());
  return content;
}

}  // namespace cairn
