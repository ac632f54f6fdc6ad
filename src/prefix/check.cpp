#include "prefix/check.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/checksum.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {
namespace {

/// The data blocks of one rank, compared by several threads.
class BlockReader {
 public:
  BlockReader(Files& files, const RankRecord& record, const std::vector<std::string>& paths)
      : files_(files), record_(record), paths_(paths), is_bad_(record.data_crcs.size()) {}

  BlockRanges find_bad(const IoThreads& io) {
    const std::size_t blocks = is_bad_.size();
    const std::size_t at_a_time = std::max<std::size_t>(
        1, io.piece_bytes / std::max<std::uint32_t>(1, record_.encoding.block_bytes));
    (void)io.each((blocks + at_a_time - 1) / at_a_time, [&](std::size_t piece) {
      compare(piece * at_a_time, std::min(blocks, (piece + 1) * at_a_time));
      return Status{};
    });
    BlockRanges ranges;
    for (std::size_t index = 0; index < blocks; ++index)
      if (is_bad_[index] != 0) add(ranges, index);
    return ranges;
  }

 private:
  void compare(std::size_t first, std::size_t end) {
    RankBlocks source(files_, paths_, record_);
    Blob scratch(SetLayout(record_.encoding).geometry().widest());
    for (std::size_t index = first; index < end; ++index) {
      const auto block = source.data(index, scratch);
      is_bad_[index] = block && crc32c(*block) == record_.data_crcs[index] ? 0 : 1;
    }
  }

  static void add(BlockRanges& ranges, std::uint64_t index) {
    if (!ranges.empty() && ranges.back().second == index)
      ++ranges.back().second;
    else
      ranges.emplace_back(index, index + 1);
  }

  Files& files_;
  const RankRecord& record_;
  const std::vector<std::string>& paths_;
  std::vector<char> is_bad_;  ///< not bool: threads write neighbours
};

/// The block is in a file that is already reported as missing or of another size.
bool is_in_wrong_file(const RankRecord& record, std::uint64_t block,
                      const std::vector<std::size_t>& wrong_files) {
  const auto places = places_of(record, block, block + 1);
  return std::any_of(places.begin(), places.end(), [&](const FileRange& range) {
    return std::binary_search(wrong_files.begin(), wrong_files.end(), range.file);
  });
}

BlockRanges without_wrong_files(const RankRecord& record, const BlockRanges& bad,
                                const std::vector<std::size_t>& wrong_files) {
  if (wrong_files.empty()) return bad;
  BlockRanges left;
  for (const auto& [first, end] : bad)
    for (std::uint64_t block = first; block < end; ++block)
      if (!is_in_wrong_file(record, block, wrong_files)) {
        if (!left.empty() && left.back().second == block)
          ++left.back().second;
        else
          left.emplace_back(block, block + 1);
      }
  return left;
}

}  // namespace

bool has_time_of(const FileInfo& file, const FileEntry& entry) {
  return is_kept_time(file.times.modify_ns, entry.times.modify_ns);
}

bool is_kept_time(std::int64_t kept_ns, std::int64_t given_ns) {
  constexpr std::array<std::int64_t, 5> units = {100, 1'000, 1'000'000, 1'000'000'000,
                                                 2'000'000'000};
  return kept_ns == given_ns || std::any_of(units.begin(), units.end(), [&](std::int64_t unit_ns) {
           const std::int64_t past = given_ns % unit_ns;
           return kept_ns == given_ns - past - (past < 0 ? unit_ns : 0);
         });
}

RankCheck check_rank(Files& files, const IoThreads& io, const RankRecord& record,
                     const std::vector<std::string>& paths, CheckDepth depth) {
  RankCheck found;
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (const Status same = check_size(files, record.files[i], paths[i]); !same) {
      found.wrong_files.push_back(i);
      found.troubles.push_back(same.error().text);
      if (found.code == Code::ok) found.code = same.error().code;
    }
  if (depth == CheckDepth::sizes) return found;
  found.bad = without_wrong_files(record, BlockReader(files, record, paths).find_bad(io),
                                  found.wrong_files);
  for (const BadBlocks& bad : bad_data(record, found.bad, paths))
    found.troubles.push_back(bad.text);
  if (found.code == Code::ok && !found.troubles.empty()) found.code = Code::corrupt;
  return found;
}

Status visit_manifest(Files& files, const std::string& dataset_folder, const DatasetRecord& dataset,
                      std::uint32_t number, std::vector<std::string>& troubles,
                      const std::function<void(const RankRecord&)>& visit) {
  const std::string path = DatasetFolder::manifest(dataset_folder, number);
  auto manifest = read_manifest(files, path);
  if (!manifest && manifest.error().code == Code::not_found) manifest.emplace();
  CAIRN_TRY(manifest);
  const std::vector<RankRecord>& records = manifest->records;
  const std::uint64_t first = std::uint64_t{number} * dataset.ranks_per_manifest;
  const std::uint64_t last =
      std::min<std::uint64_t>(first + dataset.ranks_per_manifest, dataset.info.ranks) - 1;
  if (records.empty())
    troubles.push_back(
        fmt::format("{} has no complete record of ranks {} to {}", path, first, last));
  for (std::uint64_t rank = first; rank <= last && !records.empty(); ++rank) {
    const auto found = std::find_if(records.begin(), records.end(), [&](const auto& record) {
      return record.rank == static_cast<int>(rank) && record.dataset.uuid == dataset.info.uuid &&
             record.dataset.ranks == dataset.info.ranks;
    });
    if (found == records.end())
      troubles.push_back(fmt::format("{} has no complete record of rank {}", path, rank));
    else
      visit(*found);
  }
  return {};
}

Status visit_ranks(Files& files, const std::string& dataset_folder, const DatasetRecord& dataset,
                   std::vector<std::string>& troubles,
                   const std::function<void(const RankRecord&)>& visit) {
  for (std::uint32_t number = 0; number < dataset.manifests(); ++number)
    CAIRN_TRY(visit_manifest(files, dataset_folder, dataset, number, troubles, visit));
  return {};
}

namespace {

/// An existing staged file is the newer one: only the dataset that was published last has staged
/// files with this name.
std::string place_of(Files& files, const PrefixFolder& folder, const DatasetRecord& dataset,
                     const RankRecord& record, std::size_t file) {
  std::string staged = folder.staged(record, file);
  if (!dataset.settled && files.info(staged)) return staged;
  return folder.file(record.files[file]);
}

}  // namespace

Result<std::vector<std::string>> places_of_files(Files& files, const PrefixFolder& folder,
                                                 const DatasetRecord& dataset,
                                                 const RankRecord& record) {
  CAIRN_TRY(refuse_led_out(files, folder, record));
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < record.files.size(); ++i)
    paths.push_back(place_of(files, folder, dataset, record, i));
  return paths;
}

namespace {

RankCheck check_files_of(Files& files, const IoThreads& io, const PrefixFolder& folder,
                         const DatasetRecord& dataset, const RankRecord& record, CheckDepth depth) {
  const auto paths = places_of_files(files, folder, dataset, record);
  if (paths) return check_rank(files, io, record, *paths, depth);
  RankCheck none;
  none.wrong_files.resize(record.files.size());
  std::iota(none.wrong_files.begin(), none.wrong_files.end(), 0);
  none.troubles.push_back(paths.error().text);
  none.code = paths.error().code;
  return none;
}

}  // namespace

Result<CheckAccount> check_dataset(
    Files& files, const IoThreads& io, const PrefixFolder& folder,
    const std::string& dataset_folder, const DatasetRecord& dataset, CheckDepth depth,
    const std::function<void(const RankRecord&, const RankCheck&)>& on_trouble) {
  CheckAccount account;
  CAIRN_TRY(
      visit_ranks(files, dataset_folder, dataset, account.troubles, [&](const RankRecord& record) {
        for (const FileEntry& file : record.files) account.files += file.begins_here() ? 1 : 0;
        account.bytes += record.data_bytes();
        const RankCheck found = check_files_of(files, io, folder, dataset, record, depth);
        account.troubles.insert(account.troubles.end(), found.troubles.begin(),
                                found.troubles.end());
        if (account.code == Code::ok) account.code = found.code;
        if (!found.good() && on_trouble) on_trouble(record, found);
      }));
  // A rank without a record has no files to list, only troubles.
  if (account.code == Code::ok && !account.troubles.empty()) account.code = Code::lost;
  return account;
}

}  // namespace cairn
