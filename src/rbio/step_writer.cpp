#include "rbio/step_writer.hpp"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <mutex>

#include "rbio/done_page.hpp"

namespace cairn::rbio {
namespace {

constexpr std::chrono::seconds time_for_removal(30);

double seconds(TimePoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Of the data; a buffer also has bytes between the fields.
std::uint64_t bytes_of(const std::vector<Share>& shares) {
  std::uint64_t total = 0;
  for (const Share& share : shares)
    for (const std::uint64_t bytes : share.bytes) total += bytes;
  return total;
}

Error too_late(const WriteJob& job, double timeout_s) {
  return rbio::too_late(job.task.header.step, timeout_s);
}

}  // namespace

Error too_late(std::uint64_t step, double timeout_s) {
  return {
      Code::io,
      fmt::format("step {} is not written after {:.0f} s: the file system is too slow or hangs; "
                  "raise the option timeout, or lower the amount of data",
                  step, timeout_s),
      -1};
}

/// Owned by the thread too. Only the lock of `monitor` is ever held, and never during an operation
/// on files.
struct StepWriter::Shared {
  Shared(Services s, Settings t)
      : services(std::move(s)),
        settings(std::move(t)),
        directory(*services.files, settings.directory),
        monitor(services.threads->make_monitor()) {}

  void work();
  void carry_out(const WriteJob& job);
  Result<Publication> write(const WriteJob& job);
  void remove_older();
  Status pass(const WriteJob& job, std::uint64_t written);
  bool is_done(const WriteJob& job) const { return done >= job.number; }
  TimePoint now() const { return services.threads->now(); }
  TimePoint latest_end() const;
  /// With the lock.
  template <class Condition>
  bool wait(TimePoint limit, Condition is_true) {
    return wait_until(*services.threads, *monitor, limit, is_true);
  }

  const Services services;
  const Settings settings;
  SeriesDirectory directory;

  const std::unique_ptr<Monitor> monitor;
  // Guarded by it:
  std::deque<std::shared_ptr<const WriteJob>> queue;
  std::map<std::uint64_t, Result<Publication>> results;  ///< that wait() has not returned yet
  std::uint64_t done = 0;                                ///< number of the last job that is done
  std::uint64_t given_up = 0;                            ///< jobs up to this one must end
  std::uint64_t hurried = 0;                             ///< jobs up to this one make no pauses
  std::shared_ptr<const WriteJob> last_posted;
  bool is_stopping = false;
  bool has_ended = false;
  double write_s = 0;
  std::uint64_t written_bytes = 0;
  double pause_s = 0;
};

StepWriter::StepWriter(Services services, Settings settings)
    : shared_(std::make_shared<Shared>(std::move(services), std::move(settings))) {}

StepWriter::~StepWriter() { stop(); }

Status StepWriter::start() {
  if (!shared_->settings.is_threaded) return {};
  process_ = ::getpid();
  auto started = shared_->services.threads->start([shared = shared_] { shared->work(); });
  if (!started)
    return fail(Code::io, "cannot start the I/O thread of {}: {}; use the option mode=sync",
                shared_->settings.directory, started.error().text);
  thread_ = *std::move(started);
  return {};
}

void StepWriter::post(std::shared_ptr<WriteJob> job) {
  job->deadline = shared_->now() + std::chrono::duration_cast<TimePoint::duration>(
                                       std::chrono::duration<double>(shared_->settings.timeout_s));
  if (!thread_) return shared_->carry_out(*job);
  const std::scoped_lock lock(*shared_->monitor);
  shared_->last_posted = job;
  shared_->queue.push_back(std::move(job));
  shared_->monitor->notify_all();
}

bool StepWriter::is_done(const WriteJob& job) const {
  const std::scoped_lock lock(*shared_->monitor);
  return shared_->is_done(job);
}

bool StepWriter::is_late(const WriteJob& job) const {
  const std::scoped_lock lock(*shared_->monitor);
  return !shared_->is_done(job) && shared_->now() >= job.deadline;
}

Status StepWriter::failure_of(const WriteJob& job) const {
  const std::scoped_lock lock(*shared_->monitor);
  const auto result = shared_->results.find(job.number);
  if (result == shared_->results.end() || result->second) return {};
  return tl::unexpected(result->second.error());
}

bool StepWriter::wait_until_done(const WriteJob& job, TimePoint limit) {
  const std::scoped_lock lock(*shared_->monitor);
  shared_->hurried = std::max(shared_->hurried, job.number);
  shared_->monitor->notify_all();
  return shared_->wait(limit, [&] { return shared_->is_done(job); });
}

Result<Publication> StepWriter::take_result(const WriteJob& job) {
  const std::scoped_lock lock(*shared_->monitor);
  if (!shared_->is_done(job)) {
    shared_->given_up = std::max(shared_->given_up, job.number);
    return tl::unexpected(too_late(job, shared_->settings.timeout_s));
  }
  auto result = std::move(shared_->results.at(job.number));
  shared_->results.erase(job.number);
  return result;
}

void StepWriter::give_up(const WriteJob& job) {
  const std::scoped_lock lock(*shared_->monitor);
  shared_->given_up = std::max(shared_->given_up, job.number);
  shared_->monitor->notify_all();
}

bool StepWriter::stop() {
  if (!thread_) return true;
  const std::unique_ptr<StartedThread> thread = std::move(thread_);
  if (process_ != ::getpid()) {
    thread->detach();  // a child made by fork() has no such thread
    return true;
  }
  {
    const std::scoped_lock lock(*shared_->monitor);
    shared_->is_stopping = true;
    shared_->hurried = UINT64_MAX;
    shared_->monitor->notify_all();
    shared_->wait(shared_->latest_end(), [&] { return shared_->has_ended; });
    shared_->given_up = UINT64_MAX;
    if (!shared_->has_ended) {
      thread->detach();
      return false;
    }
  }
  thread->join();
  return true;
}

double StepWriter::write_s() const {
  const std::scoped_lock lock(*shared_->monitor);
  return shared_->write_s;
}

std::uint64_t StepWriter::written_bytes() const {
  const std::scoped_lock lock(*shared_->monitor);
  return shared_->written_bytes;
}

/// A thread that has nothing to write may still be removing old steps.
TimePoint StepWriter::Shared::latest_end() const {
  if (last_posted && !is_done(*last_posted)) return last_posted->deadline;
  return now() + time_for_removal;
}

void StepWriter::Shared::work() {
  std::unique_lock<Monitor> lock(*monitor);
  while (true) {
    wait(TimePoint::max(), [this] { return is_stopping || !queue.empty(); });
    if (queue.empty()) break;
    const std::shared_ptr<const WriteJob> job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    carry_out(*job);
    lock.lock();
  }
  has_ended = true;
  monitor->notify_all();
}

void StepWriter::Shared::carry_out(const WriteJob& job) {
  const TimePoint start = now();
  auto written = write(job);
  const std::uint64_t data_bytes = bytes_of(job.task.shares);
  {
    const std::scoped_lock lock(*monitor);
    write_s += seconds(now() - start) - std::exchange(pause_s, 0);
    if (written) written_bytes += data_bytes;
    if (given_up < job.number) results.emplace(job.number, written);
    done = job.number;
    job.buffer->is_used = false;
    if (settings.page) note_done(*settings.page, done, written ? Code::ok : written.error().code);
    monitor->notify_all();
  }
  if (written && *written == Publication::published) remove_older();
}

/// Without a thread, exceptions go to the caller. One that left the thread would end the process.
Result<Publication> StepWriter::Shared::write(const WriteJob& job) {
  const WriteGate gate = [&](std::uint64_t bytes) { return pass(job, bytes); };
  try {
    remove_failed_attempts(directory, job.failed, job.task.writers, services.log);
    return write_part(*services.files, directory, job.task, gate);
  } catch (const std::exception& error) {
    if (!settings.is_threaded) throw;
    return fail(Code::io, "the I/O thread cannot write step {}: {}", job.task.header.step,
                error.what());
  }
}

void StepWriter::Shared::remove_older() {
  try {
    remove_older_steps(directory, settings.keep, services.log);
  } catch (const std::exception& error) {
    if (!settings.is_threaded) throw;
    services.log.warning("{}; older steps stay until the next step is published", error.what());
  }
}

/// Before each piece. The thread pauses, so that the writing takes as long as it may; without a
/// thread all ranks would wait for that.
Status StepWriter::Shared::pass(const WriteJob& job, std::uint64_t written) {
  const double fraction = static_cast<double>(written) /
                          static_cast<double>(std::max<std::size_t>(job.task.buffer.size(), 1));
  const auto due = job.begun + std::chrono::duration_cast<TimePoint::duration>(
                                   std::chrono::duration<double>(job.paced_s * fraction));
  const TimePoint start = now();
  const std::scoped_lock lock(*monitor);
  wait(std::min(due, job.deadline), [&] {
    return !settings.is_threaded || given_up >= job.number || hurried >= job.number ||
           !queue.empty();
  });
  pause_s += seconds(now() - start);
  if (given_up >= job.number || now() >= job.deadline)
    return tl::unexpected(too_late(job, settings.timeout_s));
  return {};
}

}  // namespace cairn::rbio
