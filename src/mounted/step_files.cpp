#include "mounted/step_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "crfs/backing_descriptor.hpp"
#include "files/uninterrupted.hpp"

namespace cairn {
namespace {

using interpose::Content;
using interpose::Durability;

/// In the cache.
constexpr const char* set_aside_in = "open_at_end";
/// A program may have closed a file while this daemon still closes it.
constexpr std::chrono::milliseconds longest_close(1000);
constexpr std::chrono::milliseconds close_step(5);

/// Repeats `call` as long as it returns EBUSY, for a moment.
template <class Call>
int when_closed(const Call& call) {
  int error = call();
  for (auto waited = close_step * 0; error == EBUSY && waited < longest_close;
       waited += close_step) {
    std::this_thread::sleep_for(close_step);
    error = call();
  }
  return error;
}

/// The path of an open file; empty if it has no name.
std::string path_of(const Descriptor& file) {
  char path[PATH_MAX];
  const ssize_t length = ::readlink(name_in_proc(file).c_str(), path, sizeof path);
  return length < 0 ? std::string() : std::string(path, static_cast<std::size_t>(length));
}

std::optional<std::string> name_below(const std::string& path, const std::string& directory) {
  if (path.size() <= directory.size() || !path.starts_with(directory) ||
      path[directory.size()] != '/')
    return {};
  return path.substr(directory.size() + 1);
}

std::optional<struct stat> look(int directory, const char* name) {
  struct stat state = {};
  if (::fstatat(directory, name, &state, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return state;
}
std::optional<struct stat> look(const std::string& path) { return look(AT_FDCWD, path.c_str()); }
std::optional<struct stat> look(const MountedName& at) { return look(at.directory, at.name); }

/// A descriptor cannot be returned beside an errno otherwise.
Descriptor failed(int error) {
  errno = error;
  return Descriptor(-1);
}

/// The directory of a path, and the name in it.
std::pair<std::string, std::string> parted(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

/// 0 if it is unknown: the thread has ended, or is in another namespace.
pid_t process_of_thread(pid_t thread) {
  constexpr std::string_view key = "Tgid:";
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  for (std::string line; thread > 0 && std::getline(status, line);)
    if (line.starts_with(key)) return std::atoi(line.c_str() + key.size());
  return 0;
}

int move_to(const std::string& from, const std::string& to, Durability durability,
            std::mutex* names = nullptr) {
  const auto [above, name] = parted(to);
  const Descriptor directory(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.number() < 0) return errno;
  return interpose::move_file(from.c_str(), directory.number(), name.c_str(), durability, names);
}

}  // namespace

/// The job knows of the change before it happens, and makes no dataset of the file meanwhile.
class StepFiles::Changed final : public Change {
 public:
  Changed(WrappedJob& job, std::string name, const interpose::Patterns& patterns, bool empties,
          pid_t writer)
      : job_(job), name_(std::move(name)) {
    job_.changes(name_, patterns.find(name_).step, empties, writer);
  }
  ~Changed() override { job_.changed(name_); }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

 private:
  WrappedJob& job_;
  const std::string name_;
};

// --- where files are ---

bool StepFiles::is_redirected(const std::string& name) const {
  const auto state = look(place_of(name));
  return state && !S_ISDIR(state->st_mode);
}

std::optional<std::string> StepFiles::name_in_cache(const std::string& path) const {
  return name_below(path, files_);
}

std::optional<std::string> StepFiles::name_in_backing(const std::string& path) const {
  return name_below(path, places_.prefix);
}

Descriptor StepFiles::find(const std::string& path) {
  if (!is_redirected(path)) return failed(ENOENT);
  return Descriptor(uninterrupted(
      [&] { return ::open(place_of(path).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC); }));
}

std::vector<Redirection::Listed> StepFiles::files_in(const std::string& directory) {
  std::vector<Listed> found;
  const std::string place = directory.empty() ? files_ : place_of(directory);
  DIR* const entries = ::opendir(place.c_str());
  if (entries == nullptr) return found;
  while (const dirent* const entry = ::readdir(entries)) {
    const auto state = look(::dirfd(entries), entry->d_name);
    if (state && S_ISREG(state->st_mode))
      found.push_back({entry->d_name, state->st_dev, state->st_ino});
  }
  ::closedir(entries);
  return found;
}

bool StepFiles::has_files_below(const std::string& directory) {
  return interpose::holds_files(place_of(directory));
}

bool StepFiles::has_room_for(const std::string& name) {
  struct statvfs space = {};
  const std::string_view step = step_in(name);
  if (!job_->takes_repeated_names() && !number_in(step)) return false;
  if (!steps_taken_.take(step)) return false;
  if (::statvfs(files_.c_str(), &space) != 0) return false;
  return space.f_blocks == 0 || space.f_bavail > space.f_blocks / 100 * places_.free_percent;
}

bool StepFiles::hides_names(const Descriptor& file) {
  return name_in_cache(path_of(file)).has_value();
}

// --- opening ---

int StepFiles::admit(const Descriptor& file, int flags, pid_t caller,
                     std::unique_ptr<Change>& change) {
  struct stat state = {};
  if (::fstat(file.number(), &state) != 0) return errno;
  if (!S_ISREG(state.st_mode)) return 0;
  // The kernel remembers names for a moment: this one may lead to another file by now. What a
  // program wrote to this one would be lost, or change a checkpoint.
  const std::string path = path_of(file);
  if (state.st_nlink == 0) return lead_elsewhere(path, flags);
  const bool empties = (flags & O_TRUNC) != 0;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || empties;
  if (const auto name = name_in_cache(path)) {
    if (!has_name(file, *name)) return lead_elsewhere(path, flags);
    if ((flags & O_PATH) != 0) return 0;
    return writes ? admit_redirected(file, *name, empties, caller, change) : 0;
  }
  const auto name = name_in_backing(path);
  const bool is_step_file = name && matches(*name) && (flags & O_PATH) == 0;
  return is_step_file ? admit_plain(*name, flags, caller, state) : 0;
}

/// False for a file that only a checkpoint has still.
bool StepFiles::has_name(const Descriptor& file, const std::string& name) const {
  struct stat state = {};
  const auto there = look(place_of(name));
  return there && ::fstat(file.number(), &state) == 0 && there->st_ino == state.st_ino &&
         there->st_dev == state.st_dev;
}

/// A checkpoint that has the file keeps it, and the name gets a file of its own. If that is
/// impossible, the program gets the error: no checkpoint is changed.
int StepFiles::leave_to_checkpoint(const std::string& name, bool empties) {
  const auto content = empties ? Content::emptied : Content::kept;
  const int error = when_closed(
      [&] { return interpose::make_own(places_.cache, place_of(name).c_str(), content); });
  return error == 0 || error == ENOENT ? ESTALE : error;
}

/// For names without a step, each time that they begin anew counts as another one: so the job hears
/// of that once, also if the kernel repeats the call.
int StepFiles::admit_redirected(const Descriptor& file, const std::string& name, bool empties,
                                pid_t caller, std::unique_ptr<Change>& change) {
  const auto has_one_name = [&] {
    struct stat state = {};
    if (!has_name(file, name) || ::fstat(file.number(), &state) != 0) return ESTALE;
    return state.st_nlink > 1 ? EBUSY : 0;
  };
  if (has_one_name() == EBUSY) return leave_to_checkpoint(name, empties);
  auto mine = std::make_unique<Changed>(*job_, name, patterns_, begins_anew(name, empties, caller),
                                        writer_of(name, caller));
  // A dataset that is being made of the file is given up now.
  const int error = when_closed(has_one_name);
  if (error == 0) {
    change = std::move(mine);
    return 0;
  }
  if (empties) {
    const std::scoped_lock lock(mutex_);
    begun_.emplace(name, caller);
  }
  return error == EBUSY ? leave_to_checkpoint(name, empties) : error;
}

/// For a file that has lost its name. ESTALE; the kernel looks up once only, so the file that it
/// finds then is one that can be opened.
int StepFiles::lead_elsewhere(std::string path, int flags) {
  constexpr std::string_view lost = " (deleted)";
  if (path.ends_with(lost)) path.resize(path.size() - lost.size());
  auto name = name_in_cache(path);
  if (!name) name = name_in_backing(path);
  const bool empties = (flags & O_TRUNC) != 0;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || empties;
  if (!name || !writes || !matches(*name)) return ESTALE;
  if (const auto there = look(place_of(*name)))
    return there->st_nlink > 1 ? leave_to_checkpoint(*name, empties) : ESTALE;
  const auto plain = look(places_.prefix + "/" + *name);
  if (empties && plain && S_ISREG(plain->st_mode) && plain->st_nlink == 1 && has_room_for(*name))
    (void)make_file(*name, plain->st_mode & 07777);
  return ESTALE;
}

/// A file that exists in the backing directory stays there, unless it is emptied.
int StepFiles::admit_plain(const std::string& name, int flags, pid_t caller,
                           const struct stat& state) {
  const bool empties = (flags & O_TRUNC) != 0;
  if (!empties && (flags & O_ACCMODE) != O_WRONLY &&
      !checked_.is_good(name, !number_in(step_in(name))))
    return EIO;
  if (!empties && (flags & O_ACCMODE) == O_RDONLY) return 0;
  if (empties && state.st_nlink == 1 && has_room_for(name)) {
    const Descriptor made = make_file(name, state.st_mode & 07777);
    if (made.number() >= 0 || errno == EEXIST) return ESTALE;  // the kernel finds the new file now
  }
  checked_.note_written(name);
  note_plain(name, empties, caller);
  return 0;
}

Descriptor StepFiles::make_file(const std::string& name, mode_t mode) const {
  const std::string place = place_of(name);
  if (const int error = interpose::make_parents(files_, place.c_str()); error != 0)
    return failed(error);
  return Descriptor(uninterrupted([&] {
    return ::open(place.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  }));
}

std::optional<Descriptor> StepFiles::create(const MountedName& at, mode_t mode) {
  if (!matches(at.path)) return {};
  if (look(at)) return failed(EEXIST);
  if (has_room_for(at.path)) {
    Descriptor made = make_file(at.path, mode);
    if (made.number() >= 0) note_opened(at.path, at.caller);
    if (made.number() >= 0 || errno == EEXIST) return made;
  }
  note_plain(at.path, true, at.caller);
  return {};
}

// --- names ---

/// What is read through a link or a pipe is in no checkpoint.
void StepFiles::made(const MountedName& at) {
  const auto state = look(at);
  if (state && !S_ISDIR(state->st_mode) && matches(at.path)) note_plain(at.path, true, at.caller);
}

int StepFiles::remove(const MountedName& at) {
  const std::scoped_lock lock(names_);
  // The hidden one first: if that fails, both stay. The job may just have moved the file there.
  const bool is_plain = look(at).has_value();
  if (is_plain && ::unlinkat(at.directory, at.name, 0) != 0) return errno;
  if (::unlink(place_of(at.path).c_str()) != 0 && !(is_plain && errno == ENOENT)) return errno;
  job_->removed(at.path);
  return 0;
}

std::optional<int> StepFiles::rename(const MountedName& from, const MountedName& to,
                                     unsigned flags) {
  const auto plain = look(from);
  const bool is_directory = plain && S_ISDIR(plain->st_mode);
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0) {
    for (const MountedName* each : {&from, &to}) {
      if (is_redirected(each->path))
        if (const int error = move_out(each->path); error != 0) return error;
      move_out_below(each->path);
    }
    return {};
  }
  if (is_redirected(from.path))
    if (const auto renamed = rename_redirected(from, to, flags)) return renamed;
  if (is_redirected(to.path) && is_directory) return ENOTDIR;
  if (is_redirected(to.path) && (flags & RENAME_NOREPLACE) != 0) return EEXIST;
  if (is_directory && has_files_below(to.path)) return ENOTEMPTY;
  if (matches(to.path) && (flags & RENAME_NOREPLACE) == 0 && may_enter_cache(from, to))
    return rename_into_cache(from, to);
  return {};
}

/// Nothing if the job has moved the file to the backing directory meanwhile.
std::optional<int> StepFiles::rename_redirected(const MountedName& from, const MountedName& to,
                                                unsigned flags) {
  const auto there = look(to);
  if ((flags & RENAME_NOREPLACE) != 0 && (there || is_redirected(to.path))) return EEXIST;
  if (there && S_ISDIR(there->st_mode)) return EISDIR;
  if (from.path == to.path) return 0;
  const std::string place = place_of(from.path);
  if (matches(to.path)) {
    const std::string target = place_of(to.path);
    if (const int error = interpose::make_parents(files_, target.c_str()); error != 0) return error;
    const std::scoped_lock lock(names_);
    if (!is_redirected(from.path)) return {};
    // First of all: a job that links this name later must not take the new file for the old one.
    const Changed announced(*job_, to.path, patterns_, true, writer_of(to.path, to.caller));
    if (::rename(place.c_str(), target.c_str()) != 0) return errno;
    job_->removed(from.path);
  } else {
    const int error = when_closed([&] {
      return interpose::move_file(place.c_str(), to.directory, to.name, Durability::synced,
                                  &names_);
    });
    if (error == ENOENT && !is_redirected(from.path)) return {};
    if (error != 0) return error;
    job_->moved_out(from.path);
  }
  // An older version must not come to light.
  if (look(from)) (void)::unlinkat(from.directory, from.name, 0);
  return 0;
}

/// Whether the bytes of a file that gets the name of a checkpoint may go to the cache.
bool StepFiles::may_enter_cache(const MountedName& from, const MountedName& to) {
  const auto is_usual = [](const std::optional<struct stat>& state) {
    return state && S_ISREG(state->st_mode) && state->st_nlink == 1;
  };
  const auto there = look(to);
  return is_usual(look(from)) && (!there || is_usual(there)) && has_room_for(to.path) &&
         interpose::make_parents(files_, place_of(to.path).c_str()) == 0;
}

/// Where the bytes cannot go to the cache, the file is renamed in its plain place. The job hears of
/// it once: for names without a step, each time counts as another one.
int StepFiles::rename_into_cache(const MountedName& from, const MountedName& to) {
  const std::string plain = places_.prefix + "/" + from.path;
  const Changed announced(*job_, to.path, patterns_, true, writer_of(to.path, to.caller));
  const auto move = [&] { return move_to(plain, place_of(to.path), Durability::not_synced); };
  if (when_closed(move) == 0) return 0;
  if (::renameat(from.directory, from.name, to.directory, to.name) != 0) return errno;
  remove_from_cache(to.path);
  job_->not_redirected(to.path, step_in(to.path), false);
  return 0;
}

/// The name stands for a file in the backing directory now.
void StepFiles::remove_from_cache(const std::string& name) {
  if (!is_redirected(name)) return;
  (void)::unlink(place_of(name).c_str());
  job_->removed(name);
}

void StepFiles::renamed(const MountedName& from, const MountedName& to) {
  const auto state = look(to);
  if (state && S_ISDIR(state->st_mode)) return follow_directory(from.path, to.path, to.caller);
  remove_from_cache(to.path);
  if (matches(to.path)) note_plain(to.path, true, to.caller);
}

/// After a directory has another name: its redirected files follow. Those whose names are no names
/// of checkpoint files any more leave the cache.
void StepFiles::follow_directory(const std::string& from, const std::string& to, pid_t caller) {
  if (!has_files_below(from)) return;
  std::vector<std::string> names;
  interpose::for_each_file(place_of(from), [&](const std::string& name) { names.push_back(name); });
  // First of all, so that no dataset gets half of them.
  for (const std::string& name : names)
    if (matches(to + "/" + name))
      job_->removed(from + "/" + name);
    else
      job_->moved_out(from + "/" + name);
  interpose::remove_empty_directories(place_of(to), true);
  const std::string target = place_of(to);
  if (interpose::make_parents(files_, target.c_str()) != 0 ||
      ::rename(place_of(from).c_str(), target.c_str()) != 0) {
    for (const std::string& name : names) {
      const std::string plain = places_.prefix + "/" + to + "/" + name;
      (void)interpose::make_parents("", plain.c_str());
      (void)when_closed(
          [&] { return move_to(place_of(from) + "/" + name, plain, Durability::synced); });
      if (matches(to + "/" + name)) note_plain(to + "/" + name, true, caller);
    }
    return;
  }
  for (const std::string& name : names) {
    const std::string now = to + "/" + name;
    if (matches(now))
      note_opened(now, caller);
    else
      (void)when_closed([&] { return move_to_plain_place(now); });
  }
}

std::optional<int> StepFiles::link(const Descriptor& file, const MountedName& to) {
  if (is_redirected(to.path)) return EEXIST;
  const auto name = name_in_cache(path_of(file));
  if (matches(to.path)) note_plain(to.path, true, to.caller);
  if (!name) return {};
  // A second name of a file in the cache means that a checkpoint has it.
  if (const int error = move_out(*name); error != 0) return error;
  const std::string plain = places_.prefix + "/" + *name;
  return ::linkat(AT_FDCWD, plain.c_str(), to.directory, to.name, 0) == 0 ? 0 : errno;
}

void StepFiles::removed_directory(const std::string& path) {
  interpose::remove_empty_directories(place_of(path), true);
}

// --- leaving the cache ---

int StepFiles::move_to_plain_place(const std::string& name) {
  // The program may have removed it, and its directory, and must not find them again.
  if (!is_redirected(name)) return ENOENT;
  const std::string plain = places_.prefix + "/" + name;
  if (const int error = interpose::make_parents("", plain.c_str()); error != 0) return error;
  const int error = move_to(place_of(name), plain, Durability::synced, &names_);
  if (error == 0) checked_.note_written(name);
  return error;
}

int StepFiles::set_aside() {
  int count = 0;
  interpose::for_each_file(files_, [&](const std::string& name) {
    const auto state = look(place_of(name));
    if (!state || state->st_nlink > 1 || move_to_plain_place(name) == 0) return;
    const std::string aside = places_.cache + "/" + set_aside_in + "/" + name;
    if (interpose::make_parents(places_.cache, aside.c_str()) == 0 &&
        ::rename(place_of(name).c_str(), aside.c_str()) == 0)
      ++count;
  });
  return count;
}

std::string StepFiles::settle_set_aside() const {
  return interpose::settle(places_.cache + "/" + set_aside_in, places_.prefix).first_error;
}

int StepFiles::move_out(const std::string& name) {
  const int error = when_closed([&] { return move_to_plain_place(name); });
  if (error == ENOENT && !is_redirected(name)) return 0;  // the job has moved it
  if (error == 0) job_->moved_out(name);
  return error;
}

void StepFiles::move_out_below(const std::string& directory) {
  std::vector<std::string> names;
  interpose::for_each_file(place_of(directory),
                           [&](const std::string& name) { names.push_back(name); });
  for (const std::string& name : names) (void)move_out(directory + "/" + name);
}

// --- what the job has to know ---

/// False if the kernel repeats the call of this thread that has emptied the name.
bool StepFiles::begins_anew(const std::string& name, bool empties, pid_t caller) {
  const std::scoped_lock lock(mutex_);
  return begun_.erase({name, caller}) == 0 && empties;
}

void StepFiles::note_opened(const std::string& name, pid_t caller) {
  job_->opened(name, patterns_.find(name).step, begins_anew(name, true, caller),
               writer_of(name, caller));
}

void StepFiles::note_plain(const std::string& name, bool empties, pid_t caller) {
  job_->not_redirected(name, patterns_.find(name).step, begins_anew(name, empties, caller),
                       writer_of(name, caller));
}

/// The process of a thread. One that is unknown is another one each time, with a negative number.
/// Names that carry a step need none.
pid_t StepFiles::writer_of(const std::string& name, pid_t caller) {
  if (number_in(step_in(name))) return 0;
  const pid_t process = process_of_thread(caller);
  return process > 0 ? process : --unknown_writers_;
}

void StepFiles::note_loss(const Descriptor& file) {
  const std::string path = path_of(file);
  auto name = name_in_cache(path);
  if (!name) name = name_in_backing(path);
  if (name && matches(*name)) job_->not_redirected(*name, step_in(*name), false);
}

}  // namespace cairn
