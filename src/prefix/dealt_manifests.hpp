// Manifests that all ranks read together: one rank reads each of them, and no rank gets the names
// of all files.
#pragma once

#include <functional>
#include <set>

#include "comm/communicator.hpp"
#include "prefix/contents.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Collective. Calls `treat` with every record of these manifests in `folder`, each on one rank,
/// until an error. True if all manifests were complete. Errors are agreed.
Result<bool> treat_dealt(Communicator& comm, Files& files, const std::string& folder,
                         const std::vector<std::uint64_t>& manifests,
                         const std::function<Status(const RankRecord&)>& treat);

using NameHashes = std::set<std::uint64_t>;

/// Collective. Divides the names of the files of the dataset in `folder` among the ranks by their
/// hash; returns this rank's. Calls `visit` with every file, each on one rank. Errors are agreed.
Result<NameHashes> deal_names(Communicator& comm, Files& files, const std::string& folder,
                              const DatasetRecord& dataset,
                              const std::function<void(const FileEntry&)>& visit = nullptr);

/// A file, identified by the hash of its name, its size and its time.
struct FileMark {
  std::uint64_t name = 0;
  std::uint64_t size = 0;
  std::int64_t modify_ns = 0;

  auto operator<=>(const FileMark&) const = default;
};

/// Collective. The files of `asked`, which this rank has found, that probably are as one of these
/// datasets wrote them. Reads the datasets one after the other, until all files are decided.
/// Ignores damaged manifests, from which no run can restart. Errors are agreed.
Result<NameHashes> files_of(Communicator& comm, Files& files, const PrefixFolder& folder,
                            const std::set<FileMark>& asked, const Listing& datasets);

}  // namespace cairn
