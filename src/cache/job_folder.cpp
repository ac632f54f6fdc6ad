#include "cache/job_folder.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace cairn {
namespace {

using State = RecordedId::State;

constexpr std::uint64_t longest_note = 1 << 16;

std::string path_note(const std::string& folder) { return folder + "/prefix"; }
std::string id_note(const std::string& folder) { return folder + "/prefix.id"; }

/// Empty if there is no such file.
Result<std::string> read_text(Files& files, const std::string& path) {
  const auto content = read_file(files, path, longest_note);
  if (!content && content.error().code == Code::not_found) return "";
  CAIRN_TRY(content);
  return std::string(reinterpret_cast<const char*>(content->data()), content->size());
}

Status write_text(Files& files, const std::string& path, const std::string& text) {
  return write_file_atomically(files, path, std::as_bytes(std::span(text)), false);
}

/// The reason why the directory must not be read; empty if it may be. Other users cannot replace
/// names only in directories that this user owns.
Result<std::string> why_not_ours(Files& files, const std::string& path) {
  CAIRN_ASSIGN(const FileInfo info, files.info(path));
  if (info.kind != Kind::folder)
    return fmt::format("{} is a link or a file, not a directory", path);
  if (info.owner != files.effective_user())
    return fmt::format("{} belongs to user {}, and this is user {}", path, info.owner,
                       files.effective_user());
  return "";
}

/// A directory has no note if its first run died before writing it.
Result<JobFolder> look_at(Files& files, const std::string& path, PrefixId name_id) {
  JobFolder folder;
  folder.path = path;
  folder.name_id = name_id;
  CAIRN_ASSIGN(folder.note.path, read_text(files, path_note(path)));
  CAIRN_ASSIGN(const std::string id, read_text(files, id_note(path)));
  if (!id.empty()) folder.note.id = parse_prefix_id(id).value_or(name_id);
  const auto noted = files.info(path_note(path));
  if (!noted && noted.error().code != Code::not_found) return tl::unexpected(noted.error());
  if (noted) folder.used_ns = noted->times.modify_ns;
  CAIRN_ASSIGN(const auto names, files.list(path));
  folder.has_datasets = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("dataset.");
  });
  return folder;
}

template <class Fits>
const JobFolder* last_used(const std::vector<JobFolder>& found, Fits fits) {
  const JobFolder* last = nullptr;
  for (const JobFolder& folder : found) {
    if (!fits(folder)) continue;
    const bool later = last == nullptr || std::pair(folder.used_ns, folder.name_id) >
                                              std::pair(last->used_ns, last->name_id);
    if (later) last = &folder;
  }
  return last;
}

std::string paths_of(const std::vector<const JobFolder*>& folders) {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, folders.size()); ++i)
    text += (i == 0 ? "" : ", ") + folders[i]->path;
  return folders.size() <= most ? text : fmt::format("{} and {} more", text, folders.size() - most);
}

std::string why_copy(const RecordedId& recorded, const std::string& prefix) {
  return fmt::format(
      "{} is a copy of {}, or was moved from there to another file system, or restored from a "
      "backup; only a directory that was moved may have the caches",
      prefix, recorded.path);
}

std::string why_other_id(const JobFolder& folder, const std::string& prefix) {
  if (folder.is_unclaimed())
    return fmt::format("the run that made them could not read the id of {}", prefix);
  return fmt::format(
      "the last run that used them was in {}, which had that id; since then, .cairn was deleted or "
      "the directory was replaced",
      prefix);
}

}  // namespace

std::string job_folder_name(const Settings& settings, PrefixId id) {
  return fmt::format("cairn.{}.{}", settings.job_id, text_of(id));
}

Status note_prefix(Files& files, const std::string& folder, const PrefixNote& note) {
  // The id first: after a crash, a note with the path alone would let any prefix directory at this
  // path use the caches.
  if (note.id != PrefixId::none) CAIRN_TRY(write_text(files, id_note(folder), text_of(note.id)));
  return write_text(files, path_note(folder), note.path);
}

void find_job_folders(Files& files, const std::string& base, const Settings& settings,
                      JobFolders& all) {
  // False also if the path does not exist: it was removed meanwhile.
  const auto is_ours = [&](const std::string& path) {
    const auto why_not = why_not_ours(files, path);
    if (why_not && !why_not->empty()) all.ignored.push_back(*why_not + ": it is ignored");
    if (!why_not && why_not.error().code != Code::not_found)
      all.unreadable.push_back(why_not.error().text);
    return why_not && why_not->empty();
  };
  const std::string user_folder = base + "/" + settings.user;
  const std::string start = fmt::format("cairn.{}.", settings.job_id);
  if (!is_ours(user_folder)) return;
  const auto names = files.list(user_folder);
  if (!names && names.error().code != Code::not_found) all.unreadable.push_back(names.error().text);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!name.starts_with(start)) continue;
    const auto id = parse_prefix_id(std::string_view(name).substr(start.size()));
    const std::string path = user_folder + "/" + name;
    if (!id || !is_ours(path)) continue;  // of another job, or of another user
    auto folder = look_at(files, path, *id);
    if (folder)
      all.found.push_back(*std::move(folder));
    else if (folder.error().code != Code::not_found)
      all.unreadable.push_back(folder.error().text);
  }
}

const JobFolder* choose_job_folder(const RecordedId& recorded, const std::string& prefix,
                                   const std::vector<JobFolder>& found) {
  return last_used(found, [&](const JobFolder& folder) {
    const bool was_here = folder.note.path == prefix;
    switch (recorded.state) {
      case State::known:
        return folder.owner() == recorded.id;
      case State::none:
      case State::copied:
        return was_here && folder.is_unclaimed() && folder.name_id != recorded.id;
      case State::damaged:
      case State::unreadable:
        return was_here;
    }
    return false;
  });
}

std::vector<JobFolder> left_by_another(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& found) {
  const auto is_left = [&](const JobFolder& folder) {
    const bool was_here = folder.note.path == prefix;
    switch (recorded.state) {
      case State::known:
        return was_here && folder.owner() != recorded.id;
      case State::none:
        return was_here && !folder.is_unclaimed();
      case State::copied:
        return folder.owner() == recorded.id || (was_here && !folder.is_unclaimed());
      case State::damaged:
      case State::unreadable:
        return false;
    }
    return false;
  };
  std::vector<JobFolder> left;
  for (const JobFolder& folder : found)
    if (folder.has_datasets && is_left(folder)) left.push_back(folder);
  return left;
}

std::vector<std::string> texts_of_left(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& left) {
  std::map<PrefixId, std::vector<const JobFolder*>> by_id;
  for (const JobFolder& folder : left) by_id[folder.owner()].push_back(&folder);
  std::vector<std::string> texts;
  for (const auto& [id, folders] : by_id) {
    const bool is_of_original = recorded.state == State::copied && id == recorded.id;
    texts.push_back(fmt::format(
        "runs in {} do not use the caches of id {} ({}), because {}. To use them, end the runs in "
        "{} and give it that id: cairn index id {} -p {}",
        prefix, text_of(id), paths_of(folders),
        is_of_original ? why_copy(recorded, prefix) : why_other_id(*folders.front(), prefix),
        prefix, text_of(id), prefix));
  }
  return texts;
}

RecordedId with_copy_seen(Files& files, RecordedId recorded, const std::string& prefix,
                          const std::vector<JobFolder>& found) {
  if (recorded.state != State::known || recorded.is_in_place) return recorded;
  for (const JobFolder& folder : found) {
    const std::string& other = folder.note.path;
    if (folder.owner() != recorded.id || other.empty()) continue;
    if (!is_id_of_another(files, recorded.id, prefix, other)) continue;
    recorded.state = State::copied;
    recorded.path = other;
    return recorded;
  }
  return recorded;
}

}  // namespace cairn
