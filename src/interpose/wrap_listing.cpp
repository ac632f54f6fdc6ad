// The wrapped calls that list directories. libc's own scandir, glob and nftw do not come through
// them, so they are wrapped too.
#include <dirent.h>
#include <glob.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "interpose/listings.hpp"
#include "interpose/located.hpp"
#include "interpose/next_call.hpp"

namespace cairn::interpose {

Listings& listings() {
  // It is never deleted: directories may be listed until the process ends.
  static Listings* const all = new Listings;
  return *all;
}

std::shared_ptr<Listing> Listings::find(DIR* directory) {
  if (count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard hold(changing_);
  const auto found = open_.find(directory);
  return found == open_.end() ? nullptr : found->second;
}

void Listings::put(DIR* directory, std::vector<ListedFile> added) {
  auto made = std::make_shared<Listing>(std::move(added));
  const std::lock_guard hold(changing_);
  open_[directory] = std::move(made);
  count_.store(open_.size(), std::memory_order_release);
}

void Listings::remove(DIR* directory) {
  if (count_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard hold(changing_);
  open_.erase(directory);
  count_.store(open_.size(), std::memory_order_release);
}

namespace {

/// The redirected files of a directory of the cache.
std::vector<ListedFile> redirected_in(const char* place) {
  std::vector<ListedFile> found;
  DIR* const cached = CAIRN_NEXT(opendir)(place);
  if (cached == nullptr) return found;
  while (const dirent* const entry = CAIRN_NEXT(readdir)(cached)) {
    struct stat state;
    if (entry->d_name[0] == '.' && (entry->d_name[1] == '\0' || entry->d_name[1] == '.')) continue;
    if (std::strncmp(entry->d_name, ".cairn.wrap.", 12) == 0) continue;
    if (kernel::stat_at(dirfd(cached), entry->d_name, state) != 0 || !S_ISREG(state.st_mode))
      continue;
    found.push_back({entry->d_name, entry->d_ino});
  }
  CAIRN_NEXT(closedir)(cached);
  return found;
}

std::vector<ListedFile> added_to(Process& here, DIR* directory) {
  PathBuffer<PATH_MAX> path_memory;
  PathText path = path_memory.text();
  PathBuffer<PATH_MAX> place_memory;
  PathText place = place_memory.text();
  std::string_view relative;
  if (!path_of_descriptor(dirfd(directory), path) || !here.rules().is_below(path.view(), relative))
    return {};
  if (!place_of(here.files(), relative, place)) return {};
  std::vector<ListedFile> redirected = redirected_in(place.text);
  std::erase_if(redirected, [&](const ListedFile& file) {
    const std::string name = relative.empty() ? file.name : std::string(relative) + "/" + file.name;
    return !here.rules().patterns.find(name);
  });
  return redirected;
}

/// Prepares the listing of a directory that was opened, or is read again from its beginning.
void prepare_listing(DIR* directory) {
  Process* const here = process();
  if (here == nullptr || directory == nullptr || here->is_dry_run()) return;
  const KeptErrno kept;
  try {
    std::vector<ListedFile> added = added_to(*here, directory);
    if (!added.empty()) listings().put(directory, std::move(added));
  } catch (const std::exception&) {
    // No memory: the listing is that of the file system.
  }
}

/// The next redirected file; null after the last.
const dirent* next_added(Listing& listing) {
  if (listing.next >= listing.added.size()) return nullptr;
  const ListedFile& file = listing.added.at(listing.next++);
  listing.entry = {};
  listing.entry.d_ino = file.inode;
  listing.entry.d_off = position_of(listing.next);
  listing.entry.d_reclen = sizeof listing.entry;
  listing.entry.d_type = DT_REG;
  std::strncpy(listing.entry.d_name, file.name.c_str(), sizeof listing.entry.d_name - 1);
  return &listing.entry;
}

template <class Entry, class Next>
Entry* read_entry(DIR* directory, const Next& next) {
  static_assert(sizeof(Entry) ==
                sizeof(dirent));  // on systems with 64-bit offsets they are one type in two names
  const std::shared_ptr<Listing> listing = listings().find(directory);
  if (listing == nullptr) return next();
  const std::lock_guard hold(listing->changing);
  if (!listing->is_behind_real) {
    const int saved = errno;
    Entry* entry = nullptr;
    do {
      errno = 0;
      entry = next();
    } while (entry != nullptr && listing->added.hides(entry->d_name));
    if (entry == nullptr && errno != 0) return entry;
    errno = saved;
    if (entry != nullptr) return entry;
    listing->is_behind_real = true;
  }
  return reinterpret_cast<Entry*>(const_cast<dirent*>(next_added(*listing)));
}

template <class Entry, class Next>
int read_entry_into(DIR* directory, Entry* entry, Entry** result, const Next& next) {
  const std::shared_ptr<Listing> listing = listings().find(directory);
  if (listing == nullptr) return next();
  const std::lock_guard hold(listing->changing);
  if (!listing->is_behind_real) {
    int error = 0;
    do error = next();
    while (error == 0 && *result != nullptr && listing->added.hides(entry->d_name));
    if (error != 0 || *result != nullptr) return error;
    listing->is_behind_real = true;
  }
  const dirent* const added = next_added(*listing);
  *result = added == nullptr ? nullptr : entry;
  if (added != nullptr) std::memcpy(entry, added, sizeof *added);
  return 0;
}

/// As libc's scandir, over the wrapped calls.
template <class Entry, class Read>
int scan(DIR* directory, Entry*** list, int (*is_wanted)(const Entry*),
         int (*compare)(const Entry**, const Entry**), const Read& read) {
  if (directory == nullptr) return -1;
  const int saved = errno;
  std::vector<Entry*> found;
  int error = 0;
  errno = 0;
  while (Entry* const entry = read(directory)) {
    if (is_wanted != nullptr && is_wanted(entry) == 0) {
      errno = 0;
      continue;
    }
    auto* const copy = static_cast<Entry*>(std::malloc(sizeof(Entry)));
    if (copy != nullptr)
      std::memcpy(copy, entry, std::min<std::size_t>(entry->d_reclen, sizeof(Entry)));
    if (copy == nullptr) break;
    found.push_back(copy);
    errno = 0;
  }
  error = errno;
  closedir(directory);
  auto** const all =
      static_cast<Entry**>(std::malloc(std::max<std::size_t>(1, found.size()) * sizeof(Entry*)));
  if (error != 0 || all == nullptr) {
    for (Entry* const entry : found) std::free(entry);
    std::free(all);
    errno = error != 0 ? error : ENOMEM;
    return -1;
  }
  std::copy(found.begin(), found.end(), all);
  if (compare != nullptr)
    std::qsort(all, found.size(), sizeof(Entry*),
               reinterpret_cast<int (*)(const void*, const void*)>(compare));
  *list = all;
  errno = saved;
  return static_cast<int>(found.size());
}

/// Whether libc's own call shows everything.
bool is_listing_of_libc() {
  const Process* const here = process();
  return here == nullptr || here->is_dry_run();
}

DIR* open_directory_at(int directory, const char* path) {
  const int number = openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  DIR* const opened = number < 0 ? nullptr : fdopendir(number);
  if (opened == nullptr && number >= 0) kernel::close(number);
  return opened;
}

}  // namespace
}  // namespace cairn::interpose

using namespace cairn::interpose;  // NOLINT: the calls below are C's

CAIRN_WRAPPED DIR* opendir(const char* path) {
  // A redirected file is none, and opendir says so.
  DIR* const directory = on_existing(
      AT_FDCWD, path, [](int, const char* found) { return CAIRN_NEXT(opendir)(found); });
  prepare_listing(directory);
  return directory;
}

CAIRN_WRAPPED DIR* fdopendir(int descriptor) {
  DIR* const directory = CAIRN_NEXT(fdopendir)(descriptor);
  prepare_listing(directory);
  return directory;
}

CAIRN_WRAPPED struct dirent* readdir(DIR* directory) {
  return read_entry<dirent>(directory, [&] { return CAIRN_NEXT(readdir)(directory); });
}

CAIRN_WRAPPED struct dirent64* readdir64(DIR* directory) {
  return read_entry<dirent64>(directory, [&] { return CAIRN_NEXT(readdir64)(directory); });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs call them nevertheless
CAIRN_WRAPPED int readdir_r(DIR* directory, struct dirent* entry, struct dirent** result) {
  return read_entry_into(directory, entry, result,
                         [&] { return CAIRN_NEXT(readdir_r)(directory, entry, result); });
}

CAIRN_WRAPPED int readdir64_r(DIR* directory, struct dirent64* entry, struct dirent64** result) {
  return read_entry_into(directory, entry, result,
                         [&] { return CAIRN_NEXT(readdir64_r)(directory, entry, result); });
}
#pragma GCC diagnostic pop

CAIRN_WRAPPED int closedir(DIR* directory) {
  listings().remove(directory);
  return CAIRN_NEXT(closedir)(directory);
}

CAIRN_WRAPPED long telldir(DIR* directory) noexcept {
  const std::shared_ptr<Listing> listing = listings().find(directory);
  if (listing == nullptr || !listing->is_behind_real) return CAIRN_NEXT(telldir)(directory);
  return position_of(listing->next);
}

CAIRN_WRAPPED void seekdir(DIR* directory, long position) noexcept {
  const std::shared_ptr<Listing> listing = listings().find(directory);
  if (listing != nullptr) {
    const std::lock_guard hold(listing->changing);
    listing->is_behind_real = is_position_of_added(position);
    listing->next = listing->is_behind_real ? index_of(position) : 0;
  }
  if (listing == nullptr || !is_position_of_added(position))
    CAIRN_NEXT(seekdir)(directory, position);
}

CAIRN_WRAPPED void rewinddir(DIR* directory) noexcept {
  listings().remove(directory);
  CAIRN_NEXT(rewinddir)(directory);
  prepare_listing(directory);
}

CAIRN_WRAPPED int scandir(const char* path, struct dirent*** list,
                          int (*is_wanted)(const struct dirent*),
                          int (*compare)(const struct dirent**, const struct dirent**)) {
  if (is_listing_of_libc()) return CAIRN_NEXT(scandir)(path, list, is_wanted, compare);
  return scan(opendir(path), list, is_wanted, compare,
              [](DIR* directory) { return readdir(directory); });
}

CAIRN_WRAPPED int scandir64(const char* path, struct dirent64*** list,
                            int (*is_wanted)(const struct dirent64*),
                            int (*compare)(const struct dirent64**, const struct dirent64**)) {
  if (is_listing_of_libc()) return CAIRN_NEXT(scandir64)(path, list, is_wanted, compare);
  return scan(opendir(path), list, is_wanted, compare,
              [](DIR* directory) { return readdir64(directory); });
}

CAIRN_WRAPPED int scandirat(int at, const char* path, struct dirent*** list,
                            int (*is_wanted)(const struct dirent*),
                            int (*compare)(const struct dirent**, const struct dirent**)) {
  if (is_listing_of_libc()) return CAIRN_NEXT(scandirat)(at, path, list, is_wanted, compare);
  return scan(open_directory_at(at, path), list, is_wanted, compare,
              [](DIR* directory) { return readdir(directory); });
}

CAIRN_WRAPPED int scandirat64(int at, const char* path, struct dirent64*** list,
                              int (*is_wanted)(const struct dirent64*),
                              int (*compare)(const struct dirent64**, const struct dirent64**)) {
  if (is_listing_of_libc()) return CAIRN_NEXT(scandirat64)(at, path, list, is_wanted, compare);
  return scan(open_directory_at(at, path), list, is_wanted, compare,
              [](DIR* directory) { return readdir64(directory); });
}

// glob takes functions for all that it asks of the file system.
CAIRN_WRAPPED int glob(const char* pattern, int flags, int (*on_error)(const char*, int),
                       glob_t* out) noexcept(noexcept(::glob(pattern, flags, on_error, out))) {
  if (is_listing_of_libc() || out == nullptr || (flags & GLOB_ALTDIRFUNC) != 0)
    return CAIRN_NEXT(glob)(pattern, flags, on_error, out);
  out->gl_opendir = [](const char* path) -> void* { return opendir(path); };
  out->gl_readdir = [](void* directory) { return readdir(static_cast<DIR*>(directory)); };
  out->gl_closedir = [](void* directory) { closedir(static_cast<DIR*>(directory)); };
  out->gl_stat = [](const char* path, struct stat* state) { return stat(path, state); };
  out->gl_lstat = [](const char* path, struct stat* state) { return lstat(path, state); };
  const int result = CAIRN_NEXT(glob)(pattern, flags | GLOB_ALTDIRFUNC, on_error, out);
  out->gl_flags &= ~GLOB_ALTDIRFUNC;
  return result;
}

CAIRN_WRAPPED int glob64(const char* pattern, int flags, int (*on_error)(const char*, int),
                         glob64_t* out) noexcept(noexcept(::glob64(pattern, flags, on_error,
                                                                   out))) {
  static_assert(sizeof(glob_t) == sizeof(glob64_t));
  return glob(pattern, flags, on_error, reinterpret_cast<glob_t*>(out));
}
