#include "prefix/check.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/checksum.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/manifest.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {
namespace {

/// The files of one rank, and what is wrong with them.
class RankCheck {
 public:
  RankCheck(Files& files, const RankRecord& record, std::vector<std::string> paths,
            std::vector<std::string>& troubles)
      : files_(files), record_(record), paths_(std::move(paths)), troubles_(troubles) {}

  /// True if every file is there, and as long as it was.
  bool sizes() {
    const std::size_t before = troubles_.size();
    for (std::size_t i = 0; i < paths_.size(); ++i)
      if (const Status same = check_size(files_, record_.files[i], paths_[i]); !same)
        troubles_.push_back(same.error().text);
    return troubles_.size() == before;
  }

  void blocks() {
    RankBlocks source(files_, paths_, record_);
    const SetLayout layout(record_.encoding);
    Blob scratch(layout.geometry().widest());
    std::string last;  // one line for all bad blocks of a file
    for (std::uint64_t index = 0; index < record_.data_crcs.size(); ++index) {
      const auto block = source.data(index, scratch);
      std::string trouble;
      if (!block)
        trouble = block.error().text;
      else if (crc32c(*block) != record_.data_crcs[index])
        trouble = fmt::format(
            "{} does not match its checksum",
            names_at(record_, layout.geometry().data_offset(index), block->size(), paths_));
      if (!trouble.empty() && trouble != last) troubles_.push_back(trouble);
      if (!trouble.empty()) last = trouble;
    }
  }

 private:
  Files& files_;
  const RankRecord& record_;
  const std::vector<std::string> paths_;
  std::vector<std::string>& troubles_;
};

}  // namespace

std::string place_of(Files& files, const PrefixFolder& folder, const DatasetRecord& dataset,
                     const RankRecord& record, std::size_t file) {
  std::string staged = folder.staged(record, file);
  if (!dataset.settled && files.info(staged)) return staged;
  return folder.file(record.files[file]);
}

Status visit_ranks(Files& files, const std::string& dataset_folder, const DatasetRecord& dataset,
                   std::vector<std::string>& troubles,
                   const std::function<void(const RankRecord&)>& visit) {
  const std::uint64_t in_each = dataset.ranks_per_manifest;
  for (std::uint64_t first = 0; first < dataset.info.ranks; first += in_each) {
    const std::string path = PrefixFolder::manifest(dataset_folder, first / in_each);
    auto manifest = read_manifest(files, path);
    if (!manifest && manifest.error().code == Code::not_found) manifest.emplace();
    CAIRN_TRY(manifest);
    const std::vector<RankRecord>& records = manifest->records;
    const std::uint64_t last = std::min<std::uint64_t>(first + in_each, dataset.info.ranks) - 1;
    if (records.empty())
      troubles.push_back(
          fmt::format("{} has no whole record of ranks {} to {}", path, first, last));
    for (std::uint64_t rank = first; rank <= last && !records.empty(); ++rank) {
      const auto found = std::find_if(records.begin(), records.end(), [&](const auto& record) {
        return record.rank == static_cast<int>(rank) && record.dataset.uuid == dataset.info.uuid &&
               record.dataset.ranks == dataset.info.ranks;
      });
      if (found == records.end())
        troubles.push_back(fmt::format("{} has no whole record of rank {}", path, rank));
      else
        visit(*found);
    }
  }
  return {};
}

Result<CheckAccount> check_dataset(Files& files, const PrefixFolder& folder,
                                   const std::string& dataset_folder, const DatasetRecord& dataset,
                                   CheckDepth depth) {
  CheckAccount account;
  CAIRN_TRY(
      visit_ranks(files, dataset_folder, dataset, account.troubles, [&](const RankRecord& record) {
        std::vector<std::string> paths;
        for (std::size_t i = 0; i < record.files.size(); ++i)
          paths.push_back(place_of(files, folder, dataset, record, i));
        for (const FileEntry& file : record.files) account.files += file.begins_here() ? 1 : 0;
        account.bytes += record.data_bytes();
        RankCheck check(files, record, std::move(paths), account.troubles);
        if (check.sizes() && depth == CheckDepth::blocks) check.blocks();
      }));
  return account;
}

}  // namespace cairn
