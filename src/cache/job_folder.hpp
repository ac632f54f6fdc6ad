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
  bool has_datasets = false;

  /// The id of the prefix directory that the folder is for.
  PrefixId owner() const { return note.id == PrefixId::none ? name_id : note.id; }
  /// No prefix directory has that id yet.
  bool is_unclaimed() const { return note.id == PrefixId::none; }
};

/// Those that were found, in any number of places.
struct JobFolders {
  std::vector<JobFolder> found;
  std::vector<std::string> unreadable;  ///< why directories of this user cannot be read
  std::vector<std::string> ignored;     ///< links, files, and entries of other users: what they are
};

/// Local. Adds those of this user's job in a store, or control directory.
void find_job_folders(Files& files, const std::string& base, const Settings& settings,
                      JobFolders& all);

/// The folder with which a prefix directory's job goes on, of those that were found, on any number
/// of nodes; null for a new one. Where the directory's id is known: the folder last used of those
/// for it. Where it has none, or that of its original: the one last used at this path, if no
/// directory has its id. Where the id cannot be read: the one last used at this path.
const JobFolder* choose_job_folder(const RecordedId& recorded, const std::string& prefix,
                                   const std::vector<JobFolder>& found);

/// Those with datasets that runs in the directory do not use, though a user may expect it: last
/// used at this path under another id; and those of its original, if it is a copy.
std::vector<JobFolder> left_by_another(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& found);

/// What a user has to know of these, and how runs come to use them: a text for each id.
std::vector<std::string> texts_of_left(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& left);

/// Local. `recorded`; but copied, if the directory is not as its record says, and another one that
/// has the same id used one of the folders last. So a backup that was restored at the old path of a
/// directory that has moved is a copy.
RecordedId with_copy_seen(Files& files, RecordedId recorded, const std::string& prefix,
                          const std::vector<JobFolder>& found);

}  // namespace cairn
