// Prefix directories as SCR 3 leaves them, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "prefix/scr_index.hpp"
#include "records/key_tree.hpp"

namespace cairn {

class ScrPrefix {
 public:
  explicit ScrPrefix(std::string prefix);

  /// What a test may change before write().
  struct Dataset {
    ScrDataset facts;
    bool complete_in_index = true;
    bool has_facts_in_index = true;
    bool complete_in_summary = true;
    std::size_t ranks_in_leaf = 2;  ///< a tree of files where there are more ranks
  };

  /// Checkpoint `id` with a file "ckpt.<id>/rank_<r>" of each rank, which is written.
  Dataset& add(std::uint64_t id, std::size_t ranks);

  /// One more file of a rank, which is written; it counts unless another rank has it too.
  void give(Dataset& dataset, std::size_t rank, const std::string& name,
            const std::string& content);

  static std::string content_of(std::uint64_t id, std::size_t rank);

  std::string path(const std::string& name) const { return prefix_ + "/" + name; }

  void write(const std::string& current = "", const std::string& version = "2") const;

  void put(const std::string& name, const KeyTree& tree) const;

 private:
  static KeyTree facts_of(const Dataset& dataset);

  void write_dataset(const Dataset& dataset) const;

  static KeyTree leaf_of(const Dataset& dataset, std::size_t first, std::size_t end);

  const std::string prefix_;
  std::map<std::uint64_t, Dataset> datasets_;
};

}  // namespace cairn
