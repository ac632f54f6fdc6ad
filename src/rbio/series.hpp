// A series of steps that a program writes and restores: what rbio.h gives to programs.
//
// The ranks of a group hand their data to one of them, the writer. It writes large contiguous
// pieces to the file of its part. A step is restored only once all parts are durable.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/group.hpp"
#include "rbio/buffer_pool.hpp"
#include "rbio/collective_writer.hpp"
#include "rbio/done_notices.hpp"
#include "rbio/field.hpp"
#include "rbio/hand_over.hpp"
#include "rbio/restore.hpp"
#include "rbio/roles.hpp"
#include "rbio/series_directory.hpp"
#include "rbio/services.hpp"
#include "rbio/step_messages.hpp"
#include "rbio/step_writer.hpp"
#include "rbio/write_part.hpp"
#include "topology/placement.hpp"

namespace cairn::rbio {

/// The files are the same in all modes.
enum class Mode : int {
  threaded = 1,    ///< a thread of the writer writes while all ranks go on
  split = 2,       ///< as threaded, but the writers compute nothing: their counts must be 0
  sync = 3,        ///< the writer writes before begin() returns on it
  collective = 4,  ///< all ranks write, before begin() returns, through MPI-IO
};

struct SeriesOptions {
  Mode mode = Mode::threaded;
  int group_size = 0;              ///< ranks; 0: those of a node
  int files = 0;                   ///< per step; 0: one per group
  std::uint64_t memory_bytes = 0;  ///< limit of a rank for its buffers; 0: two of any size
  std::size_t keep = 0;            ///< newest steps that are kept; 0: all
  /// A step has failed that is not written so long after its writer has the data, or whose data
  /// do not arrive although all ranks have been in a collective call for so long.
  double timeout_s = 600;
  /// Writing is spread over this fraction of the time between two steps; 0: as fast as possible.
  double pace = 0.8;
  /// Large fields go to the device past the page cache, where the file system allows it.
  bool is_direct = true;
};

/// Of this rank since the series was opened.
struct Statistics {
  std::uint64_t steps = 0;              ///< begun
  std::uint64_t published = 0;          ///< of these, as far as all ranks know the outcome
  std::uint64_t failed = 0;             ///< likewise
  std::uint64_t bytes = 0;              ///< that this rank handed over
  double begin_s = 0;                   ///< in begin(), of which
  double copy_s = 0;                    ///< handing data over
  double wait_s = 0;                    ///< until all ranks had a buffer
  std::uint64_t written_bytes = 0;      ///< on a writer; in mode collective all ranks are writers
  double write_s = 0;                   ///< on a writer: writing and syncing, without pauses
  std::uint64_t peak_buffer_bytes = 0;  ///< most that this rank's buffers had together
};

/// Names a step that was begun: 1, 2 and so on, equal on all ranks.
using Ticket = std::int64_t;

/// An error of a step comes back from wait() of its ticket, and once from the next begin() or
/// close(), if none of these has returned it before. The step before stays as it is.
///
/// All calls, also local ones, are made by one thread and use the communicator of open().
class Series {
 public:
  /// Takes the directory for writing; busy while another run has it. Fails alike on all ranks.
  /// `comm` must outlive the series.
  static Result<std::unique_ptr<Series>> open(Communicator& comm, Services services,
                                              const Placement& placement, std::string directory,
                                              const SeriesOptions& options);

  /// Local. All ranks add the same fields in the same order; returns the index. The data must stay
  /// until the field is set anew.
  Result<std::size_t> add_field(const FieldShape& shape, std::byte* data, std::uint64_t count);
  /// Local.
  Status set_field(std::size_t field, std::byte* data, std::uint64_t count);

  /// On return the data of the fields may be changed. Fails alike on all ranks, also with the error
  /// of an earlier step; the step then is not begun. `step` must be the same on all ranks.
  Result<Ticket> begin(Communicator& comm, std::uint64_t step);
  /// Local: the bytes of this rank's group are durable, the step has failed, or so much time has
  /// passed since begin() that only wait() should be asked. bad_argument for a number that is no
  /// ticket. Does what progress() does.
  Result<bool> is_finished(Ticket ticket);
  /// Waits until the step is published, or returns why it is not; the same on all ranks. In mode
  /// threaded at most until its time is over. After an error of the time or of the publication
  /// itself, a step that all writers have finished may still be published, whole, by the next open.
  /// `ticket` must be the same on all ranks.
  Status wait(Communicator& comm, Ticket ticket);
  /// Waits for all steps as wait() does, and releases the directory. A thread that a file system
  /// holds is left to itself, and then the directory stays busy until the process ends. Messages
  /// that are not complete when their time is over are left behind too.
  /// Nothing else may be called afterwards.
  Status close(Communicator& comm);
  /// Local. The error of the step, as soon as this rank knows that its group's writer has failed.
  /// It counts as printed, and begin(), wait() and close() return it all the same.
  Status failure_of(Ticket ticket);
  /// Local. Moves messages between nodes on. A writer begins with a step that has such messages
  /// only in one of the calls of this series. Returns what failure_of() does, for the first step
  /// whose error no call has returned on this rank.
  Status progress();
  /// Local. Only moves messages on.
  void move_messages_on();
  /// Local.
  Statistics statistics() const;

  /// Fills the fields from `step`, or from the newest one that is whole; returns which it was.
  /// not_found if there is no such step; for the newest one: no step at all. corrupt if there are
  /// steps, and none of them is whole; the error of reading if one cannot be read now, as it may be
  /// the newest; differs if the ranks registered different fields.
  /// Waits for all steps that were begun, as the next two do.
  Result<std::uint64_t> restore(Communicator& comm, std::optional<std::uint64_t> step);
  /// not_found if there is no such step.
  Result<StepIndex> index_of(Communicator& comm, std::uint64_t step);
  /// Of the newest step whose tables are whole; otherwise as restore().
  Result<StepIndex> index_of_newest(Communicator& comm);
  /// In the order in which they were written, without those that are damaged. corrupt if there are
  /// steps, and all are damaged; the error of reading if one may be newer, and cannot be read now.
  Result<std::vector<std::uint64_t>> steps(Communicator& comm);

 private:
  struct BegunStep {
    Ticket ticket = 0;
    std::uint64_t step = 0;
    TimePoint deadline;                          ///< of is_finished()
    std::shared_ptr<WriteJob> job;               ///< on a writer
    std::optional<Result<Publication>> outcome;  ///< in mode collective: of this rank
  };

  struct Failure {
    Error error;
    bool is_reported = false;
  };

  Series(Communicator& comm, Services services, std::string directory,
         const SeriesOptions& options);
  Ticket ticket() const { return static_cast<Ticket>(last_.sequence); }
  TimePoint now() const { return services_.threads->now(); }
  double seconds_since(TimePoint start) const {
    return std::chrono::duration<double>(now() - start).count();
  }
  Status check_open() const;
  Status check_begin(Communicator& comm, std::uint64_t step);
  Status check_same_fields(Communicator& comm, std::string_view call) const;
  Status check_known(Ticket ticket) const;
  Status check_directory_is_shared(const Placement& placement);
  Status start_writer(const Placement& placement);
  Status start_writing_together(Communicator& comm);
  void share_page();
  TimePoint limit_of_wait() const;
  Result<std::shared_ptr<StepBuffer>> take_buffer(std::uint64_t bytes);
  bool wait_for_free_buffer();
  /// Waits until all ranks have the memory that they need for the step.
  Result<StepMemory> take_memory(Communicator& comm, const std::vector<Share>& shares);
  Status take_memory_here(const std::vector<Share>& shares, StepMemory& memory);
  void begin_messages(const Share& mine, const std::vector<Share>& shares, StepMemory memory,
                      std::shared_ptr<WriteJob> job);
  void hand_to_writer(const std::shared_ptr<WriteJob>& job);
  std::shared_ptr<WriteJob> make_job(const PartHeader& header, std::vector<Share> shares,
                                     std::shared_ptr<StepBuffer> buffer);
  /// Of a step that is in the memory of its writers, or written.
  Ticket note_begun(BegunStep begun, TimePoint start);
  Ticket write_together(Communicator& comm, std::uint64_t step, StepPlan plan, TimePoint start);
  void complete(PartHeader& header, std::uint64_t step, int ranks) const;
  double paced_s(TimePoint now);
  void settle_done(Communicator& comm);
  /// Makes the outcome of steps known on all ranks, in the order in which they were begun.
  void settle_until(Communicator& comm, Ticket last);
  Status settle(Communicator& comm, const BegunStep& begun, TimePoint limit);
  Status publish_late(const BegunStep& begun);
  Result<Publication> written(const WriteJob& job, TimePoint limit);
  std::uint64_t settled() const;
  bool wait_for_messages(const StepMessages& messages, std::uint64_t steps, TimePoint limit);
  bool wait_for_job(const WriteJob& job);
  void finish_messages();
  Status known_failure(const BegunStep& begun) const;
  Status outcome_of(Ticket ticket);
  Status first_unreported();
  Error all_are_damaged() const;
  Error removed_meanwhile(std::uint64_t step) const;
  Error error_of_reading(Communicator& comm, std::uint64_t step, Error error);
  Status check_existence(std::uint64_t step);
  Status restore_one(Communicator& comm, std::uint64_t step);

  Communicator& comm_;
  const Services services_;
  const SeriesOptions options_;
  SeriesDirectory directory_;
  Roles roles_;
  std::vector<Field> fields_;
  bool is_closed_ = false;
  Attempt last_;                     ///< its sequence is the last ticket
  std::deque<BegunStep> unsettled_;  ///< whose outcome is not yet known on all ranks
  std::map<Ticket, Failure> failures_;
  std::set<Ticket> returned_;  ///< those of failed steps whose errors a call has returned here
  Statistics statistics_;

  std::optional<Group> group_;
  std::optional<HandOver> hand_over_;
  std::shared_ptr<Segment> page_;  ///< last_done(); null if this rank cannot map it
  DoneNotices notices_;
  std::optional<BufferPool> pool_;  ///< on other ranks than writers: for what they send
  StepMessages data_;               ///< on a writer: what it gets of each step, else what is sent

  std::vector<FailedAttempt> failed_;           ///< on rank 0, for the next step
  std::unique_ptr<CollectiveWriter> together_;  ///< in mode collective, instead of what follows

  // On a writer:
  std::unique_ptr<StepWriter> writer_;
  std::deque<std::shared_ptr<const WriteJob>> posted_;  ///< those that are not done
  std::optional<TimePoint> last_begin_;
};

}  // namespace cairn::rbio
