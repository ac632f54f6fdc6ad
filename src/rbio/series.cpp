#include "rbio/series.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <mutex>
#include <span>

#include "base/checksum.hpp"
#include "rbio/done_page.hpp"

namespace cairn::rbio {
namespace {

std::int64_t fingerprint(const std::vector<Field>& fields) {
  std::uint32_t sum = static_cast<std::uint32_t>(fields.size());
  for (const Field& field : fields) {
    const std::string text = fmt::format("{}\n{}\n{}\n", field.shape.name,
                                         dtype_of(field.shape.type), field.shape.components);
    sum = crc32c(std::as_bytes(std::span(text)), sum);
  }
  return sum;
}

Status check_options(const SeriesOptions& options) {
  if (!(options.timeout_s > 0))
    return fail(Code::bad_argument, "a timeout of {} s: give more than 0", options.timeout_s);
  if (!(options.pace >= 0 && options.pace <= 1))
    return fail(Code::bad_argument, "pace {}: give a fraction from 0 to 1", options.pace);
  return {};
}

TimePoint::duration seconds(double number) {
  return std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(number));
}

/// The lowest and highest over all ranks are equal.
bool is_equal_on_all(Communicator& comm, std::int64_t number) {
  std::array<std::int64_t, 2> bounds = {number, -number};
  comm.allreduce(bounds, Reduce::max);
  return bounds[0] == -bounds[1];
}

std::uint64_t bytes_of(const std::vector<Field>& fields) {
  std::uint64_t bytes = 0;
  for (const Field& field : fields) bytes += field.bytes();
  return bytes;
}

}  // namespace

Series::Series(Communicator& comm, Services services, std::string directory,
               const SeriesOptions& options)
    : comm_(comm),
      services_(std::move(services)),
      options_(options),
      directory_(*services_.files, std::move(directory)) {}

Result<std::unique_ptr<Series>> Series::open(Communicator& comm, Services services,
                                             const Placement& placement, std::string directory,
                                             const SeriesOptions& options) {
  CAIRN_TRY(agree(comm, check_options(options)));
  auto roles = assign_roles(placement.node_of_rank, options.group_size, options.files, comm.rank());
  CAIRN_TRY(agree(comm, roles ? Status{} : Status(tl::unexpected(roles.error()))));
  auto series =
      std::unique_ptr<Series>(new Series(comm, std::move(services), std::move(directory), options));
  series->roles_ = *std::move(roles);
  Status opened;
  if (comm.rank() == 0) {
    const auto generation = series->directory_.open_for_writing();
    if (generation)
      series->last_.generation = *generation;
    else
      opened = tl::unexpected(generation.error());
  }
  CAIRN_TRY(agree(comm, std::move(opened)));
  comm.bcast(mutable_bytes_of(series->last_.generation), 0);
  CAIRN_TRY(agree(comm, series->check_directory_is_shared(placement)));
  if (options.mode == Mode::collective) {
    CAIRN_TRY(agree(comm, series->start_writing_together(comm)));
  } else {
    CAIRN_TRY(agree(comm, series->start_writer(placement)));
  }
  return series;
}

/// Writers on a node that does not see the directory of rank 0 would write to one of their own. One
/// rank of each node looks, and every writer.
Status Series::check_directory_is_shared(const Placement& placement) {
  const auto& nodes = placement.node_of_rank;
  const auto my_place = nodes.begin() + comm_.rank();
  if (!roles_.is_writer && std::find(nodes.begin(), my_place, *my_place) != my_place) return {};
  constexpr double longest_s = 10;  // in which a name reaches another node
  constexpr std::chrono::milliseconds between_looks(100);
  const TimePoint limit = now() + seconds(std::min(longest_s, options_.timeout_s));
  const auto monitor = services_.threads->make_monitor();
  while (true) {
    const auto seen = directory_.visible_generation();
    if (seen && *seen == last_.generation) return {};
    if (!seen && seen.error().code != Code::not_found && seen.error().code != Code::corrupt)
      return tl::unexpected(seen.error());
    if (now() >= limit) break;
    const std::scoped_lock lock(*monitor);
    monitor->wait_until(now() + between_looks);
  }
  return fail(Code::io,
              "{}/{}/generation on this node is not the one that rank 0 has just written; the "
              "directory of a series must be shared by all nodes: check that its file system is "
              "mounted here",
              directory_.path(), work_directory);
}

Status Series::start_writer(const Placement& placement) {
  const auto node_of = [&](int rank) {
    return placement.node_of_rank[static_cast<std::size_t>(rank)];
  };
  const bool is_near = node_of(comm_.rank()) == node_of(roles_.group_ranks.front());
  hand_over_.emplace(services_.memory, is_near, services_.log);
  group_.emplace(comm_, roles_.group_ranks);
  share_page();
  const bool shares_buffers = roles_.is_writer && group_->size() > 1;
  pool_.emplace(shares_buffers ? services_.memory : nullptr, options_.memory_bytes, services_.log);
  if (!roles_.is_writer) return {};
  if (!page_) return fail(Code::no_space, "{}: no memory is left", directory_.path());
  writer_ = std::make_unique<StepWriter>(
      services_, StepWriter::Settings{options_.mode != Mode::sync, directory_.path(), options_.keep,
                                      options_.timeout_s, page_});
  return writer_->start();
}

/// On a member that cannot map it, page_ stays null, and the writer sends messages instead.
void Series::share_page() {
  std::unique_ptr<Segment> page, of_member;
  if (roles_.is_writer) {
    auto made = make_segment(group_->size() > 1 ? services_.memory.get() : nullptr, done_page_bytes,
                             services_.log);
    if (made) page = *std::move(made);
  }
  const std::vector<bool> is_mapped_by = hand_over_->share(*group_, page.get(), of_member);
  page_ = roles_.is_writer ? std::move(page) : std::move(of_member);
  std::vector<int> others;
  for (std::size_t member = 1; member < is_mapped_by.size(); ++member)
    if (!is_mapped_by[member]) others.push_back(static_cast<int>(member));
  notices_.send_to(std::move(others));
}

Status Series::start_writing_together(Communicator& comm) {
  CAIRN_ASSIGN(together_,
               CollectiveWriter::make(comm, services_, roles_, {directory_.path(), options_.keep}));
  return {};
}

Result<std::size_t> Series::add_field(const FieldShape& shape, std::byte* data,
                                      std::uint64_t count) {
  CAIRN_TRY(check_shape(shape));
  const bool is_known = std::any_of(fields_.begin(), fields_.end(), [&](const Field& field) {
    return field.shape.name == shape.name;
  });
  if (is_known)
    return fail(Code::bad_argument,
                "field {} is registered twice; set its data with rbio_set_field", shape.name);
  if (fields_.size() == most_fields)
    return fail(Code::bad_argument, "field {}: a series has at most {} fields", shape.name,
                most_fields);
  fields_.push_back({shape, nullptr, 0});
  const Status set = set_field(fields_.size() - 1, data, count);
  if (!set) {
    fields_.pop_back();
    return tl::unexpected(set.error());
  }
  return fields_.size() - 1;
}

Status Series::set_field(std::size_t field, std::byte* data, std::uint64_t count) {
  if (field >= fields_.size())
    return fail(Code::bad_argument, "field number {}: {} fields are registered", field,
                fields_.size());
  Field& known = fields_[field];
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50;
  if (count > most_bytes / known.shape.element_bytes())
    return fail(Code::bad_argument, "field {}: {} elements are more than a file can hold",
                known.shape.name, count);
  if (data == nullptr && count > 0)
    return fail(Code::bad_argument, "field {}: the data of {} elements are a null pointer",
                known.shape.name, count);
  known.data = data;
  known.count = count;
  return {};
}

Status Series::check_open() const {
  if (is_closed_) return fail(Code::wrong_state, "{} is closed", directory_.path());
  return {};
}

Result<Ticket> Series::begin(Communicator& comm, std::uint64_t step) {
  CAIRN_TRY(check_open());
  const TimePoint start = now();
  CAIRN_TRY(check_begin(comm, step));
  settle_done(comm);
  CAIRN_TRY(first_unreported());
  Group part(comm, roles_.part_ranks);
  StepPlan plan = plan_step(part, fields_, static_cast<std::uint32_t>(comm.rank()));
  if (together_) return write_together(comm, step, std::move(plan), start);
  std::vector<Share> shares = gather_shares(*group_, plan.mine);
  CAIRN_ASSIGN(StepMemory memory, take_memory(comm, shares));
  ++last_.sequence;
  BegunStep begun{ticket(), step, start + seconds(options_.timeout_s), nullptr, {}};
  if (roles_.is_writer) {
    complete(plan.header, step, comm.size());
    begun.job = make_job(plan.header, shares, memory.buffer);
    begun.job->begun = start;
    begun.job->paced_s = paced_s(start);
  }
  const TimePoint copying = now();
  begin_messages(plan.mine, shares, std::move(memory), begun.job);
  statistics_.copy_s += seconds_since(copying);
  return note_begun(std::move(begun), start);
}

Ticket Series::note_begun(BegunStep begun, TimePoint start) {
  unsettled_.push_back(std::move(begun));
  move_messages_on();
  ++statistics_.steps;
  statistics_.bytes += bytes_of(fields_);
  statistics_.begin_s += seconds_since(start);
  return ticket();
}

/// On return the data of the fields may be changed. In mode sync the writer has all data.
void Series::begin_messages(const Share& mine, const std::vector<Share>& shares, StepMemory memory,
                            std::shared_ptr<WriteJob> job) {
  if (!page_) notices_.expect_one(*group_);
  std::vector<Request> requests = hand_over_->bring(*group_, fields_, mine, shares, memory);
  if (options_.mode == Mode::sync) wait_all(*group_, requests);
  if (job)
    data_.add(std::move(requests), [this, job = std::move(job)] { hand_to_writer(job); });
  else
    data_.add(std::move(requests), [buffer = std::move(memory.buffer)] {
      if (buffer) buffer->is_used = false;
    });
}

void Series::hand_to_writer(const std::shared_ptr<WriteJob>& job) {
  posted_.push_back(job);
  writer_->post(job);
}

Ticket Series::write_together(Communicator& comm, std::uint64_t step, StepPlan plan,
                              TimePoint start) {
  ++last_.sequence;
  complete(plan.header, step, comm.size());
  const TimePoint deadline = start + seconds(options_.timeout_s);
  auto outcome = together_->write(comm,
                                  {std::move(plan.header), std::move(plan.mine), deadline,
                                   options_.timeout_s, std::exchange(failed_, {})},
                                  fields_);
  return note_begun({ticket(), step, deadline, nullptr, std::move(outcome)}, start);
}

/// With what only the series knows.
void Series::complete(PartHeader& header, std::uint64_t step, int ranks) const {
  header.step = step;
  header.attempt = last_;
  header.part = static_cast<std::uint32_t>(roles_.part());
  header.parts = static_cast<std::uint32_t>(roles_.parts);
  header.ranks = static_cast<std::uint32_t>(ranks);
}

std::shared_ptr<WriteJob> Series::make_job(const PartHeader& header, std::vector<Share> shares,
                                           std::shared_ptr<StepBuffer> buffer) {
  auto job = std::make_shared<WriteJob>();
  PartTask& task = job->task;
  task.header = header;
  task.writes_header = roles_.writes_header();
  task.is_direct = options_.is_direct;
  task.buffer = buffer->segment->bytes().first(BufferLayout(shares).bytes());
  task.shares = std::move(shares);
  task.writer = roles_.group;
  task.writers = roles_.groups;
  job->buffer = std::move(buffer);
  job->number = last_.sequence;
  job->failed = std::exchange(failed_, {});
  return job;
}

/// The sync at the end, and the next step, need their time too; half of the timeout is enough.
double Series::paced_s(TimePoint now) {
  const auto before = std::exchange(last_begin_, now);
  if (!before) return 0;
  const double interval_s = std::chrono::duration<double>(now - *before).count();
  return std::min(options_.pace * interval_s, options_.timeout_s / 2);
}

TimePoint Series::limit_of_wait() const { return now() + seconds(options_.timeout_s); }

Result<std::shared_ptr<StepBuffer>> Series::take_buffer(std::uint64_t bytes) {
  while (true) {
    move_messages_on();
    CAIRN_ASSIGN(auto buffer, pool_->take(bytes));
    if (buffer) return buffer;
    if (!wait_for_free_buffer())
      return fail(Code::io,
                  "no buffer is free: the file system, or a message between nodes, still holds a "
                  "step whose time is over; the program may go on, and try again later");
  }
}

/// Until the oldest step that has a buffer gives it back, or comes a step further. False if its
/// time is over before.
bool Series::wait_for_free_buffer() {
  if (!posted_.empty()) return wait_for_job(*posted_.front());
  return wait_for_messages(data_, data_.completed() + 1, limit_of_wait());
}

Result<StepMemory> Series::take_memory(Communicator& comm, const std::vector<Share>& shares) {
  const TimePoint start = now();
  StepMemory memory;
  Status mine = take_memory_here(shares, memory);
  const Status all = agree(comm, std::move(mine));
  statistics_.wait_s += seconds_since(start);
  if (all) return memory;
  if (memory.buffer) memory.buffer->is_used = false;
  settle_done(comm);
  CAIRN_TRY(first_unreported());
  return tl::unexpected(all.error());
}

/// Over the group. In mode sync all ranks are in begin() until the writer has their data, so they
/// send them from where they are.
Status Series::take_memory_here(const std::vector<Share>& shares, StepMemory& memory) {
  Status taken;
  const auto take = [&](std::uint64_t bytes) {
    auto buffer = take_buffer(bytes);
    if (buffer)
      memory.buffer = *std::move(buffer);
    else
      taken = tl::unexpected(std::move(buffer).error());
  };
  if (roles_.is_writer) take(BufferLayout(shares).bytes());
  const OfferedBuffer offered = hand_over_->map(*group_, memory.buffer.get(), pool_->ids());
  memory.mapped = offered.segment;
  const std::uint64_t bytes = bytes_of(fields_);
  const bool needs_copy =
      offered.exists && offered.segment == nullptr && bytes > 0 && options_.mode != Mode::sync;
  if (!roles_.is_writer && needs_copy) take(bytes);
  return taken;
}

Status Series::check_begin(Communicator& comm, std::uint64_t step) {
  Status mine;
  if (fields_.empty()) mine = fail(Code::bad_argument, "step {}: no field is registered", step);
  if (step > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    mine = fail(Code::bad_argument, "step {} is larger than 2^63 - 1", step);
  const auto is_empty = [](const Field& field) { return field.count == 0; };
  if (options_.mode == Mode::split && roles_.is_writer &&
      !std::all_of(fields_.begin(), fields_.end(), is_empty))
    mine = fail(Code::bad_argument,
                "step {}: in mode split a writer, the first rank of each group, has no data of its "
                "own; set its counts to 0, or use mode threaded",
                step);
  CAIRN_TRY(agree(comm, std::move(mine)));
  return check_same_fields(comm, "rbio_begin");
}

/// Before the first message of which the length depends on the fields.
Status Series::check_same_fields(Communicator& comm, std::string_view call) const {
  if (is_equal_on_all(comm, fingerprint(fields_))) return {};
  return fail(Code::differs,
              "{}: the ranks registered different fields; all ranks must register the same names, "
              "types and components in the same order",
              call);
}

Status Series::check_known(Ticket ticket) const {
  CAIRN_TRY(check_open());
  if (ticket >= 1 && ticket <= this->ticket()) return {};
  return fail(Code::bad_argument, "ticket {}: rbio_begin has not returned it for this series",
              ticket);
}

Result<bool> Series::is_finished(Ticket ticket) {
  CAIRN_TRY(check_known(ticket));
  // Looked at first: the messages then tell other nodes of each step that this call reports.
  const std::uint64_t done_here = page_ ? last_done(*page_) : 0;
  move_messages_on();
  const auto number = static_cast<std::uint64_t>(ticket);
  if (number <= settled()) return true;
  const BegunStep& begun = unsettled_[number - settled() - 1];
  if (begun.outcome || now() >= begun.deadline) return true;
  return (page_ ? done_here : notices_.received()) >= number;
}

Status Series::wait(Communicator& comm, Ticket ticket) {
  CAIRN_TRY(check_known(ticket));
  settle_until(comm, ticket);
  return outcome_of(ticket);
}

/// Steps of which the outcome is known on all ranks.
std::uint64_t Series::settled() const { return last_.sequence - unsettled_.size(); }

void Series::move_messages_on() {
  data_.progress();
  if (writer_) {
    std::erase_if(posted_, [&](const auto& job) { return writer_->is_done(*job); });
    notices_.send_up_to(*group_, std::max(settled(), last_done(*page_)),
                        [this](std::uint64_t number) { return outcome_in(*page_, number); });
  }
  notices_.progress();
}

/// Until the messages of so many steps are complete. The time is limited, as peers may be slow.
bool Series::wait_for_messages(const StepMessages& messages, std::uint64_t steps, TimePoint limit) {
  while (true) {
    move_messages_on();
    if (messages.completed() >= steps) return true;
    if (messages.is_empty() || now() >= limit) return false;
    comm_.idle();
  }
}

/// On a writer, until its time is over. Messages of other steps go on meanwhile.
bool Series::wait_for_job(const WriteJob& job) {
  constexpr std::chrono::milliseconds between_looks(5);
  while (true) {
    move_messages_on();
    const TimePoint look = now() + between_looks;
    if (writer_->wait_until_done(job, std::min(look, job.deadline))) return true;
    if (look >= job.deadline) return false;
  }
}

void Series::settle_until(Communicator& comm, Ticket last) {
  const TimePoint limit = limit_of_wait();
  while (!unsettled_.empty() && unsettled_.front().ticket <= last) {
    const BegunStep begun = unsettled_.front();
    const Status settled = settle(comm, begun, limit);
    unsettled_.pop_front();
    ++(settled ? statistics_.published : statistics_.failed);
    if (settled) continue;
    failures_[begun.ticket] = {settled.error(), false};
    if (comm.rank() == 0)
      failed_.push_back({{last_.generation, static_cast<std::uint64_t>(begun.ticket)}, begun.step});
  }
}

/// Those that all writers have done, and those up to the first one that has failed somewhere.
void Series::settle_done(Communicator& comm) {
  constexpr Ticket none = std::numeric_limits<Ticket>::max();
  std::array<Ticket, 2> done_and_failed = {ticket(), none};
  for (const BegunStep& begun : unsettled_) {
    if (!begun.job) break;
    const bool has_failed = writer_->is_late(*begun.job) || !writer_->failure_of(*begun.job);
    if (has_failed) done_and_failed[1] = begun.ticket;
    if (has_failed || !writer_->is_done(*begun.job)) {
      done_and_failed[0] = begun.ticket - 1;
      break;
    }
  }
  comm.allreduce(done_and_failed, Reduce::min);
  const auto [done, failed] = done_and_failed;
  settle_until(comm, failed == none ? done : failed);
}

/// On a writer; `limit` is for the data to arrive.
Result<Publication> Series::written(const WriteJob& job, TimePoint limit) {
  if (wait_for_messages(data_, job.number, limit)) {
    wait_for_job(job);
    return writer_->take_result(job);
  }
  writer_->give_up(job);
  return fail(Code::io,
              "step {}: its data have not arrived at their writer after {:.0f} s, although all "
              "ranks were in a call of rbIO; check the network between the nodes, or raise the "
              "option timeout",
              job.task.header.step, options_.timeout_s);
}

Status Series::settle(Communicator& comm, const BegunStep& begun, TimePoint limit) {
  Status mine;
  auto publication = Publication::by_others;
  if (begun.job || begun.outcome) {
    auto result = begun.outcome ? *begun.outcome : written(*begun.job, limit);
    if (result)
      publication = *result;
    else
      mine = tl::unexpected(std::move(result).error());
  }
  CAIRN_TRY(agree(comm, std::move(mine)));
  const auto best = allreduce(comm, static_cast<std::int64_t>(publication), Reduce::max);
  if (best == static_cast<std::int64_t>(Publication::published)) return {};
  return agree(comm, comm.rank() == 0 ? publish_late(begun) : Status{});
}

/// All writers have left their markers, and none has seen them all: the names of files may reach
/// another node late.
Status Series::publish_late(const BegunStep& begun) {
  const Attempt attempt{last_.generation, static_cast<std::uint64_t>(begun.ticket)};
  CAIRN_ASSIGN(const Publication publication,
               directory_.publish_if_complete(attempt, begun.step, roles_.groups));
  if (publication == Publication::published) {
    remove_older_steps(directory_, options_.keep, services_.log);
    return {};
  }
  if (services_.files->info(directory_.attempt_path(attempt, begun.step)))
    return fail(Code::io,
                "{}: all writers have finished step {}, and rank 0 does not see the files of all; "
                "the directory of a series must be shared by all nodes",
                directory_.path(), begun.step);
  return fail(Code::lost, "{}: step {} was removed or replaced by another process",
              directory_.path(), begun.step);
}

Status Series::close(Communicator& comm) {
  CAIRN_TRY(check_open());
  settle_until(comm, ticket());
  finish_messages();
  const bool has_stopped = !writer_ || writer_->stop();
  is_closed_ = true;
  std::shared_ptr<void> lock = directory_.release();
  // A thread that hangs may go on later: no other handle may write to the directory until then.
  if (allreduce(comm, has_stopped ? 1 : 0, Reduce::min) == 0)
    services_.threads->keep_until_exit(std::move(lock));
  return first_unreported();
}

/// All ranks are here, so that messages go on. What is still not complete keeps its memory.
void Series::finish_messages() {
  const TimePoint limit = limit_of_wait();
  wait_for_messages(data_, data_.added(), limit);
  wait_for_messages(notices_.messages(), notices_.messages().added(), limit);
  data_.leave_behind();
  notices_.messages().leave_behind();
}

Statistics Series::statistics() const {
  Statistics now = statistics_;
  if (writer_) now.write_s = writer_->write_s();
  if (writer_) now.written_bytes = writer_->written_bytes();
  if (pool_) now.peak_buffer_bytes = pool_->peak_bytes();
  if (together_) now.write_s = together_->write_s();
  if (together_) now.written_bytes = together_->written_bytes();
  return now;
}

}  // namespace cairn::rbio
