// What of scavenged copies in the prefix directory goes when datasets are deleted.
#pragma once

#include <string>

#include "base/log.hpp"
#include "base/once.hpp"
#include "config/settings.hpp"
#include "prefix/site.hpp"

namespace cairn {

class SavedCopies {
 public:
  /// `log`: silent but on rank 0. `settings` must outlive this.
  SavedCopies(const Settings& settings, Log log) : settings_(settings), log_(std::move(log)) {}

  /// On rank 0, before the datasets of that name are taken out. Once they are known to be deleted
  /// no process publishes their copies any more, also if these cannot be removed, or read, now.
  /// Where even their folder cannot be seen nothing is noted: a note goes only when no copy is
  /// seen.
  Status remove(const Site& site, Keeper& keeper, const std::string& name);
  /// On rank 0, SCR_PREFIX_PURGE: all of it. First: what is deleted and was saved as well would be
  /// published again.
  Status purge(const Site& site);

 private:
  void warn_of_unseen(const Keeper& keeper, const std::string& name, const Error& why);

  const Settings& settings_;
  Log log_;
  Once unseen_;
};

}  // namespace cairn
