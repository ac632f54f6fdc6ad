// Manifests that all ranks read together: each is read by one of them, and none hears of all files.
#pragma once

#include <functional>
#include <set>

#include "comm/communicator.hpp"
#include "prefix/contents.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Collective. Calls `treat` with every record of these manifests in `folder`, on some rank, until
/// an error. Whether they all told of all. Errors are agreed.
Result<bool> treat_dealt(Communicator& comm, Files& files, const std::string& folder,
                         const std::vector<std::uint64_t>& manifests,
                         const std::function<Status(const RankRecord&)>& treat);

using NameHashes = std::set<std::uint64_t>;

/// Collective. Each rank looks after the names whose hash falls to it: those of the files of the
/// dataset in `folder`. `visit` gets every file, on some rank. Errors are agreed.
Result<NameHashes> deal_names(Communicator& comm, Files& files, const std::string& folder,
                              const DatasetRecord& dataset,
                              const std::function<void(const FileEntry&)>& visit = nullptr);

/// A file by its name, or the hash of that, and what else tells it from others.
struct FileMark {
  std::uint64_t name = 0;
  std::uint64_t size = 0;
  std::int64_t modify_ns = 0;

  auto operator<=>(const FileMark&) const = default;
};

/// Collective. Those of `asked`, as this rank has found them, that are also what any of these
/// datasets wrote, as far as that can be told. They are read one after the other, until all is
/// answered; nobody can restart from what a damaged manifest told of, so that counts for none.
/// Errors are agreed.
Result<NameHashes> files_of(Communicator& comm, Files& files, const PrefixFolder& folder,
                            const std::set<FileMark>& asked, const Listing& datasets);

}  // namespace cairn
