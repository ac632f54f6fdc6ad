// Whether a prefix directory is there, and whether it holds more than notes about runs.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "files/files.hpp"

namespace cairn {

/// Local. Nothing is at this path, or a file. A link to a directory is one.
inline bool is_no_directory(Files& files, const std::string& prefix) {
  const auto there = files.info(prefix + "/.");
  return !there && there.error().code == Code::not_found;
}

/// Written for commands and users by runs that flush nothing. A job that finds only these has
/// nothing to own there.
inline bool is_note_of_run(std::string_view name) {
  constexpr std::array<std::string_view, 7> notes = {
      "id", "last_run", "app_settings", "run.json", "run.lock", "log", "log.json"};
  // With what belongs to a note: its lock, and a new one that was not renamed yet.
  return std::any_of(notes.begin(), notes.end(), [name](std::string_view note) {
    return name == note || (name.starts_with(note) && name[note.size()] == '.');
  });
}

/// Local. True where it cannot be seen now. `root` is <prefix>/.cairn.
inline bool is_prefix_used(Files& files, const std::string& root) {
  const auto names = files.list(root);
  if (!names) return names.error().code != Code::not_found;
  return !std::all_of(names->begin(), names->end(), is_note_of_run);
}

}  // namespace cairn
