#include "prefix/manifest.hpp"

#include <algorithm>

#include "records/wire.hpp"

namespace cairn {
namespace {

constexpr int length_tag = 311;
constexpr int record_tag = 312;
constexpr std::uint64_t largest_manifest = std::uint64_t{1} << 30;

void send_record(Communicator& comm, Bytes sealed, int to) {
  const std::uint64_t length = sealed.size();
  send(comm, bytes_of(length), to, length_tag);
  send(comm, sealed, to, record_tag);
}

Blob recv_record(Communicator& comm, int from) {
  std::uint64_t length = 0;
  recv(comm, mutable_bytes_of(length), from, length_tag);
  Blob sealed(length);
  recv(comm, sealed, from, record_tag);
  return sealed;
}

}  // namespace

Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const RankRecord& mine) {
  constexpr int ranks_each = static_cast<int>(ranks_per_manifest);
  const int first = comm.rank() / ranks_each * ranks_each;
  const Blob sealed = encode(mine);
  if (comm.rank() != first) {
    send_record(comm, sealed, first);
    return {};
  }
  Blob content = sealed;
  for (int rank = first + 1; rank < std::min(first + ranks_each, comm.size()); ++rank) {
    const Blob other = recv_record(comm, rank);
    content.insert(content.end(), other.begin(), other.end());
  }
  const auto number = static_cast<std::uint64_t>(first / ranks_each);
  // In one step: an earlier try may have left one, and staged files that only that one names.
  return write_file_atomically(files, PrefixFolder::manifest(folder, number), content, true);
}

Result<std::vector<RankRecord>> read_manifest(Files& files, const std::string& path) {
  CAIRN_ASSIGN(const Blob blob, read_file(files, path, largest_manifest));
  std::vector<RankRecord> records;
  for (const Envelope& envelope : find_envelopes(blob)) {
    if (envelope.type != RecordType::rank) continue;
    auto record = decode_rank_record(envelope.payload, envelope.version);
    if (!record && record.error().code == Code::newer_format)
      return fail(Code::newer_format, "{}: {}", path, record.error().text);
    if (record) records.push_back(*std::move(record));
  }
  return records;
}

Result<RankRecord> read_from_manifest(Files& files, const std::string& folder, int rank,
                                      std::uint32_t ranks_in_each) {
  const std::string path =
      PrefixFolder::manifest(folder, static_cast<std::uint32_t>(rank) / ranks_in_each);
  CAIRN_ASSIGN(std::vector<RankRecord> records, read_manifest(files, path));
  const auto mine = std::find_if(records.begin(), records.end(),
                                 [&](const RankRecord& record) { return record.rank == rank; });
  if (mine == records.end())
    return fail(Code::corrupt, "{} has no whole record of rank {}", path, rank);
  return std::move(*mine);
}

}  // namespace cairn
