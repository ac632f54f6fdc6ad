// What SCR 3 has left in the job's prefix directory, and how it is imported.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/scr_import.hpp"

namespace cairn {

/// What of it a restart could take.
struct ScrFacts {
  Listing unknown;  ///< not imported, newest first
  std::string current;
  Trouble trouble;  ///< why it is not known; no text if it is
};

/// Functions without a communicator are rank 0's, which has the keeper, and local.
class ScrImports {
 public:
  /// `log`: silent but on rank 0. `settings` must outlive this.
  ScrImports(const Settings& settings, Log log) : settings_(settings), log_(std::move(log)) {}

  /// Reads SCR's index, where there is one and it is not known yet.
  void look(Files& files);
  /// The highest of all datasets of SCR; the names of new ones go on from it.
  std::uint64_t last_number() const;
  std::int64_t newest_us() const;

  ScrFacts facts(const Site& site);
  /// Imports this one, whose UUID all ranks know. Errors are agreed.
  Status import(Communicator& comm, const Site& site, const Uuid& dataset);
  /// The newest of that name, unless the name is known. True if it was imported; an error, never
  /// not_found, where there is one that cannot be. Errors are agreed.
  Result<bool> import_named(Communicator& comm, const Site& site, const std::string& name);
  /// No run imports the newest of that name any more, unless the name is known of a newer one. True
  /// if there was one. Errors are agreed.
  Result<bool> drop_named(Communicator& comm, const Site& site, const std::string& name);
  /// As import_named(), for one that is to be deleted: what can never be imported is dropped
  /// instead, and its files stay.
  Status import_to_delete(Communicator& comm, const Site& site, const std::string& name);
  /// SCR_DROP_AFTER_CURRENT: no run imports the checkpoints that are newer than this one.
  Status drop_newer(const Site& site, const Uuid& than);
  /// SCR_PREFIX_PURGE: none of them is imported by a run any more.
  Status pass_over(Communicator& comm, const Site& site);

  /// What is wrong with the newest dataset, where none is of use to a restart; empty if
  /// SCR has left none.
  std::string why_useless(const Site& site) const;
  /// What could not be read for a transient reason is read once more.
  void forget_transient_errors();

 private:
  Result<Dropped> dropped(const Site& site);
  std::optional<std::size_t> number_of(const Uuid& dataset) const;
  Result<std::optional<std::size_t>> find_unknown(const Site& site, const std::string& name);
  Result<std::optional<std::size_t>> share_unknown(Communicator& comm, const Site& site,
                                                   const std::string& name);
  Status drop_one(Keeper& keeper, const DatasetRecord& record);
  Status import_one(Communicator& comm, const Site& site, std::size_t number);

  const Settings& settings_;
  Log log_;
  std::optional<ScrIndex> index_;  ///< on rank 0, as all below
  std::optional<Trouble> unread_;  ///< why nothing can be imported, although SCR has left an index
};

}  // namespace cairn
