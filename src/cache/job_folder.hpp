// The directories of a user's job in stores and control directories. A job has one for each prefix
// directory.
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

/// What a run writes into the job's directory about its prefix directory.
struct PrefixNote {
  std::string path;              ///< of the prefix directory
  PrefixId id = PrefixId::none;  ///< none until a run could read or record one there
};

/// Local. Replaces the note; its modification time is the time of the last run. The caller must
/// hold the lock of the directory.
Status note_prefix(Files& files, const std::string& folder, const PrefixNote& note);

/// An existing directory BASE/USER/cairn.JOB.ID.
struct JobFolder {
  std::string path;
  PrefixId name_id = PrefixId::none;  ///< in its name
  PrefixNote note;
  std::int64_t used_ns = 0;  ///< when the last run wrote the note
  bool has_datasets = false;

  /// The id of the prefix directory to which it belongs.
  PrefixId owner() const { return note.id == PrefixId::none ? name_id : note.id; }
  /// No prefix directory has its id yet.
  bool is_unclaimed() const { return note.id == PrefixId::none; }
};

/// The result of a search in any number of places.
struct JobFolders {
  std::vector<JobFolder> found;
  std::vector<std::string> unreadable;  ///< errors of directories of this user that cannot be read
  std::vector<std::string> ignored;     ///< links, files, and entries of other users, with reasons
};

/// Local. Adds the directories of this user's job in a store or control directory.
void find_job_folders(Files& files, const std::string& base, const Settings& settings,
                      JobFolders& all);

/// Chooses the directory that the job in a prefix directory uses, among those found on any number
/// of nodes; null for a new one. If the id of the prefix directory is known: the last used one of
/// this id. If the prefix directory has no id, or is a copy: the one last used at this path,
/// provided that no prefix directory has its id. If the id cannot be read: the one last used at
/// this path.
const JobFolder* choose_job_folder(const RecordedId& recorded, const std::string& prefix,
                                   const std::vector<JobFolder>& found);

/// The directories with datasets that runs in the prefix directory do not use, though a user may
/// expect that: those last used at this path under another id, and if the prefix directory is a
/// copy, those of its original.
std::vector<JobFolder> left_by_another(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& found);

/// One message per id: why runs do not use these directories, and how to change that.
std::vector<std::string> texts_of_left(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& left);

/// Local. Returns `recorded`, with the state `copied` if path and inode differ from the record, and
/// another prefix directory with the same id used one of `found` last. So a backup restored at the
/// old path of a directory that has moved counts as a copy.
RecordedId with_copy_seen(Files& files, RecordedId recorded, const std::string& prefix,
                          const std::vector<JobFolder>& found);

}  // namespace cairn
