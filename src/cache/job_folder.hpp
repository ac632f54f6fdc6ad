// The folders that a user's job has in stores and control directories, and which of them belongs to
// a prefix directory: a job has one folder for each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/prefix_id_file.hpp"
#include "config/settings.hpp"
#include "files/files.hpp"

namespace cairn {

/// cairn.JOB.ID
std::string job_folder_name(const Settings& settings, PrefixId id);

/// What a run notes in the job's folder of the prefix directory that it works in.
struct PrefixNote {
  std::string path;              ///< of the prefix directory
  PrefixId id = PrefixId::none;  ///< none as long as no run could read or record one there
};

/// Local. Replaces the note; its time of change is that of the last run. For the holder of the
/// folder's lock.
Status note_prefix(Files& files, const std::string& folder, const PrefixNote& note);

/// One that is there: BASE/USER/cairn.JOB.ID.
struct JobFolder {
  std::string path;
  PrefixId name_id = PrefixId::none;  ///< in its name
  PrefixNote note;
  std::int64_t used_ns = 0;  ///< when the last run noted its prefix directory

  /// The id of the prefix directory that the folder is for.
  PrefixId owner() const { return note.id == PrefixId::none ? name_id : note.id; }
  /// No prefix directory has that id yet.
  bool is_unclaimed() const { return note.id == PrefixId::none; }
};

/// Local. Those of this user's job in a store, or control directory. What cannot be looked into, or
/// is a link or another user's, is named in `unreadable` instead.
std::vector<JobFolder> find_job_folders(Files& files, const std::string& base,
                                        const Settings& settings,
                                        std::vector<std::string>& unreadable);

/// The folder with which a prefix directory's job goes on, of those that were found, on any number
/// of nodes; null for a new one. Where the directory's id is known: the folder last used of those
/// for it. Where it has none: the one last used at this path, if no directory has its id. Where the
/// id cannot be read: the one last used at this path.
const JobFolder* choose_job_folder(const RecordedId& recorded, const std::string& prefix,
                                   const std::vector<JobFolder>& found);

/// Those that a user may miss. Where the directory has no id: those for another one that was at
/// this path, which was replaced, or has lost its id. Where it has one: those that no directory
/// has, of runs that could not read it.
std::vector<JobFolder> left_by_another(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& found);

/// Local. `recorded`, but copied if one of the folders was used by another directory that is still
/// there and has the same id.
RecordedId with_copy_seen(Files& files, RecordedId recorded, const std::string& prefix,
                          const std::vector<JobFolder>& found);

}  // namespace cairn
