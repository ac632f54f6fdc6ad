// The file <prefix>/.cairn/id, which tells the caches of one prefix directory from those of others.
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
  renamed,    ///< in this directory, which had another path
  elsewhere,  ///< in another directory, or this one was moved to another file system
};

/// The rule that tells a directory from its copies. `path` is that of the directory with the record
/// and `inode` that of its .cairn; `is_claimed_there`: another directory is at the recorded path,
/// and has a record of the same id.
RecordOrigin origin_of(const PrefixIdRecord& record, const std::string& path, std::uint64_t inode,
                       bool is_claimed_there);

/// What a prefix directory says of its id.
struct RecordedId {
  enum class State {
    known,
    none,        ///< the directory can be read, and has no id yet
    damaged,     ///< the file is there, and is no id
    copied,      ///< the record was written in another directory, as far as can be known
    unreadable,  ///< the directory or the file is absent, or cannot be read now
  };
  State state = State::unreadable;
  PrefixId id = PrefixId::none;  ///< where known or copied
  std::string trouble;           ///< why it is not known: names the file
  std::string path = {};         ///< the recorded one, where known or copied
  bool is_in_place = false;      ///< known, and the record has the present path and inode
};

/// Local.
RecordedId read_prefix_id(Files& files, const std::string& prefix);

/// Local. Never PrefixId::none.
PrefixId draw_prefix_id(Clock& clock);

/// Local. Gives the directory this id, durably, unless it has one (`before` is known) or another
/// process has recorded one since `before` was read. A copy never keeps the id of its original.
/// Records where the directory is now. Returns the id that the directory has now.
Result<PrefixId> record_prefix_id(Files& files, Clock& clock, const std::string& prefix,
                                  PrefixId id, const RecordedId& before);

/// Local. Gives the directory this id whatever it had.
Status replace_prefix_id(Files& files, Clock& clock, const std::string& prefix, PrefixId id);

/// Local. The directory at `other` can be read now, is not that at `prefix` by another path, and
/// has this id.
bool is_id_of_another(Files& files, PrefixId id, const std::string& prefix,
                      const std::string& other);

}  // namespace cairn
