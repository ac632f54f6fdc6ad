// Moves the files of one rank between a cache and the prefix directory, every block checked.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "records/rank_record.hpp"
#include "transfer/io_threads.hpp"
#include "transfer/throttle.hpp"

namespace cairn {

struct CopyOptions {
  std::uint32_t mode = 0600;     ///< of the copies, while they are made
  bool keep_attributes = false;  ///< then mode and times as the record has them
  bool durable = false;          ///< synced at the end; the names are the caller's to sync
  /// Another process may make the same copies at the same time, or may have made them: no file is
  /// emptied or removed, because whatever it holds becomes, or is, what is written here. None is
  /// made read-only for its owner, because another process may be about to open it:
  /// is_writable_copy() finds the copies that get their own mode later.
  bool beside_others = false;
  /// Large files do not go through the kernel's cache where the file system allows that: it costs
  /// less of the processor. For copies that go on while the program computes.
  bool past_cache = false;
  /// What the device cannot read is damage.
  bool is_repaired = false;
  /// Asked before each piece, and before each file is made: an error ends the copy, and what has
  /// the name stays.
  std::function<Status()> may_make = [] { return Status{}; };
};

/// Local. Copies file i of the record from `from[i]` to `to[i]`, which are made anew unless
/// `beside_others`, in folders that are there. The data are cut into pieces, which the threads
/// share: while one of them reads and checks, another writes or waits for the disk. corrupt if a
/// block does not match its checksum, or a file is not as long as the record says; lost if it is
/// not there. After an error the copies mean nothing.
Status copy_files(Files& files, const IoThreads& io, const RankRecord& record,
                  const std::vector<std::string>& from, const std::vector<std::string>& to,
                  const CopyOptions& options, Throttle& throttle);

/// corrupt unless it is a regular file and as long as the entry says; not_found if it is not there.
Status check_size(Files& files, const FileEntry& entry, const std::string& path);

/// Whether a process has written the file at `path` after that of the entry was, by the times of
/// both.
bool is_written_since(Files& files, const FileEntry& entry, const std::string& path);

/// The file at `path` is a copy of the entry's file made `beside_others`, with its attributes but
/// for permissions that its owner has in addition.
bool is_writable_copy(Files& files, const FileEntry& entry, const std::string& path);

/// The file at `path` is as long as the entry says, and has other times, or permissions that its
/// owner has in addition: a process that copied it beside others died before it set them.
bool has_other_attributes(Files& files, const FileEntry& entry, const std::string& path);

/// Which of `paths`, one for each file of the record, hold these bytes of its data: for a message.
std::string names_at(const RankRecord& record, std::uint64_t offset, std::uint64_t length,
                     const std::vector<std::string>& paths);

}  // namespace cairn
