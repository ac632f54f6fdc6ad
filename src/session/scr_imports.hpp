// What SCR 3 has left in the job's prefix directory, and how it is imported.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/scr_import.hpp"
#include "restart/restart_decision.hpp"

namespace cairn {

/// All ranks call the member functions in the same order, but for those that are said to be rank
/// 0's, which has the keeper.
class ScrImports {
 public:
  ScrImports(Communicator& comm, const Settings& settings, const Log& log)
      : comm_(comm), settings_(settings), log_(log) {}

  /// Rank 0's. Reads SCR's index, where there is one and it is not known yet.
  void look(Files& files);
  /// Rank 0's. The highest of all datasets of SCR; the names of new ones go on from it.
  std::uint64_t last_number() const;
  std::int64_t newest_us() const;

  /// Rank 0's. What of it a restart could take.
  void tell_facts(const Site& site, RestartFacts& facts);
  /// Imports this one, whose UUID all ranks know. Errors are agreed.
  Status import(const Site& site, const Uuid& dataset);
  /// The newest of that name, unless the name is known. True if it was imported; an error, never
  /// not_found, where there is one that cannot be. Errors are agreed.
  Result<bool> import_named(const Site& site, const std::string& name);
  /// No run imports the newest of that name any more, unless the name is known of a newer one. True
  /// if there was one. Errors are agreed.
  Result<bool> drop_named(const Site& site, const std::string& name);
  /// As import_named(), for one that is to be deleted: what can never be imported is dropped
  /// instead, and its files stay.
  Status import_to_delete(const Site& site, const std::string& name);
  /// Rank 0's. SCR_DROP_AFTER_CURRENT: no run imports the checkpoints that are newer than this one.
  Status drop_newer(const Site& site, const Uuid& than);
  /// SCR_PREFIX_PURGE: none of them is imported by a run any more.
  Status pass_over(const Site& site);

  /// Rank 0's. What is wrong with the newest dataset, where none is of use to a restart; empty if
  /// SCR has left none.
  std::string why_useless(const Site& site) const;
  /// What could not be read, for a reason that may pass, is read once more.
  void forget_passing();

 private:
  Result<Dropped> dropped(const Site& site);
  std::optional<std::size_t> number_of(const Uuid& dataset) const;
  Result<std::optional<std::size_t>> find_unknown(const Site& site, const std::string& name);
  Result<std::optional<std::size_t>> share_unknown(const Site& site, const std::string& name);
  std::optional<std::size_t> share(std::optional<std::size_t> number);
  Status drop_one(Keeper& keeper, const DatasetRecord& record);
  Status import_one(const Site& site, std::size_t number);

  Communicator& comm_;
  const Settings& settings_;
  const Log& log_;
  std::optional<ScrIndex> index_;  ///< on rank 0, as all below
  std::optional<Trouble> unread_;  ///< why nothing can be imported, although SCR has left an index
};

}  // namespace cairn
