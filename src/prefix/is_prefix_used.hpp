// Checks whether a prefix directory exists, and whether it contains more than notes about runs.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "files/files.hpp"

namespace cairn {

/// Local. True if the path does not exist, or is a file. A link to a directory counts as a
/// directory.
inline bool is_no_directory(Files& files, const std::string& prefix) {
  const auto there = files.info(prefix + "/.");
  return !there && there.error().code == Code::not_found;
}

/// Notes for commands and users, which runs write even if they flush nothing. A job that finds only
/// these need not own the directory.
inline bool is_note_of_run(std::string_view name) {
  constexpr std::array<std::string_view, 7> notes = {
      "id", "last_run", "app_settings", "run.json", "run.lock", "log", "log.json"};
  // Includes the lock of a note, and a new note that was not renamed yet.
  return std::any_of(notes.begin(), notes.end(), [name](std::string_view note) {
    return name == note || (name.starts_with(note) && name[note.size()] == '.');
  });
}

/// Local. True if it cannot be read now. `root` is <prefix>/.cairn.
inline bool is_prefix_used(Files& files, const std::string& root) {
  const auto names = files.list(root);
  if (!names) return names.error().code != Code::not_found;
  return !std::all_of(names->begin(), names->end(), is_note_of_run);
}

}  // namespace cairn
