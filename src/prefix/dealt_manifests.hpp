// Manifests that all ranks read together: one rank reads each, and no rank has to know all files.
#pragma once

#include <functional>
#include <set>

#include "comm/communicator.hpp"
#include "prefix/contents.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Collective. Calls `treat` with every record of these manifests in `folder`, on some rank, until
/// an error. False if a manifest is damaged. Errors are agreed.
Result<bool> treat_dealt(Communicator& comm, Files& files, const std::string& folder,
                         const std::vector<std::uint64_t>& manifests,
                         const std::function<Status(const RankRecord&)>& treat);

using NameHashes = std::set<std::uint64_t>;

/// Collective. Returns the hashes of the file names of the dataset in `folder`: each hash on the
/// rank that is responsible for it. `visit` gets every file, on some rank. Errors are agreed.
Result<NameHashes> deal_names(Communicator& comm, Files& files, const std::string& folder,
                              const DatasetRecord& dataset,
                              const std::function<void(const FileEntry&)>& visit = nullptr);

/// Identifies a file: by the hash of its name, its size and its time of change.
struct FileMark {
  std::uint64_t name = 0;
  std::uint64_t size = 0;
  std::int64_t modify_ns = 0;

  auto operator<=>(const FileMark&) const = default;
};

/// Collective. Returns the names of those files in `asked`, which this rank has found, that one of
/// these datasets wrote, as far as marks can show it. Reads one dataset after the other, until all
/// are found. Ignores damaged manifests, because no restart can use their datasets. Errors are
/// agreed.
Result<NameHashes> files_of(Communicator& comm, Files& files, const PrefixFolder& folder,
                            const std::set<FileMark>& asked, const Listing& datasets);

}  // namespace cairn
