#include "cache/job_folder.hpp"

#include <algorithm>
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

/// A folder without a note is one whose first run has died before it made it.
Result<JobFolder> look_at(Files& files, const Settings& settings, const std::string& path,
                          PrefixId name_id) {
  CAIRN_ASSIGN(const FileInfo info, files.info(path));
  if (info.kind != Kind::folder || info.owner != files.effective_user())
    return fail(Code::untrusted, "{} is not a folder of user {}: it is not looked into; remove it",
                path, settings.user);
  JobFolder folder;
  folder.path = path;
  folder.name_id = name_id;
  CAIRN_ASSIGN(folder.note.path, read_text(files, path_note(path)));
  CAIRN_ASSIGN(const std::string id, read_text(files, id_note(path)));
  if (!id.empty()) folder.note.id = parse_prefix_id(id).value_or(name_id);
  const auto noted = files.info(path_note(path));
  if (!noted && noted.error().code != Code::not_found) return tl::unexpected(noted.error());
  if (noted) folder.used_ns = noted->times.modify_ns;
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

}  // namespace

std::string job_folder_name(const Settings& settings, PrefixId id) {
  return fmt::format("cairn.{}.{}", settings.job_id, text_of(id));
}

Status note_prefix(Files& files, const std::string& folder, const PrefixNote& note) {
  // The id first: a crash must not leave the folder as one that any directory of this path may
  // have.
  if (note.id != PrefixId::none) CAIRN_TRY(write_text(files, id_note(folder), text_of(note.id)));
  return write_text(files, path_note(folder), note.path);
}

std::vector<JobFolder> find_job_folders(Files& files, const std::string& base,
                                        const Settings& settings,
                                        std::vector<std::string>& unreadable) {
  const std::string user_folder = base + "/" + settings.user;
  const std::string start = fmt::format("cairn.{}.", settings.job_id);
  std::vector<JobFolder> found;
  const auto names = files.list(user_folder);
  if (!names && names.error().code != Code::not_found) unreadable.push_back(names.error().text);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!name.starts_with(start)) continue;
    const auto id = parse_prefix_id(std::string_view(name).substr(start.size()));
    if (!id) continue;  // of another job
    auto folder = look_at(files, settings, user_folder + "/" + name, *id);
    if (folder)
      found.push_back(*std::move(folder));
    else if (folder.error().code != Code::not_found)  // else it was removed meanwhile
      unreadable.push_back(folder.error().text);
  }
  return found;
}

const JobFolder* choose_job_folder(const RecordedId& recorded, const std::string& prefix,
                                   const std::vector<JobFolder>& found) {
  return last_used(found, [&](const JobFolder& folder) {
    const bool was_here = folder.note.path == prefix;
    switch (recorded.state) {
      case State::known:
        return folder.owner() == recorded.id;
      case State::none:
        return was_here && folder.is_unclaimed();
      case State::damaged:
      case State::unreadable:
        return was_here;
      case State::copied:
        return false;
    }
    return false;
  });
}

std::vector<JobFolder> left_by_another(const RecordedId& recorded, const std::string& prefix,
                                       const std::vector<JobFolder>& found) {
  std::vector<JobFolder> left;
  for (const JobFolder& folder : found) {
    const bool might_be_its = recorded.state == State::known
                                  ? folder.is_unclaimed() && folder.owner() != recorded.id
                                  : recorded.state == State::none && !folder.is_unclaimed();
    if (might_be_its && folder.note.path == prefix) left.push_back(folder);
  }
  return left;
}

RecordedId with_copy_seen(Files& files, RecordedId recorded, const std::string& prefix,
                          const std::vector<JobFolder>& found) {
  if (recorded.state != State::known) return recorded;
  for (const JobFolder& folder : found) {
    const std::string& other = folder.note.path;
    if (folder.owner() != recorded.id || other.empty() || !are_two_prefixes(files, prefix, other))
      continue;
    const RecordedId there = read_prefix_id(files, other);
    if (there.state != State::known || there.id != recorded.id) continue;
    recorded.state = State::copied;
    recorded.trouble = other;
    return recorded;
  }
  return recorded;
}

}  // namespace cairn
