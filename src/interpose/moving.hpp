#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace cairn::interpose {

enum class Durability : unsigned char { synced, not_synced };

/// Moves a regular file to a name in another directory, usually of another file system: copy under
/// a temporary name, sync, rename, delete. Returns 0 or an errno; EBUSY if a process of this node
/// has it open for writing, opened it so meanwhile, or gave its name to another file; ENOENT if it
/// was deleted or renamed meanwhile. After an error the file is where it was, and the other name is
/// as it was. `names`, if any, is locked while the names change, and not while bytes are copied.
int move_file(const char* from, int to_directory, const char* to_name, Durability durability,
              std::mutex* names = nullptr);

enum class Content : unsigned char { kept, emptied };

/// Before a change of a file of the cache that has other names in checkpoints: gives this name a
/// file of its own, a copy or an empty one, so that the checkpoints keep theirs. Does nothing where
/// the file has one name. Processes that do it at the same time wait for each other. Returns 0 or
/// an errno, and changes nothing then; EBUSY if a process has a file open for writing that is to be
/// copied. `cache` holds the lock and the unfinished copy; it is on the file system of `place`.
int make_own(const std::string& cache, const char* place, Content content);

/// Makes the directories above `path` below `root`, which exists. Returns 0 or an errno.
int make_parents(std::string_view root, const char* path);

/// Whether a file lies in this directory of the cache, or below it.
bool holds_files(const std::string& directory);

/// Deletes the directories of the cache that hold nothing.
void remove_empty_directories(const std::string& directory, bool also_itself);

/// Visits the files below a directory of the cache by their names from there on. They may be moved
/// or deleted meanwhile.
void for_each_file(const std::string& directory,
                   const std::function<void(const std::string& name)>& visit);

struct Moved {
  int files = 0;
  int busy = 0;    // a process has them open for writing
  int failed = 0;  // they stay in the cache
  int older = 0;   // beside a newer file of the same name, as NAME.cairn-older
  std::string first_error;
};

/// Moves the files below a directory of the cache to their plain places below `destination`.
/// `is_wanted` gets the name below `directory`; no function: all.
Moved settle(const std::string& directory, const std::string& destination,
             const std::function<bool(std::string_view)>& is_wanted = nullptr);

}  // namespace cairn::interpose
