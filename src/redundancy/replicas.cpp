#include "redundancy/replicas.hpp"

#include <algorithm>

namespace cairn {
namespace {
constexpr int record_tag = 102;
}  // namespace

std::vector<int> records_kept_by(const Encoding& encoding, int index) {
  const int members = static_cast<int>(encoding.members.size());
  std::vector<int> owners;
  const int copies = encoding.failures > 0 ? static_cast<int>(encoding.failures) + 1 : 0;
  for (int i = 1; i <= copies; ++i) {
    const int away = i * static_cast<int>(encoding.hop) % members;
    const int owner = (index - away + members) % members;
    if (away != 0 && std::find(owners.begin(), owners.end(), owner) == owners.end())
      owners.push_back(owner);
  }
  return owners;
}

std::vector<Blob> exchange_records(Communicator& set, const Encoding& encoding, Bytes sealed) {
  const std::vector<int> owners = records_kept_by(encoding, set.rank());
  const std::uint64_t my_size = sealed.size();
  std::vector<std::uint64_t> sizes(owners.size());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const int keeper =
        (2 * set.rank() - owners[i] + set.size()) % set.size();  // as far to the right
    requests.push_back(set.irecv(mutable_bytes_of(sizes[i]), owners[i], record_tag));
    requests.push_back(set.isend(bytes_of(my_size), keeper, record_tag));
    requests.push_back(set.isend(sealed, keeper, record_tag));
  }
  std::vector<Blob> kept;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    wait(set, requests[3 * i]);
    kept.emplace_back(sizes[i]);
    recv(set, kept.back(), owners[i], record_tag);
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
