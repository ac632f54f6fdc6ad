// Whether the files of a dataset in the prefix directory are what was flushed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"
#include "redundancy/block_places.hpp"
#include "transfer/io_threads.hpp"

namespace cairn {

/// Whether a file still has the time of change that it was given, as far as its file system keeps
/// that: some cut it to microseconds, or to whole seconds.
bool has_time_of(const FileInfo& file, const FileEntry& entry);
/// The same of times of change: what the file system has kept of the one that was given.
bool is_kept_time(std::int64_t kept_ns, std::int64_t given_ns);

enum class CheckDepth {
  sizes,   ///< every file is there, and as long as it was
  blocks,  ///< and every block matches its checksum
};

/// What is wrong with the files of one rank.
struct RankCheck {
  std::vector<std::size_t> wrong_files;  ///< missing, or not as long as they were
  BlockRanges bad;                       ///< of the others, blocks that do not match
  std::vector<std::string> troubles;     ///< one line for each, naming the file
  Code code = Code::ok;                  ///< of the first of them

  bool good() const { return troubles.empty(); }
};

/// Of files at `paths`, one for each of the record. Blocks are read by `io`.
RankCheck check_rank(Files& files, const IoThreads& io, const RankRecord& record,
                     const std::vector<std::string>& paths, CheckDepth depth);

struct CheckAccount {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> troubles;  ///< one line each, naming the file
  Code code = Code::ok;               ///< of the first rank with trouble
};

/// Calls `visit` with the record of every rank of manifest `number`, in order. `troubles` gets a
/// line for each rank without an intact record. Fails if the whole manifest cannot be read.
Status visit_manifest(Files& files, const std::string& dataset_folder, const DatasetRecord& dataset,
                      std::uint32_t number, std::vector<std::string>& troubles,
                      const std::function<void(const RankRecord&)>& visit);

/// The same with all manifests, one after the other.
Status visit_ranks(Files& files, const std::string& dataset_folder, const DatasetRecord& dataset,
                   std::vector<std::string>& troubles,
                   const std::function<void(const RankRecord&)>& visit);

/// Checks the files of the dataset whose manifests are in `dataset_folder`. Continues after each
/// problem, to report all of them; `on_trouble`, if given, gets every rank that has one. Fails only
/// if the check itself is impossible.
Result<CheckAccount> check_dataset(
    Files& files, const IoThreads& io, const PrefixFolder& folder,
    const std::string& dataset_folder, const DatasetRecord& dataset, CheckDepth depth,
    const std::function<void(const RankRecord&, const RankCheck&)>& on_trouble = nullptr);

/// Where the files of a rank are now: under their own names, or, if the dataset is not settled,
/// still staged. corrupt where a link takes the place of a folder: nothing is read through one.
Result<std::vector<std::string>> places_of_files(Files& files, const PrefixFolder& folder,
                                                 const DatasetRecord& dataset,
                                                 const RankRecord& record);

}  // namespace cairn
