#include "interpose/opening.hpp"

#include <cstdio>
#include <cstring>
#include <ctime>

namespace cairn::interpose {
namespace {

const char* word_of(Kind kind) {
  return kind == Kind::matched ? "matched" : kind == Kind::unmatched ? "unmatched" : "outside";
}

constexpr std::size_t line_bytes = 2 * PATH_MAX + 512;

/// For a file that exists in its plain place.
Opened decide_existing(const Located& file, int flags) {
  if (file.is_directory()) return Opened::directory;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool is_new = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  if (is_new || !writes || (flags & O_TRUNC) == 0) return Opened::existing;
  if (!S_ISREG(file.plain().st_mode) || file.plain().st_nlink > 1) return Opened::special;
  const int wanted = (flags & O_ACCMODE) == O_RDWR ? R_OK | W_OK : W_OK;
  return kernel::may_access(file.parent(), file.name(), wanted) ? Opened::created
                                                                : Opened::forbidden;
}

/// Copies a text without what separates the fields of the log.
std::size_t add_field(char* line, std::size_t at, std::string_view text) {
  line[at++] = '\t';
  for (const char letter : text.substr(0, std::min<std::size_t>(text.size(), PATH_MAX)))
    line[at++] = letter == '\t' || letter == '\n' ? '?' : letter;
  return at;
}

void log_line(Process& process, const char* call, const char* mode, const char* verdict,
              const Match& match, std::string_view path, std::string_view other) {
  const KeptErrno kept;
  char line[line_bytes];
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  std::size_t at = static_cast<std::size_t>(
      std::snprintf(line, 200, "%lld.%09ld\t%s\t%s\t%s\t%d", static_cast<long long>(now.tv_sec),
                    now.tv_nsec, call, mode, verdict, match.pattern));
  at = add_field(line, at, match.step);
  at = add_field(line, at, path);
  at = add_field(line, at, other);
  line[at++] = '\n';
  process.log(line, at);
}

}  // namespace

const char* word_of(Opened opened) {
  switch (opened) {
    case Opened::redirected:
      return "redirected";
    case Opened::created:
      return "created";
    case Opened::outside:
      return "outside";
    case Opened::unmatched:
      return "unmatched";
    case Opened::shared:
      return "shared";
    case Opened::directory:
      return "directory";
    case Opened::missing:
      return "missing";
    case Opened::existing:
      return "existing";
    case Opened::special:
      return "special";
    case Opened::forbidden:
      return "forbidden";
    case Opened::no_room:
      return "no_room";
  }
  return "";
}

Opened decide_open(Process& process, const Located& file, int flags) {
  if (file.kind() == Kind::outside) return Opened::outside;
  if (file.is_redirected()) return Opened::redirected;
  if (file.kind() == Kind::unmatched)
    return file.match().is_shared ? Opened::shared : Opened::unmatched;
  if (file.names_directory()) return Opened::directory;
  if ((flags & (O_DIRECTORY | O_PATH)) != 0 || (flags & O_TMPFILE) == O_TMPFILE)
    return Opened::directory;
  if (file.parent() < 0) return Opened::missing;
  Opened opened = Opened::created;
  if (file.is_plain_there()) {
    opened = decide_existing(file, flags);
  } else if ((flags & O_CREAT) == 0) {
    opened = Opened::missing;
  } else if (!file.can_change_parent()) {
    opened = Opened::forbidden;
  }
  if (!file.is_ours() && !process.is_dry_run() && opened == Opened::created)
    return Opened::forbidden;
  if (opened != Opened::created || process.is_dry_run()) return opened;
  return process.has_room_for(file.match().step) ? opened : Opened::no_room;
}

int flags_of_mode(const char* mode) {
  if (mode == nullptr) return -1;
  int flags = 0;
  switch (mode[0]) {
    case 'r':
      flags = O_RDONLY;
      break;
    case 'w':
      flags = O_WRONLY | O_CREAT | O_TRUNC;
      break;
    case 'a':
      flags = O_WRONLY | O_CREAT | O_APPEND;
      break;
    default:
      return -1;
  }
  // What follows a comma is the name of a character set.
  for (const char* letter = mode + 1; *letter != '\0' && *letter != ','; ++letter) {
    if (*letter == '+') flags = (flags & ~O_ACCMODE) | O_RDWR;
    if (*letter == 'x') flags |= O_EXCL;
  }
  return flags;
}

bool is_trouble_of_cache(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case EINTR:
    case EEXIST:
    case EINVAL:
    case ENOMEM:
      return false;
    default:
      return true;
  }
}

void log_open(Process& process, const Located& file, const char* call, int flags, Opened opened) {
  char mode[8];
  std::size_t at = 0;
  const int access = flags & O_ACCMODE;
  if (access != O_WRONLY) mode[at++] = 'r';
  if (access != O_RDONLY) mode[at++] = 'w';
  if ((flags & O_CREAT) != 0) mode[at++] = 'c';
  if ((flags & O_TRUNC) != 0) mode[at++] = 't';
  if ((flags & O_APPEND) != 0) mode[at++] = 'a';
  mode[at] = '\0';
  log_line(process, call, mode, word_of(opened), file.match(), file.clean(), "");
}

void log_change(Process& process, const Located& file, const char* call, const Located* other) {
  if (other == nullptr) {
    log_line(process, call, "-", word_of(file.kind()), file.match(), file.clean(), "");
  } else {
    log_line(process, call, word_of(other->kind()), word_of(file.kind()), other->match(),
             file.clean(), other->clean());
  }
}

}  // namespace cairn::interpose
