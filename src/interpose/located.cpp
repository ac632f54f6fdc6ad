#include "interpose/located.hpp"

#include <cstdio>
#include <cstring>

#include "interpose/job.hpp"
#include "interpose/moving.hpp"

namespace cairn::interpose {

bool path_of_descriptor(int descriptor, PathText& out) {
  char link[40];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length = kernel::read_link_at(AT_FDCWD, link, out.text, out.capacity - 1);
  // A deleted directory keeps its path, with " (deleted)" behind it; sockets and pipes have none.
  if (length <= 0 || out.text[0] != '/' || static_cast<std::size_t>(length) >= out.capacity - 1)
    return false;
  out.length = static_cast<std::size_t>(length);
  out.text[out.length] = '\0';
  return true;
}

Located::Located(Process& process, int directory, const char* path) {
  if (decide(process, directory, path)) find_parent(process, directory, path);
}

bool Located::decide(Process& process, int directory, const char* path) {
  const std::string_view name(path);
  Decision decision;
  if (directory == AT_FDCWD || name.starts_with('/')) {
    decision = process.rules().decide(name, process.working_directory(), scratch_);
    if (scratch_.length == 0) scratch_.assign(name);
  } else {
    PathText from = parent_memory_.text();
    if (!path_of_descriptor(directory, from)) return false;
    decision = process.rules().decide_in(from.view(), name, scratch_);
  }
  kind_ = decision.kind == Kind::too_long ? Kind::outside : decision.kind;
  match_ = decision.match;
  names_directory_ = decision.names_directory;
  return kind_ != Kind::outside;
}

void Located::find_parent(Process& process, int directory, const char* path) {
  const int saved = errno;
  // The program's own spelling is used, as ".." after a symbolic link leads elsewhere than its text
  // says.
  PathText above = place_memory_.text();
  std::string_view name(path);
  while (name.size() > 1 && (name.ends_with('/') || name.ends_with("/."))) name.remove_suffix(1);
  const std::size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const bool has_name = !last.empty() && last != "." && last != "..";
  const std::string_view up = !has_name                         ? name
                              : slash == std::string_view::npos ? "."
                                                                : name.substr(0, slash + 1);
  if (!above.assign(up)) return;
  parent_.reset(kernel::open_at(directory, above.text, O_PATH | O_DIRECTORY | O_CLOEXEC));
  errno = saved;
  std::string_view below;
  if (!parent_.is_open() || !path_of_descriptor(parent(), parent_path_)) return;
  name_ = has_name ? path + (last.data() - path) : ".";
  last_ = has_name ? last : ".";
  const std::string_view prefix = process.rules().prefix();
  if (!process.rules().is_below(parent_path_.view(), below) ||
      !parent_path_.view().starts_with(prefix))
    return;
  is_plain_there_ = kernel::stat_at(parent(), name_, plain_) == 0;
  const bool is_plain_known = is_plain_there_ || errno == ENOENT;
  errno = saved;
  has_place_ = place_of(process.files(), below, place_) &&
               (!has_name || (place_.append("/") && place_.append(last)));
  if (!has_place_) return;
  relative_ = place_.view().substr(std::min(place_.length, process.files().size() + 1));
  if (kind_ != Kind::matched || !is_plain_known) return;
  struct stat cached;
  is_redirected_ = !process.is_dry_run() && kernel::stat_at(AT_FDCWD, place(), cached) == 0 &&
                   S_ISREG(cached.st_mode);
  is_ours_ = is_redirected_ || (!is_directory() && !names_directory_);
  errno = saved;
}

bool Located::canonical(PathText& out) const {
  return out.assign(parent_path_.view()) && (out.view() == "/" || out.append("/")) &&
         out.append(last_);
}

int settle_file(Process& process, const Located& file) {
  int error = move_file(file.place(), file.parent(), file.name(), Durability::synced);
  if (error == ENOENT) error = 0;  // the job has moved it, or another thread has deleted it
  static std::atomic<bool> once{false};
  if (error != 0)
    process.say(once, file.name(),
                error == EBUSY
                    ? "is open for writing, and cannot be moved out of the cache meanwhile"
                    : "cannot be moved out of the cache");
  if (error == 0) note_moved_out(process, file.relative());
  return error;
}

void settle_directory(Process& process, const Located& directory) {
  if (!directory.has_place() || !directory.is_directory()) return;
  PathBuffer<PATH_MAX> memory;
  PathText plain = memory.text();
  if (!directory.canonical(plain)) return;
  const Moved moved = settle(directory.place(), plain.text, [&](std::string_view name) {
    note_moved_out(process, std::string(directory.relative()) + "/" + std::string(name));
    return true;
  });
  static std::atomic<bool> once{false};
  if (moved.failed + moved.busy > 0)
    process.say(once, plain.text, "some of its files cannot be moved out of the cache");
}

}  // namespace cairn::interpose
