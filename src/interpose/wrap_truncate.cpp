// The wrapped calls that change the size of a file by its path. Those with a descriptor need no
// wrapping: the file was opened for writing.
#include <new>
#include <optional>

#include "interpose/job.hpp"
#include "interpose/next_call.hpp"

namespace cairn::interpose {
namespace {

bool changes(const Located& file, off64_t size) {
  const KeptErrno kept;
  return size >= 0 && !file.names_directory() && kernel::may_access(AT_FDCWD, file.place(), W_OK);
}

template <class Next>
__attribute__((noinline)) int truncate_checkpoint(Process& here, const char* path, off64_t size,
                                                  const Next& next) {
  const int saved = errno;
  const Content content = size == 0 ? Content::emptied : Content::kept;
  NewBeginning beginning;
  for (int attempt = 0; attempt < attempts_most; ++attempt) {
    Located file(here, AT_FDCWD, path);
    if (!file.is_redirected()) break;
    std::optional<Change> change;
    if (changes(file, size)) change.emplace(here, file, content, beginning.once(content));
    if (file.names_directory()) file.spell_as_directory();
    errno = saved;
    const int result = next(file.place());
    if (!has_found_nothing(result)) return result;
    if (change) note_removed(here, file);
  }
  errno = saved;
  const int result = next(path);
  if (result == 0)
    note_if_plain(here, AT_FDCWD, path, beginning.once(content) == Content::emptied ? O_TRUNC : 0);
  return result;
}

template <class Next>
int truncate_as(const char* path, off64_t size, const Next& next) {
  Process* const here = process();
  if (here == nullptr || path == nullptr || here->is_dry_run() || here->is_plain(AT_FDCWD, path))
    return next(path);
  try {
    return truncate_checkpoint(*here, path, size, next);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return -1;
  }
}

}  // namespace
}  // namespace cairn::interpose

using namespace cairn::interpose;  // NOLINT: the calls below are C's

CAIRN_WRAPPED int truncate(const char* path, off_t size) noexcept {
  return truncate_as(path, size,
                     [&](const char* found) { return CAIRN_NEXT(truncate)(found, size); });
}

CAIRN_WRAPPED int truncate64(const char* path, off64_t size) noexcept {
  return truncate_as(path, size,
                     [&](const char* found) { return CAIRN_NEXT(truncate64)(found, size); });
}
