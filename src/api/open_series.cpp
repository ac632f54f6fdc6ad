#include "api/open_series.hpp"

#include <vector>

#include "api/check_mpi.hpp"
#include "api/mpi_collective_files.hpp"
#include "comm/blobs.hpp"
#include "config/gather.hpp"
#include "config/options.hpp"
#include "rbio/parse_options.hpp"
#include "session/same_call.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

constexpr const char* options_variable = "CAIRN_RBIO";

/// SCR_NODE_NAME, else the host name, as for scr.h.
Result<std::string> node_name() {
  const ProcessFacts facts = current_process();
  const Option& option = *find_option("SCR_NODE_NAME");
  const auto given = facts.environment.find(std::string(option.key));
  if (given == facts.environment.end() || given->second.empty()) return facts.host_name;
  CAIRN_ASSIGN(const std::string name, expanded(option, given->second, facts));
  CAIRN_ASSIGN(const Value value,
               read_value(option.rule, std::string(option.key), {name, "environment"}));
  return value.text;
}

/// Rank 0 finds this for all ranks.
struct Opening {
  std::string directory;
  rbio::SeriesOptions options;
};

Result<Opening> opening_of(const OpenArguments& arguments) {
  const ProcessFacts facts = current_process();
  Opening opening;
  opening.directory = normalise(arguments.directory, facts.working_folder);
  if (arguments.options != nullptr)
    CAIRN_TRY(rbio::apply_options(opening.options, arguments.options, "rbio_open",
                                  environment_of(facts)));
  if (const auto text = environment_of(facts)(options_variable))
    CAIRN_TRY(rbio::apply_options(opening.options, *text, options_variable, environment_of(facts)));
  return opening;
}

Result<Opening> opening_of_rank_0(Communicator& comm, const OpenArguments& arguments) {
  Result<Opening> opening;
  if (comm.rank() == 0) opening = opening_of(arguments);
  CAIRN_TRY(agree(comm, opening ? Status{} : Status(tl::unexpected(opening.error()))));
  comm.bcast(mutable_bytes_of(opening->options), 0);
  const Bytes bytes = std::as_bytes(std::span(opening->directory));
  Blob directory(bytes.begin(), bytes.end());
  bcast_blob(comm, directory, 0);
  opening->directory.assign(reinterpret_cast<const char*>(directory.data()), directory.size());
  return opening;
}

Status check_arguments(const OpenArguments& arguments) {
  if (!arguments.has_place_for_series) return fail(Code::bad_argument, "rbio_open: series is NULL");
  if (arguments.directory == nullptr || *arguments.directory == '\0')
    return fail(Code::bad_argument, "rbio_open: the directory is NULL or empty");
  return {};
}

std::string text_of(const OpenArguments& arguments) {
  return fmt::format("directory \"{}\" and options \"{}\"",
                     arguments.directory == nullptr ? "" : arguments.directory,
                     arguments.options == nullptr ? "" : arguments.options);
}

}  // namespace

Result<std::unique_ptr<OpenSeries>> OpenSeries::open(std::unique_ptr<MpiCommunicator> comm,
                                                     const Log& log,
                                                     const OpenArguments& arguments) {
  auto opened = std::unique_ptr<OpenSeries>(new OpenSeries(std::move(comm)));
  CAIRN_TRY(opened->open_directory(log, arguments));
  return opened;
}

Status OpenSeries::open_directory(const Log& log, const OpenArguments& arguments) {
  CAIRN_TRY(check_same_call(*comm_, "rbio_open", "CLOSED", text_of(arguments)));
  CAIRN_TRY(agree(check_arguments(arguments)));
  const auto node = node_name();
  CAIRN_TRY(agree(node ? Status{} : Status(tl::unexpected(node.error()))));
  comm_->set_place(fmt::format("rank {} on {}", comm_->rank(), *node));
  comm_->end_job_on_neighbour(*node);
  CAIRN_ASSIGN(const Opening opening, opening_of_rank_0(*comm_, arguments));
  const Placement placement = gather_placement(*comm_, *node);
  rbio::Services services = rbio::system_services(log);
  if (opening.options.mode == rbio::Mode::collective)
    services.collective = std::make_shared<MpiCollectiveFiles>(*comm_, services.files);
  CAIRN_ASSIGN(series_, rbio::Series::open(*comm_, std::move(services), placement,
                                           opening.directory, opening.options));
  return {};
}

Status OpenSeries::enter(std::string_view call, std::string_view arguments) {
  comm_->call_while_waiting([this] { series_->move_messages_on(); });
  Status same = check_same_call(*comm_, call, "OPEN", arguments);
  comm_->call_while_waiting(nullptr);
  return same;
}

Result<rbio::StepIndex> OpenSeries::index_of(std::int64_t step) {
  if (step != RBIO_NEWEST) return series_->index_of(*comm_, static_cast<std::uint64_t>(step));
  return series_->index_of_newest(*comm_);
}

OpenSeriesTable::OpenSeriesTable() : log_(log_to_stderr), library_(check_library_of_process()) {}

Status OpenSeriesTable::check_mpi() const {
  CAIRN_TRY(library_);
  int is_begun = 0;
  int is_over = 0;
  MPI_Initialized(&is_begun);
  MPI_Finalized(&is_over);
  if (is_begun != 0 && is_over == 0) return {};
  return fail(Code::wrong_state, "make the calls of rbio.h after MPI_Init and before MPI_Finalize");
}

int OpenSeriesTable::world_rank() const {
  int rank = 0;
  if (!library_) return launched_rank_of_process();
  if (check_mpi()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Runs once per process. Only rank 0 of MPI_COMM_WORLD logs.
Status OpenSeriesTable::check_launch(int& rank) {
  if (has_judged_launch_) return {};
  int world_size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const LaunchJudgement found = judge_launch_of_process(world_size);
  if (found.verdict == LaunchJudgement::Verdict::wrong) {
    rank = found.rank;
    return fail(Code::bad_setting, "{}", found.text);
  }
  has_judged_launch_ = true;
  if (found.verdict == LaunchJudgement::Verdict::odd && rank == 0)
    log_.warning("rbio_open: {}", found.text);
  return {};
}

Result<rbio_series*> OpenSeriesTable::open(MPI_Comm parent, const OpenArguments& arguments,
                                           int& rank) {
  rank = world_rank();
  CAIRN_TRY(check_mpi());
  if (parent == MPI_COMM_NULL) return fail(Code::bad_argument, "the communicator is MPI_COMM_NULL");
  int is_between_groups = 0;
  MPI_Comm_test_inter(parent, &is_between_groups);
  if (is_between_groups != 0)
    return fail(Code::bad_argument, "the communicator is an inter-communicator; merge it first");
  auto comm = std::make_unique<MpiCommunicator>(parent, neighbour_in(parent));
  rank = comm->rank();
  CAIRN_TRY(check_launch(rank));
  CAIRN_ASSIGN(auto opened, OpenSeries::open(std::move(comm), log_, arguments));
  keep_neighbour(opened->comm());
  const std::uintptr_t handle = ++last_handle_;
  series_.emplace(handle, std::move(opened));
  return reinterpret_cast<rbio_series*>(handle);
}

/// Null if the series opened last had other ranks.
std::shared_ptr<NeighbourWatch> OpenSeriesTable::neighbour_in(MPI_Comm parent) const {
  if (last_ranks_ == MPI_GROUP_NULL) return nullptr;
  MPI_Group ranks = MPI_GROUP_NULL;
  MPI_Comm_group(parent, &ranks);
  int compared = MPI_UNEQUAL;
  MPI_Group_compare(ranks, last_ranks_, &compared);
  MPI_Group_free(&ranks);
  return compared == MPI_IDENT ? last_neighbour_ : nullptr;
}

void OpenSeriesTable::keep_neighbour(const MpiCommunicator& comm) {
  if (last_ranks_ != MPI_GROUP_NULL) MPI_Group_free(&last_ranks_);
  MPI_Comm_group(comm.handle(), &last_ranks_);
  last_neighbour_ = comm.neighbour();
}

OpenSeries* OpenSeriesTable::find(const rbio_series* handle) {
  const auto found = series_.find(reinterpret_cast<std::uintptr_t>(handle));
  return found == series_.end() ? nullptr : found->second.get();
}

void OpenSeriesTable::remove(const rbio_series* handle) {
  series_.erase(reinterpret_cast<std::uintptr_t>(handle));
}

OpenSeriesTable& open_series() {
  static OpenSeriesTable& table = *new OpenSeriesTable;
  return table;
}

}  // namespace cairn
