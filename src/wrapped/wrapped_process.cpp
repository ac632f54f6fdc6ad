#include "wrapped/wrapped_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/blocked_signals.hpp"
#include "files/posix_files.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t channel = 1;
constexpr std::uint32_t private_file = 0600;
constexpr std::chrono::milliseconds longest_farewell(100);
constexpr std::chrono::milliseconds farewell_step(5);

/// Of the directory in which a store is, or will be made.
Result<FileInfo> nearest_existing(Files& files, std::string path) {
  while (true) {
    auto info = files.info(path + "/.");  // a symbolic link counts as what it leads to
    if (info || info.error().code != Code::not_found || path.empty()) return info;
    path = path.substr(0, path.rfind('/'));
  }
}

}  // namespace

std::unique_ptr<WrappedProcess> WrappedProcess::start(Communicator& world, Log log,
                                                      const ResolvedSettings& settings,
                                                      Options options) {
  std::unique_ptr<WrappedProcess> made(new WrappedProcess(std::move(log), std::move(options)));
  made->shared_log_ = world.rank() == 0 ? made->log_ : Log();
  const Status ready = made->prepare(world, settings);
  if (!ready) {
    made->shared_log_.warning(
        "the program runs without checkpoints of Cairn, and writes its files where it means to: {}",
        ready.error().text);
    return nullptr;
  }
  const BlockedSignals blocked;
  made->thread_ = std::thread([process = made.get()] { process->work(); });
  return made;
}

/// Errors are the same on all ranks.
Status WrappedProcess::prepare(Communicator& world, const ResolvedSettings& settings) {
  files_ = make_posix_files();
  clock_ = make_system_clock();
  background_ = make_background_thread();
  CAIRN_TRY(agree(world, check_places(settings.settings)));
  PeerNetworkOptions peers;
  peers.place = settings.settings.node_name;
  CAIRN_ASSIGN(network_, PeerNetwork::open(world, peers));
  comm_ = network_->begin(channel);
  try {
    CAIRN_ASSIGN(session_,
                 Session::init({*comm_, *files_, *clock_, *background_, log_}, settings.settings));
    announced_.begin(*comm_, *files_, *clock_, log_, session_->placement(), settings);
    return restore(settings.settings.prefix);
  } catch (const TransportFailed& failure) {
    return tl::unexpected(failure.error());
  }
}

/// That a file can have a second name in every store, and shows whether it is closed.
Status WrappedProcess::check_places(const Settings& settings) {
  CAIRN_TRY(make_folders(*files_, options_.redirected, 0700));
  CAIRN_ASSIGN(const FileInfo here, files_->info(options_.redirected));
  for (const StoreSettings& store : settings.stores) {
    const auto there = nearest_existing(*files_, store.path);
    if (store.enabled && there && there->id.file_system != here.id.file_system)
      return fail(Code::bad_setting,
                  "{} and the store {} are on different file systems, so a redirected file cannot "
                  "become a part of a checkpoint; choose a cache below {}",
                  options_.redirected, store.path, store.path);
  }
  const std::string probe = options_.redirected + "/.probe." + std::to_string(getpid());
  Result<Writer> writer = Writer::none;
  {
    CAIRN_ASSIGN(const auto file, files_->create(probe, private_file));
    writer = files_->find_writer(probe);
  }
  CAIRN_TRY(files_->remove_file(probe));
  if (writer && *writer == Writer::this_process) return {};
  return fail(Code::bad_setting,
              "the file system of {} does not show whether a file is open (it has no leases), so "
              "Cairn cannot know when a checkpoint file is complete; choose a cache on another one",
              options_.redirected);
}

Status WrappedProcess::restore(const std::string& prefix) {
  job_ = std::make_unique<WrappedJob>(
      WrappedJob::Environment{*session_, *files_, log_, shared_log_, prefix, options_.redirected,
                              options_.move_to_plain_place, options_.find_step});
  CAIRN_ASSIGN(const auto from, job_->restore(*comm_));
  if (from) shared_log_.info("the program finds {} as its newest checkpoint of Cairn", *from);
  return {};
}

void WrappedProcess::work() {
  try {
    look_until_the_end();
  } catch (const TransportFailed& failure) {
    has_failed_ = true;
    report_end(failure.error().text);
  } catch (const std::exception& error) {
    report_end(error.what());
  }
  has_ended_ = true;
}

void WrappedProcess::look_until_the_end() {
  while (!job_->round(*comm_)) {
    if (stops_) return;
    if (job_->has_missed()) {
      network_->leave(longest_farewell);  // the others would wait for this rank
      return report_end("there is no memory for the names of the program's files");
    }
    std::this_thread::sleep_for(job_->is_step_under_way() ? options_.short_pause : options_.pause);
  }
  const Status ended = session_->finalize();
  if (!ended && !ended.error().is_reported) shared_log_.warning("{}", ended.error().text);
  background_->wait();
  job_->clean_up();
  if (comm_->rank() == 0 && !session_->is_held()) announced_.end(*files_, *clock_, log_);
}

/// Once for each rank, unless this process itself is ending.
void WrappedProcess::report_end(const std::string& why) {
  if (stops_) return;
  options_.job_lost();
  log_.warning(
      "the program goes on, but no step becomes a checkpoint any more, and files of later steps go "
      "where the program means them to be: {}{}",
      why,
      has_lost_rank() ? ". As a rank has died, " + fate_of_waiting_files(options_.redirected) : "");
}

std::string fate_of_waiting_files(const std::string& directory) {
  return fmt::format(
      "files in {} that are in no checkpoint stay there: the next run removes them if it restores "
      "a checkpoint, and otherwise moves them to their places",
      directory);
}

bool WrappedProcess::finish() {
  job_->ended();
  if (thread_.joinable()) thread_.join();
  const bool has_all_ranks = !has_lost_rank();  // ranks that end below are none of the lost
  if (session_->is_held()) leave_session();
  session_.reset();
  comm_.reset();
  const Status closed = network_->close();
  if (!closed) log_.info("{}", closed.error().text);
  return has_all_ranks;
}

/// A thread hangs in a call of the file system, and uses all of this until the process ends.
void WrappedProcess::leave_session() {
  (void)session_.release();
  (void)files_.release();
  (void)clock_.release();
  (void)background_.release();
}

void WrappedProcess::leave() {
  if (!thread_.joinable()) return;
  stops_ = true;
  network_->leave(longest_farewell);
  for (auto waited = longest_farewell * 0; !has_ended_; waited += farewell_step) {
    if (waited >= longest_farewell) return thread_.detach();
    std::this_thread::sleep_for(farewell_step);
  }
  thread_.join();
}

WrappedProcess::~WrappedProcess() {
  if (!thread_.joinable()) return;
  stops_ = true;
  network_->leave();
  thread_.join();
}

}  // namespace cairn
