// The two record files of a rank's folder in a cache: the rank's own record joined with those that
// it keeps for others.
#include <algorithm>

#include "cache/catalog.hpp"
#include "checksums.hpp"
#include "decoder.hpp"
#include "memory_files.hpp"
#include "real_records.hpp"
#include "redundancy/replicas.hpp"

namespace cairn::fuzz {
namespace {

constexpr int owner = 3;
const RankFolder folder{"/cache/dataset.3.0/rank.3"};

/// Between the content of `record` and that of `record.new` in an input.
constexpr std::string_view between = "<record.new>";

std::unique_ptr<Files> folder_with(Bytes input) {
  const auto volume = std::make_shared<sim::Volume>(sim::Volume::Medium::memory);
  auto files = sim::make_memory_files({{"/cache", volume}}, [] { return 0; });
  expect(make_folders(*files, folder.path, 0700).has_value(), "the folder can be made");
  const std::string_view text = text_of(input);
  const std::size_t end = std::min(text.find(between), text.size());
  const Bytes prepared = input.subspan(std::min(end + between.size(), text.size()));
  for (const auto& [path, content] :
       {std::pair(folder.record(), input.first(end)), std::pair(folder.prepared(), prepared)})
    expect(write_file_atomically(*files, path, content, false).has_value(), "files can be written");
  return files;
}

void check_held(const HeldRecord& held) {
  expect(encode(held.record) == held.sealed, "a record is kept with the bytes that it encodes to");
}

void check_part(Bytes input) {
  const auto files = folder_with(input);
  const HeldPart part = read_part(*files, folder, owner);
  const auto committed = [](const HeldRecord& held) { return held.committed; };
  expect(part.damaged == std::ranges::none_of(part.own, committed),
         "a file without an intact record of its owner is damaged");
  for (const HeldRecord& held : part.own) {
    expect(held.record.rank == owner, "own records are the owner's");
    check_held(held);
  }
  for (const HeldRecord& held : part.kept) {
    expect(held.record.rank != owner, "records of others are theirs");
    check_held(held);
  }
}

/// As exchange_records() and join_records() leave it.
Blob file_of_owner(const std::vector<RankRecord>& set) {
  std::vector<Blob> kept;
  for (const int index : records_kept_by(set[owner].encoding, owner))
    kept.push_back(encode(set[static_cast<std::size_t>(index)]));
  return join_records(encode(set[owner]), kept);
}

}  // namespace

void check(Bytes input) {
  check_part(input);
  check_part(with_checksums_mended(input));
}

std::vector<Blob> seeds() {
  std::vector<Blob> files;
  for (const Scheme scheme : {Scheme::partner, Scheme::xor_, Scheme::rs}) {
    CheckpointSettings settings;
    settings.scheme = scheme;
    files.push_back(file_of_owner(records_of_set(settings, owner + 2)));
  }
  files.push_back(join_records(files[0], {blob_of(between), files[1]}));
  return files;
}

}  // namespace cairn::fuzz
