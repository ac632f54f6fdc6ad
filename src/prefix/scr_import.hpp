// Takes datasets that SCR 3 has left into Cairn's index: for SCR_Init and for cairn index import.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "config/settings.hpp"
#include "prefix/found_files.hpp"
#include "prefix/scr_index.hpp"

namespace cairn {

/// By the error with which an import, or the reading of SCR's index, has failed.
inline bool may_import_later(Code code) {
  return code == Code::io || code == Code::no_space || code == Code::busy;
}

/// What its record would be if it were imported, as far as it is known.
DatasetRecord record_of_scr(const ScrDataset& dataset);

/// The first file that is missing, or of another size than SCR has recorded, and why; nothing if
/// none is. Of one whose details were read.
std::optional<std::string> first_missing(Files& files, const std::string& prefix,
                                         const ScrDataset& dataset);

/// The datasets of SCR that Cairn knows nothing of, as far as SCR's index says what they are
/// (neither ranks nor files), newest first. Only those that it says are whole, damaged ones too.
Listing unknown_of_scr(const ScrIndex& index, const Listing& listing, const Dropped& dropped);

/// What a restart would choose from if all of SCR's were imported.
struct ChoiceWithScr {
  Listing listing;
  std::string current;
};
/// SCR's current checkpoint counts where it is newer than all that is listed: then SCR was used
/// last.
ChoiceWithScr choice_with_scr(const Listing& unknown, const std::string& current_of_scr,
                              const Listing& listing, const std::string& current);

/// The number in `index` of the checkpoint that a restart would take next, where Cairn does not
/// know that one; nothing if it takes one that is listed, or none.
std::optional<std::size_t> next_of_scr(const ScrIndex& index, const Listing& listing,
                                       const Dropped& dropped, const std::string& current,
                                       const Settings& settings, const std::set<Uuid>& tried);

/// Who answers for the bytes, and in which pieces.
struct ImportAs {
  std::string node;
  std::uint32_t block_bytes = 0;
};

/// Collective; `index` is there on rank 0 only. Publishes one of its datasets, if it is whole. All
/// ranks read its files. What SCR left stays as it is. Errors are agreed; nothing is imported then:
/// invalid where SCR says that it is not whole, or its files were written again for a newer one;
/// io where that cannot be known now; those of publish_found().
Result<FlushAccount> import_dataset(Communicator& comm, const Site& site, ScrIndex* index,
                                    std::size_t number, const ImportAs& as);

}  // namespace cairn
