// What a checkpoint takes in a store, to the byte: the figures of
// docs/reference/space-and-memory.md, against real files.
#include "cache/catalog.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

constexpr int ranks_per_node = 2;
constexpr int dataset_number = 1;

struct ProtectionCase {
  Scheme scheme;
  int failures;
};

std::uint64_t data_of(int rank) {
  std::uint64_t bytes = 0;
  for (int file = 0; file < files_per_rank; ++file) bytes += size_of(rank, file, dataset_number);
  return bytes;
}

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t parts) {
  return (bytes + parts - 1) / parts;
}

/// The parity file of a rank in a set of `members`, which are all even ranks or all odd ones.
std::uint64_t parity_of(int rank, int members, const ProtectionCase& scheme) {
  std::vector<std::uint64_t> data;
  for (int member = 0; member < members; ++member)
    data.push_back(data_of(member * ranks_per_node + rank % ranks_per_node));
  const std::uint64_t largest = *std::max_element(data.begin(), data.end());
  const auto n = static_cast<std::uint64_t>(members);
  const auto k = static_cast<std::uint64_t>(scheme.failures);
  if (scheme.scheme == Scheme::xor_) return rounded_up(largest, n - 1);
  if (scheme.scheme == Scheme::rs) return k * rounded_up(largest, n - k);
  std::uint64_t copies = 0;
  for (int copy = 1; copy <= scheme.failures; ++copy)
    copies += data[static_cast<std::size_t>((rank / ranks_per_node - copy + members) % members)];
  return copies;
}

std::uint64_t record_of(const RankRecord& record) {
  std::uint64_t bytes = 144 + record.dataset.name.size();
  bytes += 4 * (record.data_crcs.size() + record.parity_crcs.size());
  for (const FileEntry& file : record.files) bytes += 56 + file.name.size();
  for (const std::string& node : record.encoding.member_nodes) bytes += 16 + node.size();
  return bytes;
}

void expect_footprint(const std::string& folder, int rank, int members,
                      const ProtectionCase& scheme) {
  const std::uint64_t parity = parity_of(rank, members, scheme);
  if (scheme.scheme == Scheme::single)
    EXPECT_FALSE(std::filesystem::exists(folder + "/parity.1"));
  else
    EXPECT_EQ(std::filesystem::file_size(folder + "/parity.1"), parity);

  const auto files = make_posix_files();
  const HeldPart part = read_part(*files, {folder}, rank);
  ASSERT_EQ(part.own.size(), 1U);
  EXPECT_EQ(part.kept.size(), scheme.scheme == Scheme::single
                                  ? 0U
                                  : std::min<std::size_t>(scheme.failures + 1, members - 1));
  std::uint64_t records = record_of(part.own[0].record);
  for (const HeldRecord& kept : part.kept) records += record_of(kept.record);
  EXPECT_EQ(std::filesystem::file_size(folder + "/record"), records);

  std::uint64_t all = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) all += entry.file_size();
  EXPECT_EQ(all, data_of(rank) + parity + records) << "and nothing else";
}

TEST(SessionFootprint, IsDataParityAndRecordsByTheFormulasOfEveryScheme) {
  constexpr int members = 5;
  const Nodes nodes = {"n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3", "n4", "n4"};
  for (const ProtectionCase scheme :
       {ProtectionCase{Scheme::single, 0}, ProtectionCase{Scheme::partner, 1},
        ProtectionCase{Scheme::partner, 2}, ProtectionCase{Scheme::xor_, 1},
        ProtectionCase{Scheme::rs, 1}, ProtectionCase{Scheme::rs, 2},
        ProtectionCase{Scheme::rs, 3}}) {
    SCOPED_TRACE(fmt::format("{}, {}", name_of(scheme.scheme), scheme.failures));
    JobBed bed;
    CheckpointSettings& checkpoint = bed.settings.checkpoints[0];
    checkpoint.scheme = scheme.scheme;
    checkpoint.set_size = members;
    checkpoint.set_failures = checkpoint.partner_copies = scheme.failures;
    bed.write(nodes, {dataset_number});
    for (int rank = 0; rank < static_cast<int>(nodes.size()); ++rank) {
      const auto parts = bed.parts(nodes[static_cast<std::size_t>(rank)], dataset_number);
      ASSERT_EQ(parts.size(), static_cast<std::size_t>(ranks_per_node));
      expect_footprint(parts[static_cast<std::size_t>(rank % ranks_per_node)], rank,
                       scheme.scheme == Scheme::single ? 1 : members, scheme);
    }
  }
}

}  // namespace
}  // namespace cairn
