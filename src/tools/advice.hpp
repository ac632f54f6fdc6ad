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

  /// "cairn index <words> <dataset>". Uses the name of a dataset, unless a newer one has the same.
  std::string index(const std::string& words, const DatasetInfo& dataset) const;
  /// By its UUID: a newer run may have saved one of the same name.
  std::string index_delete(const DatasetInfo& dataset) const;
  std::string index_import() const;
  std::string scavenge() const;
  /// The same if the nodes are unknown: "while the nodes are up, save what they hold by ...".
  std::string scavenge_nodes() const;
  std::string rebuild() const;
  /// For this dataset, although a newer checkpoint exists.
  std::string rebuild(const DatasetInfo& dataset) const;
  /// For datasets in the prefix directory, which are repaired from the caches.
  std::string verify(const DatasetInfo& dataset) const;
  std::string verify_and_repair(const DatasetInfo& dataset) const;
  /// For datasets in caches: in these, unless the user has named some.
  std::string verify_caches(const std::vector<std::string>& caches,
                            const DatasetInfo& dataset) const;

 private:
  std::string word_for(const DatasetInfo& dataset) const;
  std::string with_prefix(const std::string& command) const;

  const std::string prefix_;
  const std::vector<std::string> folders_;
  const Listing& listing_;
};

/// The command that verifies everything in these caches.
std::string verification_of(const std::vector<std::string>& caches);

}  // namespace cairn
