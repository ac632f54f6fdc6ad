// Imports datasets of SCR 3 into Cairn's index: for SCR_Init and for cairn index import.
#pragma once

#include <optional>
#include <string>

#include "prefix/found_files.hpp"
#include "prefix/scr_index.hpp"

namespace cairn {

/// By the error with which an import, or the reading of SCR's index, has failed.
inline bool may_import_later(Code code) {
  return code == Code::io || code == Code::no_space || code == Code::busy;
}

/// The record that it would have after an import, as far as it is known.
DatasetRecord record_of_scr(const ScrDataset& dataset);

/// The first file that is missing, or has another size than SCR has recorded, with the reason;
/// nothing if there is none. Needs the details of the dataset.
std::optional<std::string> first_missing(Files& files, const std::string& prefix,
                                         const ScrDataset& dataset);

/// The datasets of SCR that Cairn does not know, newest first, with the facts of SCR's index (no
/// ranks and files). Only those that are complete according to the index, also if damaged.
Listing unknown_of_scr(const ScrIndex& index, const Listing& listing, const Dropped& dropped);

/// The listing for a restart as if all of SCR's datasets were imported.
struct ChoiceWithScr {
  Listing listing;
  std::string current;
};
/// SCR's current checkpoint is used if it is newer than all listed datasets: then SCR was used
/// last.
ChoiceWithScr choice_with_scr(const Listing& unknown, const std::string& current_of_scr,
                              const Listing& listing, const std::string& current);

/// The node recorded for the bytes, and the block size.
struct ImportAs {
  std::string node;
  std::uint32_t block_bytes = 0;
};

/// Collective; only rank 0 has `index`. Publishes one of its datasets, if it is complete. All ranks
/// read its files. SCR's files stay unchanged. Errors are agreed, and nothing is imported then:
/// invalid if it is not complete according to SCR, or a newer dataset has overwritten its files; io
/// if that is unknown now; those of publish_found().
Result<FlushAccount> import_dataset(Communicator& comm, const Site& site, ScrIndex* index,
                                    std::size_t number, const ImportAs& as);

}  // namespace cairn
