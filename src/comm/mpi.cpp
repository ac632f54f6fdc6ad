#include "comm/mpi.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "base/log.hpp"

namespace cairn {
namespace {

/// A message too long for one count becomes a count that MPI refuses, by its handler.
int count_of(std::size_t bytes) {
  return bytes <= Communicator::max_message_bytes ? static_cast<int>(bytes) : -1;
}

class MpiRequest final : public PendingMessage {
 public:
  enum class Kind { send, receive };

  explicit MpiRequest(Kind kind) : kind_(kind) {}
  MpiRequest(const MpiRequest&) = delete;
  MpiRequest& operator=(const MpiRequest&) = delete;

  // Unwaited only while an exception unwinds. A receive can be taken back; a send cannot in every
  // MPI, so it is let go, and at worst a peer gets bytes from a buffer that is no more.
  ~MpiRequest() override {
    if (request == MPI_REQUEST_NULL) return;
    if (kind_ == Kind::send) {
      MPI_Request_free(&request);
    } else {
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }

  bool test() override {
    int complete = 0;
    MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    return complete != 0;
  }

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  const Kind kind_;
};

void finish(Communicator& comm, MPI_Request request) {
  for (int complete = 0; !complete;) {
    MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    if (!complete) comm.idle();
  }
}

MPI_Op mpi_op(Reduce op) {
  switch (op) {
    case Reduce::sum:
      return MPI_SUM;
    case Reduce::min:
      return MPI_MIN;
    case Reduce::max:
      return MPI_MAX;
  }
  return MPI_OP_NULL;
}

}  // namespace

MpiFamily mpi_family_built_for() {
#if defined(OPEN_MPI)
  return MpiFamily::open_mpi;
#elif defined(MPICH_VERSION) || defined(MPICH_NAME) || defined(I_MPI_VERSION) || \
    defined(MVAPICH2_VERSION)
  return MpiFamily::mpich;
#else
  return MpiFamily::unknown;
#endif
}

std::string mpi_library_version() {
  // The length that mpi.h names is that of the MPI compiled for; another one may write more.
  constexpr std::size_t enough_for_any_mpi = 64 << 10;
  std::string text(enough_for_any_mpi, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(std::max(length, 0)));
  return text;
}

MpiCommunicator::MpiCommunicator(MPI_Comm parent, std::shared_ptr<NeighbourWatch> neighbour)
    : neighbour_(std::move(neighbour)) {
  MPI_Comm_rank(parent, &rank_);
  MPI_Comm_size(parent, &size_);
  // A blocking call of more ranks than cores takes tens of milliseconds in some MPIs.
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request;
  MPI_Comm_idup(parent, &made, &request);
  finish(*this, request);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_ARE_FATAL);
  comm_ = made;
}

MpiCommunicator::~MpiCommunicator() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm_);
}

Request MpiCommunicator::isend(Bytes data, int to, int tag) {
  vain_looks_ = 0;
  auto message = std::make_unique<MpiRequest>(MpiRequest::Kind::send);
  MPI_Isend(data.data(), count_of(data.size()), MPI_BYTE, to, tag, comm_, &message->request);
  return message;
}

Request MpiCommunicator::irecv(MutableBytes buffer, int from, int tag) {
  vain_looks_ = 0;
  auto message = std::make_unique<MpiRequest>(MpiRequest::Kind::receive);
  MPI_Irecv(buffer.data(), count_of(buffer.size()), MPI_BYTE, from, tag, comm_, &message->request);
  return message;
}

// Ranks that share cores would take them from those that still work, one yield after the other;
// so who has waited in vain for long enough sleeps between looks.
void MpiCommunicator::idle() {
  constexpr int patience_looks = 100;
  constexpr useconds_t nap_us = 20;
  if (while_waiting_) while_waiting_();
  if (++vain_looks_ < patience_looks) {
    sched_yield();
    return;
  }
  if (failure_) end_job_on_error(failure_());
  if (neighbour_) end_job_on_error(neighbour_->failure());
  usleep(nap_us);
}

/// A new one may take seconds, where the network between the machines allows no connection.
void MpiCommunicator::end_job_on_neighbour(const std::string& place) {
  if (cairn::allreduce(*this, neighbour_ ? 1 : 0, Reduce::min) == 1) return;
  neighbour_ = std::make_shared<NeighbourWatch>(*this, place);
}

/// One rank reports it, and with that the job ends. If that rank is in no call, the others do so.
void MpiCommunicator::end_job_on_error(const Status& failure) {
  constexpr useconds_t first_reports_us = 500000;
  if (failure) return;
  if (rank_ != (failure.error().rank == 0 ? 1 : 0)) usleep(first_reports_us);
  Log(log_to_stderr)
      .error(
          "{}. The call that waits for it cannot end, so MPI ends the job. Start it again; it "
          "restarts from "
          "the newest checkpoint",
          failure.error().text);
  if (comm_ == MPI_COMM_NULL) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);  // it is being made
  MPI_Comm_call_errhandler(comm_, MPI_ERR_OTHER);
}

void MpiCommunicator::barrier() {
  MPI_Request request;
  vain_looks_ = 0;
  MPI_Ibarrier(comm_, &request);
  finish(*this, request);
}

void MpiCommunicator::allreduce(std::span<std::int64_t> values, Reduce op) {
  MPI_Request request;
  vain_looks_ = 0;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), count_of(values.size()), MPI_INT64_T, mpi_op(op),
                 comm_, &request);
  finish(*this, request);
}

void MpiCommunicator::bcast(MutableBytes data, int root) {
  MPI_Request request;
  vain_looks_ = 0;
  MPI_Ibcast(data.data(), count_of(data.size()), MPI_BYTE, root, comm_, &request);
  finish(*this, request);
}

void MpiCommunicator::allgather(Bytes mine, MutableBytes all) {
  const int count = count_of(mine.size());
  MPI_Request request;
  vain_looks_ = 0;
  MPI_Iallgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, comm_, &request);
  finish(*this, request);
}

}  // namespace cairn
