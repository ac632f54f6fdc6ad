#include "comm/blobs.hpp"

#include <algorithm>

namespace cairn {

void send_blob(Communicator& comm, Bytes blob, int to, int tag) {
  const std::uint64_t size = blob.size();
  Request length = comm.isend(bytes_of(size), to, tag);
  Request content = comm.isend(blob, to, tag);
  wait(comm, length);
  wait(comm, content);
}

Blob recv_blob(Communicator& comm, int from, int tag) {
  std::uint64_t size = 0;
  recv(comm, mutable_bytes_of(size), from, tag);
  Blob blob(size);
  recv(comm, blob, from, tag);
  return blob;
}

std::vector<Blob> allgather_blobs(Communicator& comm, Bytes mine) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::uint64_t> sizes(ranks);
  const std::uint64_t my_size = mine.size();
  comm.allgather(bytes_of(my_size), std::as_writable_bytes(std::span(sizes)));
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  Blob padded(mine.begin(), mine.end());
  padded.resize(longest);
  Blob all(ranks * longest);
  comm.allgather(padded, all);
  std::vector<Blob> blobs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(rank * longest);
    blobs.emplace_back(from, from + static_cast<std::ptrdiff_t>(sizes[rank]));
  }
  return blobs;
}

}  // namespace cairn
