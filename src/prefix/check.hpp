// Whether the files of a dataset in the prefix directory are what was flushed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"

namespace cairn {

/// Where file i of a rank is now: under its own name, or, if the dataset is not settled, still
/// staged. A staged file that is there is the newer one: only a dataset that was published after
/// all others of the same names has any.
std::string place_of(Files& files, const PrefixFolder& folder, const DatasetRecord& dataset,
                     const RankRecord& record, std::size_t file);

enum class CheckDepth {
  sizes,   ///< every file is there, and as long as it was
  blocks,  ///< and every block matches its checksum
};

struct CheckAccount {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> troubles;  ///< one line each, naming the file
};

/// Calls `visit` with the record of every rank, in order, a manifest at a time. A rank without a
/// whole record is told to `troubles`; what is wrong with a whole manifest is an error.
Status visit_ranks(Files& files, const std::string& dataset_folder, const DatasetRecord& dataset,
                   std::vector<std::string>& troubles,
                   const std::function<void(const RankRecord&)>& visit);

/// Of the dataset whose manifests are in `dataset_folder`. Goes on after trouble, so that all of it
/// is told. An error is only what keeps it from being told.
Result<CheckAccount> check_dataset(Files& files, const PrefixFolder& folder,
                                   const std::string& dataset_folder, const DatasetRecord& dataset,
                                   CheckDepth depth);

}  // namespace cairn
