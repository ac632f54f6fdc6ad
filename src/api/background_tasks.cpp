#include "api/background_tasks.hpp"

#include <utility>

namespace cairn {

Result<std::unique_ptr<BackgroundTasks>> BackgroundTasks::open(MpiCommunicator& program,
                                                               const std::string& node,
                                                               const Log& log) {
  PeerNetworkOptions options;
  options.place = node;
  options.report = [log](const std::string& line) { log.info("{}", line); };
  CAIRN_ASSIGN(std::unique_ptr<PeerNetwork> network, PeerNetwork::open(program, options));
  CAIRN_ASSIGN(std::unique_ptr<TaskQueue> queue, TaskQueue::start(program, std::move(network)));
  return std::unique_ptr<BackgroundTasks>(new BackgroundTasks(program, std::move(queue)));
}

// MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF, while all of MPI can be used.
BackgroundTasks::BackgroundTasks(MpiCommunicator& program, std::unique_ptr<TaskQueue> queue)
    : program_(program), queue_(std::move(queue)) {
  program_.end_job_on([queue_of_all = queue_.get()] { return queue_of_all->death(); });
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &BackgroundTasks::at_finalize, &key_, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key_, this);
}

int BackgroundTasks::at_finalize(MPI_Comm /*comm*/, int /*key*/, void* tasks, void* /*unused*/) {
  auto& self = *static_cast<BackgroundTasks*>(tasks);
  self.key_ = MPI_KEYVAL_INVALID;
  if (self.last_work_ && !self.is_closed_) self.last_work_();
  (void)self.close(self.program_);
  return MPI_SUCCESS;
}

BackgroundTasks::~BackgroundTasks() {
  program_.end_job_on(nullptr);
  int is_over = 0;
  MPI_Finalized(&is_over);
  is_closed_ = true;
  if (int key = key_; key != MPI_KEYVAL_INVALID && is_over == 0) {
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_free_keyval(&key);
  }
}

Status BackgroundTasks::close(Communicator& program) {
  if (std::exchange(is_closed_, true)) return {};
  Status closed = queue_->close(program);
  program_.end_job_on(nullptr);
  return closed;
}

}  // namespace cairn
