// Saves what a dead job left of one rank's part of a dataset, as it is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/catalog.hpp"
#include "transfer/io_threads.hpp"
#include "transfer/throttle.hpp"

namespace cairn {

struct SaveOptions {
  IoThreads io;
  Throttle& throttle;
  /// Gets the number of bytes that were moved; an error ends the saving. Called by several threads.
  std::function<Status(std::uint64_t bytes)> moved = [](std::uint64_t) { return Status{}; };
};

struct SaveAccount {
  std::uint64_t bytes = 0;        ///< of data and redundancy that are in the copy
  std::uint64_t saved_bytes = 0;  ///< those that were not there from an earlier try
  std::uint64_t bad_blocks = 0;   ///< missing, unreadable, or not what the record says
  std::string first_trouble;      ///< what is wrong with one of them, naming the file; or empty
  std::string unreadable;         ///< why not all files could be read that no record names
};

/// Of data and redundancy, according to its records; 0 where there is none.
std::uint64_t bytes_of(const HeldPart& part);

/// Local. Copies a part of `dataset` (files, redundancy, and last its records, by which the copy
/// counts) to the folder `to`; durable, and each block compared with its checksum on the way. What
/// does not match is copied as it is, and reported: a rebuild takes it for missing. Where an
/// earlier try was cut off, only what of it does not match is copied again, or was not whole; a
/// copy whose records are others, and as good as those that can still be read here, stays as it is.
/// Where no record can be read the files are copied as they are. Errors are those of `to`, and of
/// `moved`.
Result<SaveAccount> save_part(Files& files, const Uuid& dataset, const HeldPart& part,
                              const RankFolder& to, const SaveOptions& options);

}  // namespace cairn
