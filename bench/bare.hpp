// What a checkpoint and a rebuild cannot do without, by a program that does nothing else: it
// neither plans, records nor commits anything. So it tells how much of the time is the machine's.
#pragma once

#include <string>
#include <vector>

#include "redundancy/buffers.hpp"

namespace cairn::bench {

/// Each call returns the seconds it took, of all ranks. Collective.
class BareProgram {
 public:
  /// `folder` is one for all ranks; `data` is written by each call, and must outlive this.
  BareProgram(const std::string& folder, const std::vector<char>& data);
  ~BareProgram();
  BareProgram(const BareProgram&) = delete;
  BareProgram& operator=(const BareProgram&) = delete;

  /// A pass of checksums over a file that was just written and is mapped anew: what SINGLE does
  /// beside the floor.
  double checksums();
  double removal();
  /// As many as a checkpoint makes, and nothing between them.
  double agreements();
  /// The bytes written and their checksums taken; for XOR as many copied from the next rank and
  /// summed up, and the sums written over pages that are there. The file of the checkpoint before
  /// is removed meanwhile.
  double checkpoint(bool with_xor);
  /// Of one rank of an XOR set: the others take checksums of their files, copy as many bytes and
  /// sum them up, while that one copies as many and its parity, takes their checksums and writes
  /// them.
  double rebuild();

 private:
  struct Place;
  struct Mapping;

  static Place place_of_next(const Mapping& mine);
  void copy(const Place& there, std::size_t at, MutableBytes into);
  void sum_into(int file, const Place& there);
  void copy_into(int file, const Place& there, std::size_t bytes);
  void remove_older();
  std::size_t blocks_in_sum() const;

  const std::vector<char>& data_;
  std::string base_;  ///< of this rank's files
  int sums_;          ///< a file that is kept: its pages are there
  int checkpoints_ = 0;
  BlockBuffer sum_;
  BlockBuffer block_;
};

}  // namespace cairn::bench
