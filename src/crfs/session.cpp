#include "crfs/session.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

#include "crfs/background_process.hpp"
#include "crfs/kernel.hpp"
#include "crfs/mount_point.hpp"
#include "crfs/operations.hpp"
#include "crfs/passthrough.hpp"
#include "crfs/request_user.hpp"
#include "crfs/statistics.hpp"

namespace cairn {
namespace {

/// Idle threads that are kept for later requests; others end.
constexpr unsigned idle_threads = 10;

/// Raises a limit to `most`, or as far as this process may.
void raise_limit(__rlimit_resource_t what, rlim_t most) {
  rlimit limit = {};
  if (::getrlimit(what, &limit) != 0) return;
  const rlim_t highest = std::max(limit.rlim_max, most);
  const rlimit wanted = {highest, highest};
  if (::setrlimit(what, &wanted) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(what, &limit);
}

/// The daemon must be able to write all that programs may write, whatever its own limits are. And
/// an error of one file, or a closed stderr, must not end it and lose the data of all other files.
void serve_without_limits() {
  rlim_t files = 0;  // each file that the kernel knows has a descriptor here
  std::ifstream("/proc/sys/fs/nr_open") >> files;
  raise_limit(RLIMIT_NOFILE, files);
  raise_limit(RLIMIT_FSIZE, RLIM_INFINITY);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
}

/// Drops CAP_SYS_RESOURCE, so that hard quotas apply to what the daemon writes for users.
void have_quotas_hold() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights[2] = {};
  if (::syscall(SYS_capget, &header, rights) != 0) return;
  rights[0].effective &= ~(std::uint32_t{1} << CAP_SYS_RESOURCE);
  rights[0].permitted &= ~(std::uint32_t{1} << CAP_SYS_RESOURCE);
  (void)::syscall(SYS_capset, &header, rights);
}

/// When the daemon allocates memory, the kernel must not wait for writes that need the daemon.
void be_an_io_flusher() {
#ifdef PR_SET_IO_FLUSHER
  (void)::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
#endif
}

sigset_t signals_that_end() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

Result<Descriptor> open_root(const MountOptions& options) {
  Descriptor root(::open(options.backing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root.number() < 0)
    return tl::unexpected<Error>(errno_error(errno, "open the backing directory", options.backing));
  CAIRN_TRY(check_mount_point(root, options.backing, options.mountpoint));
  return root;
}

/// `text` as the value of a mount option, where a comma would end it.
std::string escaped(const std::string& text) {
  std::string value;
  for (const char letter : text) {
    if (letter == ',' || letter == '\\') value += '\\';
    value += letter;
  }
  return value;
}

/// The arguments of libfuse.
class FuseArguments {
 public:
  explicit FuseArguments(const MountOptions& options) {
    add("crfs");
    add("-ofsname=" + escaped(options.backing) + ",subtype=crfs,default_permissions");
    // The cache of checkpoint files belongs to one user.
    if (::geteuid() == 0 && !options.scr) add("-oallow_other");
    for (const std::string& option : options.mount_options) add("-o" + option);
  }
  ~FuseArguments() { fuse_opt_free_args(&arguments_); }
  FuseArguments(const FuseArguments&) = delete;
  FuseArguments& operator=(const FuseArguments&) = delete;

  fuse_args* get() { return &arguments_; }

 private:
  void add(const std::string& word) { fuse_opt_add_arg(&arguments_, word.c_str()); }

  fuse_args arguments_ = FUSE_ARGS_INIT(0, nullptr);
};

struct EndSession {
  void operator()(fuse_session* session) const {
    fuse_session_unmount(session);
    fuse_session_destroy(session);
  }
};
using Session = std::unique_ptr<fuse_session, EndSession>;

/// Waits for a signal that ends the mount, as long as this lives.
class SignalWatch {
 public:
  explicit SignalWatch(FileSystem& files)
      : thread_([&files, loop = ::pthread_self()] { watch(files, loop); }) {}
  ~SignalWatch() {
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  static void watch(FileSystem& files, pthread_t loop) {
    const sigset_t signals = signals_that_end();
    int signal = 0;
    sigwait(&signals, &signal);
    if (fuse_session_exited(files.session) != 0) return;
    files.take_from_kernel();  // while the daemon still serves requests
    fuse_session_exit(files.session);
    ::pthread_kill(loop, SIGUSR1);  // the loop waits for its threads, and checks the exit flag
                                    // again when interrupted
  }

  std::thread thread_;
};

/// Serves requests until the mount ends; 0, or the errno that ended it unexpectedly.
int serve(FileSystem& files) {
  struct sigaction interrupt = {};
  interrupt.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &interrupt, nullptr);
  // One thread per request, as a write may wait for memory, and a close for the backing directory.
  const auto threads = static_cast<unsigned>(files.options.fuse_threads);
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_clone_fd(config, 1);
  fuse_loop_cfg_set_max_threads(config, threads);
  fuse_loop_cfg_set_idle_threads(config, std::min(threads, idle_threads));
  int error = 0;
  {
    const SignalWatch watch(files);
    error = fuse_session_loop_mt(files.session, config);
    fuse_session_exit(files.session);  // SignalWatch checks this also if the loop ended by itself
  }
  fuse_loop_cfg_destroy(config);
  return error < 0 ? -error : files.receive_error.load();
}

std::string report_of(const FileSystem& files) {
  const MountOptions& options = files.options;
  std::string report;
  const MountStatistics statistics = files.statistics();
  if (options.stats) report += options.json ? json_of(statistics) : text_of(statistics);
  if (options.profile) report += options.json ? files.profile.json() : files.profile.text();
  return report;
}

void write_report(const FileSystem& files, const Log& log) {
  const std::string report = report_of(files);
  const std::string& path = files.options.stats_file;
  if (report.empty()) return;
  if (path.empty()) {
    std::cerr << report << std::flush;
    return;
  }
  std::ofstream out(path);
  out << report << std::flush;
  if (!out) log.error("cannot write {}: {}", path, std::strerror(errno));
}

/// True if no data were lost.
bool report_errors(const FileSystem& files, const Log& log) {
  const auto lost = files.unreported.all();
  for (const UnreportedErrors::Lost& one : lost)
    log.error("{}: data written to this file are lost: {}; write the file again", one.file,
              std::strerror(-one.error));
  return lost.empty();
}

Result<Session> mount(FileSystem& files) {
  const MountOptions& options = files.options;
  const fuse_lowlevel_ops operations = make_operations();
  FuseArguments arguments(options);
  Session session(fuse_session_new(arguments.get(), &operations, sizeof operations, &files));
  if (!session)
    return fail(Code::bad_argument,
                "libfuse does not know a mount option (see the line above); correct -o");
  files.session = session.get();
  files.promises.want_passthrough(wants_passthrough(options, files.inodes.root().path));
  if (fuse_session_mount(session.get(), options.mountpoint.c_str()) != 0)
    return fail(Code::io, "cannot mount {} (see the line above)", options.mountpoint);
  watch_first_request(session.get());
  return session;
}

/// For lines from any thread. In the background only problems are logged.
Log log_of_job(const MountOptions& options, const BackgroundProcess& background) {
  return Log(
      [foreground = options.foreground, &background](Severity severity, const std::string& text) {
        if (severity == Severity::info && foreground) background.log().info("{}", text);
        if (severity == Severity::warning) background.log().warning("{}", text);
        if (severity == Severity::error) background.log().error("{}", text);
      });
}

/// 0, or the errno that ended the mount unexpectedly. Nothing, and a line of the log, if it cannot
/// be mounted. `job` may be null.
std::optional<int> mount_and_serve(FileSystem& files, BackgroundProcess& background,
                                   RedirectingJob* job) {
  const MountOptions& options = files.options;
  const auto session = mount(files);
  if (!session) {
    background.log().error("{}", session.error().text);
    return {};
  }
  files.complain = [&](const std::string& text) { background.log().error("{}", text); };
  tune_cache(options.mountpoint);
  if (::geteuid() == 0 && may_squash_root(files.inodes.root().path))
    background.log().warning(
        "{} is NFS or Lustre: if its server squashes root (root_squash), programs cannot use "
        "private files through this mount; let each user mount a directory of their own, see "
        "crfs(1)",
        options.backing);
  background.begin();
  const int error = serve(files);
  files.drain();
  if (job != nullptr) job->finish();
  return error;
}

int serve_mount(const MountOptions& options, Descriptor root, BackgroundProcess& background,
                const StartJob& start_job) {
  serve_without_limits();
  be_an_io_flusher();
  have_quotas_hold();
  const sigset_t signals = signals_that_end();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::unique_ptr<RedirectingJob> job;
  if (options.scr) {
    auto started = start_job(options, log_of_job(options, background));
    if (!started) {
      background.log().error("{}", started.error().text);
      return 1;
    }
    job = *std::move(started);
  }
  FileSystem files(options, std::move(root));
  if (job) files.redirection = &job->redirection();
  const auto error = mount_and_serve(files, background, job.get());
  if (!error) return 1;
  write_report(files, background.log());
  if (*error != 0)
    background.log().error("{}: the mount ended unexpectedly: {}", options.mountpoint,
                           std::strerror(*error));
  return report_errors(files, background.log()) && *error == 0 ? 0 : 1;
}

}  // namespace

int run_mount(const MountOptions& options, const StartJob& start_job) {
  BackgroundProcess background(options.foreground);
  auto root = open_root(options);
  if (!root) {
    background.log().error("{}", root.error().text);
    return 1;
  }
  if (const auto parent = background.fork()) return *parent;
  return serve_mount(options, *std::move(root), background, start_job);
}

}  // namespace cairn
