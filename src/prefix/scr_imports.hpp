// The datasets of SCR 3 in the job's prefix directory, and their import.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/scr_import.hpp"

namespace cairn {

/// The datasets of SCR that a restart could take.
struct ScrFacts {
  Listing unknown;  ///< not imported, newest first
  std::string current;
  Trouble trouble;  ///< why they are unknown; without a text if they are known
};

/// Functions without a communicator are rank 0's, which has the keeper, and local.
class ScrImports {
 public:
  /// `log`: silent except on rank 0. `settings` must outlive this.
  ScrImports(const Settings& settings, Log log) : settings_(settings), log_(std::move(log)) {}

  /// Reads SCR's index, if there is one and it was not read yet.
  void look(Files& files);
  /// The highest numbers of SCR's datasets; new datasets continue from them.
  std::uint64_t last_number() const;
  std::int64_t newest_us() const;

  ScrFacts facts(const Site& site);
  /// Imports one dataset; all ranks pass its UUID. Errors are agreed.
  Status import(Communicator& comm, const Site& site, const Uuid& dataset);
  /// Imports the newest dataset of that name, unless Cairn knows the name. True if it was imported.
  /// An error, but never not_found, if there is one that cannot be imported. Errors are agreed.
  Result<bool> import_named(Communicator& comm, const Site& site, const std::string& name);
  /// Excludes the newest dataset of that name from imports, unless Cairn knows a newer one of that
  /// name. True if there was one. Errors are agreed.
  Result<bool> drop_named(Communicator& comm, const Site& site, const std::string& name);
  /// Like import_named(), before a deletion: drops a dataset that can never be imported, and its
  /// files stay.
  Status import_to_delete(Communicator& comm, const Site& site, const std::string& name);
  /// SCR_DROP_AFTER_CURRENT: excludes checkpoints newer than this one from imports.
  Status drop_newer(const Site& site, const Uuid& than);
  /// SCR_PREFIX_PURGE: excludes all of them from imports.
  Status pass_over(Communicator& comm, const Site& site);

  /// The damage of the newest dataset, if a restart can use none of them; empty if SCR has left
  /// none.
  std::string why_useless(const Site& site) const;
  /// Reads again what could not be read because of a transient error.
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
  std::optional<ScrIndex> index_;  ///< on rank 0, like all below
  std::optional<Trouble> unread_;  ///< why nothing can be imported, although SCR's index exists
};

}  // namespace cairn
