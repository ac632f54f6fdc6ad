#include "interpose/job.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <string>

#include "wrapped/wrapped_calls.h"

namespace cairn::interpose {
namespace {

/// Where the step is in the name of the file. It was found in another spelling of the path, which
/// ends alike, unless a directory is a symbolic link.
std::size_t begin_of_step(const Located& file) {
  const std::string_view name = file.relative();
  const std::string_view step = file.match().step;
  const std::string_view clean = file.clean();
  const auto from_end = static_cast<std::size_t>(clean.data() + clean.size() - step.data());
  if (from_end <= name.size() && name.substr(name.size() - from_end, step.size()) == step)
    return name.size() - from_end;
  const std::size_t last = name.rfind(step);
  return last == std::string_view::npos ? 0 : last;
}

bool has_second_name(const char* place) {
  struct stat state;
  return kernel::stat_at(AT_FDCWD, place, state) == 0 && state.st_nlink > 1;
}

template <class Call>
void with_name(const Located& file, const Call& call) {
  const NameText name(file.relative());
  const std::size_t length = file.match().step.size();
  call(name.c_str(), length == 0 ? 0 : begin_of_step(file), length);
}

int move_to_plain_place(const char* name) {
  Process& here = *process();
  const std::string plain = std::string(here.rules().prefix()) + "/" + name;
  const std::string place = here.files() + "/" + name;
  struct stat state;
  if (kernel::stat_at(AT_FDCWD, place.c_str(), state) != 0) return errno;
  // While the program runs, it has made each directory. It may be renaming this one, and must not
  // find it again under the old name: its call moves the file.
  const bool is_running = here.job() != nullptr;
  const int error = is_running ? 0 : make_parents("", plain.c_str());
  if (error != 0) return error;
  const std::size_t slash = plain.rfind('/');
  const Descriptor directory(kernel::open_at(AT_FDCWD, plain.substr(0, slash).c_str(),
                                             O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return is_running && errno == ENOENT ? EBUSY : errno;
  return move_file(place.c_str(), directory.number(), plain.c_str() + slash + 1,
                   Durability::synced);
}

void find_step(const char* name, std::size_t* begin, std::size_t* length) {
  const Match match = process()->rules().patterns.find(name);
  *begin = match.step.empty() ? 0 : static_cast<std::size_t>(match.step.data() - name);
  *length = match.step.size();
}

void job_lost() {
  if (Process* const here = process()) here->take_no_new_steps();
}

/// The directory of this library.
std::string own_directory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&own_directory), &info) == 0) return {};
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

struct Flavour {
  const char* soname;
  const char* name;
};

/// Those that Cairn is built for; the last one is none.
constexpr Flavour flavours[] = {CAIRN_MPI_FLAVOURS{nullptr, nullptr}};

/// The one whose MPI is loaded, in whatever scope and by whatever file name; null if none is.
/// Another MPI, even one with the same binary interface, would be loaded a second time.
const char* flavour_of_program() {
  for (const Flavour* one = flavours; one->name != nullptr; ++one)
    if (void* const loaded = dlopen(one->soname, RTLD_LAZY | RTLD_NOLOAD)) {
      dlclose(loaded);
      return one->name;
    }
  return nullptr;
}

using Start = decltype(cairn_wrapped_start);

/// Null, and one line, if there is no such library.
Start* load(Process& process) {
  const char* const flavour = flavour_of_program();
  static std::atomic<bool> once{false};
  if (flavour == nullptr) {
    process.say(once, nullptr,
                "Cairn is not built for the MPI of this program, so no step becomes a checkpoint");
    return nullptr;
  }
  const std::string path = own_directory() + "/libcairn-wrapped-" + flavour + ".so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const start = library == nullptr ? nullptr : dlsym(library, "cairn_wrapped_start");
  if (start == nullptr)
    process.say(once, nullptr,
                (std::string(dlerror()) + "; so no step becomes a checkpoint").c_str());
  return reinterpret_cast<Start*>(start);
}

}  // namespace

void start_job(Process& process) {
  if (process.is_dry_run() || process.job() != nullptr) return;
  Start* const start = load(process);
  if (start == nullptr) return;
  process.settle_files_set_aside();
  const cairn_wrapped_options options = {process.files().c_str(), move_to_plain_place, find_step,
                                         job_lost};
  if (const auto* const job = start(&options))
    process.begin_job(job);
  else
    stop_redirecting();
}

void finish_job(Process& process) {
  const auto* const job = process.end_job();
  if (job == nullptr) return;
  process.note_end_of_job(job->finish() != 0);
}

void abort_job(Process& process) {
  if (const auto* const job = process.end_job()) job->aborts();
}

NameText::NameText(std::string_view name) {
  PathText text = memory_.text();
  memory_.bytes[0] = '\0';
  text.assign(name);
}

void note_opened(Process& process, const Located& file, int flags) {
  const auto* const job = process.job();
  if (job == nullptr) return;
  const KeptErrno kept;
  with_name(file, [&](const char* name, std::size_t begin, std::size_t length) {
    job->opened(name, begin, length, (flags & O_TRUNC) != 0);
  });
}

Announcement::Announcement(Process& process, const Located& file, Content content)
    : job_(process.job()), name_(file.relative()) {
  if (job_ == nullptr) return;
  const KeptErrno kept;
  with_name(file, [&](const char* name, std::size_t begin, std::size_t length) {
    job_->changes(name, begin, length, content == Content::emptied);
  });
}

Announcement::~Announcement() {
  if (job_ == nullptr) return;
  const KeptErrno kept;
  job_->changed(name_.c_str());
}

/// It is announced first: a job that links the file later finds that it is being changed, and one
/// that has linked it before has done so by the time of the look below.
Change::Change(Process& process, const Located& file, Content content, Content announced)
    : process_(process), announcement_(process, file, announced) {
  const KeptErrno kept;
  if (!process.keeps_checkpoints()) return;
  // More than once only if the job of another process makes a checkpoint of the file just now.
  for (int attempt = 0; attempt < attempts_most && is_apart_; ++attempt) {
    if (has_second_name(file.place())) is_apart_ = separate(file, content);
    hold_writer(file.place());
    if (!has_second_name(file.place())) return;
    writer_.reset(-1);  // a file is copied only if no process writes to it
  }
}

/// Where no high number is free, the program needs the low one.
void Change::hold_writer(const char* place) {
  writer_.reset(at_high_number(
      kernel::open_at(AT_FDCWD, place, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)));
  if (writer_.number() < high_descriptor) writer_.reset(-1);
}

/// Gives the name a file of its own.
bool Change::separate(const Located& file, Content content) {
  int error = ENOMEM;
  try {
    error = make_own(process_.cache(), file.place(), content);
  } catch (const std::bad_alloc&) {
    // As where there is no space.
  }
  static std::atomic<bool> once{false};
  if (error != 0 && error != ENOENT)
    process_.say(once, file.name(),
                 "cannot be copied before it is changed; the checkpoint that has it is lost");
  return error == 0;
}

bool Change::is_outrun(int descriptor) const {
  const KeptErrno kept;
  struct stat state;
  return is_apart_ && kernel::stat_of(descriptor, state) == 0 && state.st_nlink > 1 &&
         process_.keeps_checkpoints();
}

void note_if_plain(Process& process, int directory, const char* path, int flags) {
  const auto* const job = process.job();
  if (job == nullptr) return;
  const KeptErrno kept;
  const Located file(process, directory, path);
  if (file.kind() != Kind::matched || !file.is_plain_there() || file.is_directory()) return;
  with_name(file, [&](const char* name, std::size_t begin, std::size_t length) {
    job->not_redirected(name, begin, length, (flags & O_TRUNC) != 0);
  });
}

void note_removed(Process& process, const Located& file) {
  const auto* const job = process.job();
  if (job == nullptr) return;
  const KeptErrno kept;
  job->removed(NameText(file.relative()).c_str());
}

void note_moved_out(Process& process, std::string_view name) {
  const auto* const job = process.job();
  if (job == nullptr) return;
  const KeptErrno kept;
  job->moved_out(NameText(name).c_str());
}

}  // namespace cairn::interpose
