#pragma once

#include "interpose/located.hpp"

namespace cairn::interpose {

/// Where an open goes, and why. The words are those of the log of a dry run.
enum class Opened : unsigned char {
  redirected,  // the file is in the cache
  created,     // the file is to be made there
  outside,     // not below the prefix directory
  unmatched,   // no pattern
  shared,      // a pattern, and no rank in the name
  directory,   // a directory, or a name that must be one
  missing,     // it is only to be read, and is not there
  existing,    // it lies in its plain place, and is not emptied
  special,     // a link, a device, or a file with several names
  forbidden,   // the user may not do that; the plain call says so
  no_room,     // the cache is almost full
};

const char* word_of(Opened opened);

/// The decision for the flags of open.
Opened decide_open(Process& process, const Located& file, int flags);

/// The flags that open would have for a mode of fopen. -1 for a wrong mode.
int flags_of_mode(const char* mode);

/// Errors of the cache, and none of the call: then the plain place is taken.
bool is_trouble_of_cache(int error);

/// Writes a line to the log of a dry run.
void log_open(Process& process, const Located& file, const char* call, int flags, Opened opened);
void log_change(Process& process, const Located& file, const char* call, const Located* other);

}  // namespace cairn::interpose
