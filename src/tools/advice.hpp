// Commands for messages: whole command lines, with the user's own prefix directory and caches.
#pragma once

#include <string>
#include <vector>

#include "prefix/keeper.hpp"

namespace cairn {

class Advice {
 public:
  /// `folders`: those that the user named by --cache. `listing`: that of the prefix directory.
  Advice(std::string prefix, std::vector<std::string> folders, const Listing& listing)
      : prefix_(std::move(prefix)), folders_(std::move(folders)), listing_(listing) {}

  /// "cairn index <words> <dataset>". A dataset goes by its name, unless a newer one has it too.
  std::string index(const std::string& words, const DatasetInfo& dataset) const;
  /// By its UUID: a newer run may have saved one of the same name.
  std::string index_delete(const DatasetInfo& dataset) const;
  std::string index_import() const;
  std::string scavenge() const;
  /// The same if the nodes are unknown: "while the nodes are up, save what they hold by ...".
  std::string scavenge_nodes() const;
  std::string rebuild() const;
  /// Of this one, though a newer checkpoint is there.
  std::string rebuild(const DatasetInfo& dataset) const;
  /// Of what is in the prefix directory; the caches are what it is repaired from.
  std::string verify(const DatasetInfo& dataset) const;
  std::string verify_and_repair(const DatasetInfo& dataset) const;
  /// Of what is in caches: in these, unless some were named.
  std::string verify_caches(const std::vector<std::string>& caches,
                            const DatasetInfo& dataset) const;

 private:
  std::string word_for(const DatasetInfo& dataset) const;
  std::string with_prefix(const std::string& command) const;

  const std::string prefix_;
  const std::vector<std::string> folders_;
  const Listing& listing_;
};

/// The command that verifies all that is in these caches.
std::string verification_of(const std::vector<std::string>& caches);

}  // namespace cairn
