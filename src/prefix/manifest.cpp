#include "prefix/manifest.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "comm/blobs.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

constexpr int record_tag = 312;

}  // namespace

Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const RankRecord& mine) {
  constexpr int ranks_each = static_cast<int>(ranks_per_manifest);
  const int first = comm.rank() / ranks_each * ranks_each;
  const Blob sealed = encode(mine);
  if (comm.rank() != first) {
    send_blob(comm, sealed, first, record_tag);
    return {};
  }
  Blob content = sealed;
  for (int rank = first + 1; rank < std::min(first + ranks_each, comm.size()); ++rank) {
    const Blob other = recv_blob(comm, rank, record_tag);
    content.insert(content.end(), other.begin(), other.end());
  }
  return write_manifest(files, folder, static_cast<std::uint32_t>(first / ranks_each), content);
}

/// In one step: an earlier try may have left one, and staged files that only that one names.
Status write_manifest(Files& files, const std::string& folder, std::uint32_t number,
                      Bytes records) {
  if (records.size() > largest_manifest)
    return fail(Code::bad_argument,
                "the records of {} ranks have {}, and the limit is {}: write fewer files per rank, "
                "use shorter names, or set a larger CAIRN_BLOCK_SIZE",
                ranks_per_manifest, format_bytes(records.size()), format_bytes(largest_manifest));
  return write_file_atomically(files, PrefixFolder::manifest(folder, number), records, true);
}

Result<Manifest> read_manifest(Files& files, const std::string& path) {
  CAIRN_ASSIGN(const Blob blob, read_file(files, path, largest_manifest));
  Manifest manifest;
  std::size_t good_bytes = 0;
  for (const Envelope& envelope : find_envelopes(blob)) {
    if (envelope.type != RecordType::rank) continue;
    auto record = decode_rank_record(envelope.payload, envelope.version);
    if (!record && record.error().code == Code::newer_format)
      return fail(Code::newer_format, "{}: {}", path, record.error().text);
    if (!record) continue;
    manifest.records.push_back(*std::move(record));
    good_bytes += envelope.whole.size();
  }
  manifest.whole = good_bytes == blob.size() && good_bytes > 0;
  return manifest;
}

Result<RankRecord> read_from_manifest(Files& files, const std::string& folder, int rank,
                                      std::uint32_t ranks_in_each) {
  const std::string path =
      PrefixFolder::manifest(folder, static_cast<std::uint32_t>(rank) / ranks_in_each);
  CAIRN_ASSIGN(Manifest manifest, read_manifest(files, path));
  const auto mine = std::find_if(manifest.records.begin(), manifest.records.end(),
                                 [&](const RankRecord& record) { return record.rank == rank; });
  if (mine == manifest.records.end())
    return fail(Code::corrupt, "{} has no complete record of rank {}", path, rank);
  return std::move(*mine);
}

}  // namespace cairn
