// What a checkpoint and a rebuild cannot do without, by a program that does nothing else: it
// neither plans, records nor commits anything. So it tells how much of the time is the machine's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/erasure_code.hpp"
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
  /// The bytes written and their checksums taken; as many copied from the next rank and added up to
  /// the parity of a set of all ranks, of which all but the first is copied once more; the parity
  /// written over pages that are there, and its checksums taken where it is not a copy of data. The
  /// file of the checkpoint before is removed meanwhile. Of SINGLE, PARTNER, XOR and RS(2).
  double checkpoint(const std::string& scheme);
  /// Of one rank of an XOR set: the others take checksums of their files and parity, copy as many
  /// bytes as a file has and sum them up, while that one copies a file and parity, takes their
  /// checksums and writes them.
  double rebuild();

 private:
  struct Place;
  struct Mapping;

  static Place place_of_next(const void* mine);
  static void copy(const Place& there, std::size_t at, MutableBytes into);
  using Keep = std::function<void(Bytes)>;
  void add_up(const ErasureCode& code, const Place& there, const Keep& keep);
  void copy_into(int file, const Place& there, std::size_t bytes);

  const std::vector<char>& data_;
  std::string base_;  ///< of this rank's files
  int parity_;        ///< a file that is kept: its pages are there
  int checkpoints_ = 0;
  std::vector<BlockBuffer> sums_;
  BlockBuffer block_;
};

}  // namespace cairn::bench
