// Checks whether the files of a dataset in the prefix directory are those that were flushed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"
#include "redundancy/block_places.hpp"
#include "transfer/io_threads.hpp"

namespace cairn {

/// True if a file still has the modification time that it was given. Some file systems truncate it
/// to microseconds, or to whole seconds.
bool has_time_of(const FileInfo& file, const FileEntry& entry);
/// The same for two times: the one that the file system has kept, and the given one.
bool is_kept_time(std::int64_t kept_ns, std::int64_t given_ns);

enum class CheckDepth {
  sizes,   ///< every file exists with its recorded size
  blocks,  ///< and every block matches its checksum
};

/// The damage of the files of one rank.
struct RankCheck {
  std::vector<std::size_t> wrong_files;  ///< missing, or with another size
  BlockRanges bad;                       ///< blocks of the other files that do not match
  std::vector<std::string> troubles;     ///< one line for each, naming the file
  Code code = Code::ok;                  ///< of the first trouble

  bool good() const { return troubles.empty(); }
};

/// Checks the files at `paths`, one for each file of the record. Reads blocks with the threads of
/// `io`.
RankCheck check_rank(Files& files, const IoThreads& io, const RankRecord& record,
                     const std::vector<std::string>& paths, CheckDepth depth);

struct CheckAccount {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> troubles;  ///< one line each, with the name of the file
  Code code = Code::ok;               ///< of the first rank with trouble
};

/// Calls `visit` with the record of every rank of manifest `number`, in order. `troubles` gets a
/// line for each rank without an intact record. Fails if the whole manifest cannot be read.
Status visit_manifest(Files& files, const std::string& dataset_folder, const DatasetRecord& dataset,
                      std::uint32_t number, std::vector<std::string>& troubles,
                      const std::function<void(const RankRecord&)>& visit);

/// The same for all manifests, one after the other.
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

/// The present paths of a rank's files: their own names, or staged names if the dataset is not
/// settled. corrupt if a directory was replaced by a link: nothing is read through one.
Result<std::vector<std::string>> places_of_files(Files& files, const PrefixFolder& folder,
                                                 const DatasetRecord& dataset,
                                                 const RankRecord& record);

}  // namespace cairn
