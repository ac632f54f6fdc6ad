// The file <prefix>/.cairn/id, which tells the caches of one prefix directory from those of others.
#pragma once

#include <string>

#include "files/clock.hpp"
#include "files/files.hpp"
#include "records/prefix_id.hpp"

namespace cairn {

/// What a prefix directory says of its id.
struct RecordedId {
  enum class State {
    known,
    none,        ///< the directory can be read, and has no id yet
    damaged,     ///< the file is there, and is no id
    copied,      ///< the id is that of another directory, of which this one is a copy
    unreadable,  ///< the directory or the file is absent, or cannot be read now
  };
  State state = State::unreadable;
  PrefixId id = PrefixId::none;  ///< where known or copied
  std::string trouble;           ///< why it is not known: names the file
};

/// Local.
RecordedId read_prefix_id(Files& files, const std::string& prefix);

/// Local. Never PrefixId::none.
PrefixId draw_prefix_id(Clock& clock);

/// Local. Gives the directory this id, durably, unless another process has recorded one since
/// `before` was read. Returns the id that the directory has now. Where `before` is known this does
/// nothing.
Result<PrefixId> record_prefix_id(Files& files, Clock& clock, const std::string& prefix,
                                  PrefixId id, const RecordedId& before);

/// Local. Gives the directory this id whatever it had.
Status replace_prefix_id(Files& files, Clock& clock, const std::string& prefix, PrefixId id);

/// Local. Both can be seen now, and are two directories: not one with two paths, by a link, say.
bool are_two_prefixes(Files& files, const std::string& one, const std::string& other);

}  // namespace cairn
