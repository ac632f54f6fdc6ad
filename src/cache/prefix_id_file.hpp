// The file <prefix>/.cairn/id, whose id distinguishes the caches of one prefix directory from those
// of others.
#pragma once

#include <string>

#include "files/clock.hpp"
#include "files/files.hpp"
#include "records/prefix_id.hpp"

namespace cairn {

/// Where the id record of a prefix directory was written.
enum class RecordOrigin {
  here,       ///< in this directory, at this path
  same_path,  ///< at this path: a backup was restored there, or the inodes have new numbers
  renamed,    ///< in this directory, when it had another path
  elsewhere,  ///< in another directory, or this one was moved to another file system
};

/// The rule that distinguishes a directory from its copies. `path`: of the directory with the
/// record; `inode`: of its .cairn; `is_claimed_there`: another directory exists at the recorded
/// path, and has a record with the same id.
RecordOrigin origin_of(const PrefixIdRecord& record, const std::string& path, std::uint64_t inode,
                       bool is_claimed_there);

/// What the id file of a prefix directory contains.
struct RecordedId {
  enum class State {
    known,
    none,        ///< the directory is readable, and has no id yet
    damaged,     ///< the file exists, but contains no id
    copied,      ///< the record was probably written in another directory
    unreadable,  ///< the directory is missing, or it or the file cannot be read now
  };
  State state = State::unreadable;
  PrefixId id = PrefixId::none;  ///< if known or copied
  std::string trouble;           ///< why it is not known; contains the path
  std::string path = {};         ///< the recorded path, if known or copied
  bool is_in_place = false;      ///< it is known, and the record has the present path and inode
};

/// Local.
RecordedId read_prefix_id(Files& files, const std::string& prefix);

/// Local. Never PrefixId::none.
PrefixId draw_prefix_id(Clock& clock);

/// Local. Records `id` durably, unless the directory has an id (`before` is known), or another
/// process has recorded one since `before` was read. A copy never keeps the id of its original.
/// Also records the present path and inode. Returns the id that the directory has now.
Result<PrefixId> record_prefix_id(Files& files, Clock& clock, const std::string& prefix,
                                  PrefixId id, const RecordedId& before);

/// Local. Records this id, and replaces any other.
Status replace_prefix_id(Files& files, Clock& clock, const std::string& prefix, PrefixId id);

/// Local. True if the directory at `other` is readable, has this id, and is not the directory at
/// `prefix` under another path.
bool is_id_of_another(Files& files, PrefixId id, const std::string& prefix,
                      const std::string& other);

}  // namespace cairn
