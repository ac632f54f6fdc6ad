#include "prefix/manifest.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "comm/blobs.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

constexpr int record_tag = 312;

void append(Blob& content, Bytes more) { content.insert(content.end(), more.begin(), more.end()); }

}  // namespace

/// All processes handle the manifests in one order, so that they do not wait in a circle. A record
/// that cannot be sealed is omitted: the error is returned, and nothing is published.
Status gather_manifests(Communicator& comm, const Deal& deal, const HeldRecords& held,
                        const TakeManifest& take) {
  Status sealed_all;
  for (std::uint64_t first = 0; first < deal.parts(); first += ranks_per_manifest) {
    const std::uint64_t end = std::min(first + ranks_per_manifest, deal.parts());
    const auto mine_begin = held.ranks.lower_bound(static_cast<int>(first));
    const auto mine_end = held.ranks.lower_bound(static_cast<int>(end));
    Blob content;
    for (auto rank = mine_begin; rank != mine_end; ++rank) {
      const auto sealed = held.seal(*rank);
      if (sealed) append(content, *sealed);
      if (!sealed && sealed_all) sealed_all = tl::unexpected(sealed.error());
    }
    const int writer = deal.rank_of(first);
    if (writer != comm.rank()) {
      if (mine_begin != mine_end) send_blob(comm, content, writer, record_tag);
      continue;
    }
    std::set<int> others;
    for (std::uint64_t part = first; part < end; ++part)
      others.insert(held.holder_of(static_cast<int>(part)));
    others.erase(comm.rank());
    for (const int other : others) append(content, recv_blob(comm, other, record_tag));
    take(static_cast<std::uint32_t>(first / ranks_per_manifest), std::move(content));
  }
  return sealed_all;
}

HeldRecords dealt_records(Communicator& comm, const Deal& deal, std::span<const RankRecord> mine) {
  HeldRecords held;
  for (const RankRecord& record : mine) held.ranks.insert(record.rank);
  const auto first = static_cast<int>(deal.first(comm.rank()));
  held.seal = [first, mine](int rank) {
    return encode(mine[static_cast<std::size_t>(rank - first)]);
  };
  held.holder_of = [deal](int rank) { return deal.rank_of(static_cast<std::uint64_t>(rank)); };
  return held;
}

Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const Deal& deal, const HeldRecords& held) {
  Status written;
  const Status gathered =
      gather_manifests(comm, deal, held, [&](std::uint32_t number, const Blob& content) {
        if (written) written = write_manifest(files, folder, number, content);
      });
  return gathered ? written : gathered;
}

Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const Deal& deal, std::span<const RankRecord> mine) {
  return write_manifests(comm, files, folder, deal, dealt_records(comm, deal, mine));
}

/// Written atomically, as an earlier attempt may have left a manifest, and staged files that only
/// that one has.
Status write_manifest(Files& files, const std::string& folder, std::uint32_t number,
                      Bytes records) {
  if (records.size() > largest_manifest)
    return fail(Code::bad_argument,
                "the records of {} ranks have {}, and the limit is {}: write fewer files per rank, "
                "use shorter names, or set a larger CAIRN_BLOCK_SIZE",
                ranks_per_manifest, format_bytes(records.size()), format_bytes(largest_manifest));
  return write_file_atomically(files, DatasetFolder::manifest(folder, number), records, true);
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
      DatasetFolder::manifest(folder, static_cast<std::uint32_t>(rank) / ranks_in_each);
  CAIRN_ASSIGN(Manifest manifest, read_manifest(files, path));
  const auto mine = std::find_if(manifest.records.begin(), manifest.records.end(),
                                 [&](const RankRecord& record) { return record.rank == rank; });
  if (mine == manifest.records.end())
    return fail(Code::corrupt, "{} has no complete record of rank {}", path, rank);
  return std::move(*mine);
}

}  // namespace cairn
