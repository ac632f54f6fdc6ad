#include "comm/mpi_match.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace cairn {
namespace {

using Environment = std::map<std::string, std::string>;
using Verdict = LaunchJudgement::Verdict;

/// What a family is called, how its programs are started, and what its launcher puts into their
/// environment.
struct Family {
  std::string_view name, flavour, launcher, size_variable, rank_variable, srun_plugin;
};

constexpr Family open_mpi = {
    "Open MPI", "openmpi", "mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "pmix"};
constexpr Family mpich = {"MPICH", "mpich", "mpiexec", "PMI_SIZE", "PMI_RANK", "pmi2"};
constexpr std::string_view slurm_size = "SLURM_STEP_NUM_TASKS";
constexpr std::string_view slurm_plugin = "SLURM_MPI_TYPE";

const Family& about(MpiFamily family) { return family == MpiFamily::open_mpi ? open_mpi : mpich; }

MpiFamily other_than(MpiFamily family) {
  return family == MpiFamily::open_mpi ? MpiFamily::mpich : MpiFamily::open_mpi;
}

/// -1 if the variable is not there, or is no number.
int number_in(const Environment& environment, std::string_view variable) {
  const auto found = environment.find(std::string(variable));
  if (found == environment.end()) return -1;
  const std::string& text = found->second;
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

/// srun's PMI plugins set MPICH's variable too; mpiexec also says how many ranks are on the node.
bool slurm_set_pmi_size(const Environment& environment) {
  return number_in(environment, mpich.size_variable) == number_in(environment, slurm_size) &&
         !environment.contains("MPI_LOCALNRANKS");
}

/// What the launcher of that family says; -1 if it has not started this process.
int size_by_launcher(MpiFamily family, const Environment& environment) {
  if (family == MpiFamily::mpich && slurm_set_pmi_size(environment)) return -1;
  return number_in(environment, about(family).size_variable);
}

std::string launched_by_other(const Family& own, const Family& other, int processes,
                              const Environment& environment) {
  const bool by_flux = &other == &mpich && environment.contains("FLUX_JOB_ID");
  return fmt::format(
      "the program runs with {}, but {} started it ({}={}), so each of its {} processes is a "
      "program of one rank, and they would overwrite each other's checkpoints. {}, or build the "
      "program for {}. If it is meant to run alone, unset {}",
      own.name, by_flux ? "flux" : fmt::format("{}'s {}", other.name, other.launcher),
      other.size_variable, processes, processes,
      by_flux ? "Have flux offer the PMI that this MPI needs (flux run -o pmi=pmix)"
              : fmt::format("Start it with the {} of {}", own.launcher, own.name),
      by_flux ? "flux's PMI" : other.name, other.size_variable);
}

std::string launched_by_srun(MpiFamily family, int tasks) {
  const bool is_known = family != MpiFamily::unknown;
  return fmt::format(
      "srun started {} tasks ({}={}), but each of them is a program of one rank, and they would "
      "overwrite each other's checkpoints: srun's --mpi plugin is not the one that {} needs. Give "
      "srun {} (srun --mpi=list lists the plugins), or start the program with mpirun or mpiexec. "
      "If each task is meant to be a program of its own, with a prefix directory of its own, start "
      "it by env {}=none",
      tasks, slurm_size, tasks, is_known ? about(family).name : "this MPI",
      is_known ? fmt::format("--mpi={}", about(family).srun_plugin) : "another --mpi plugin",
      slurm_plugin);
}

std::string odd_launch(std::string_view variable, int processes) {
  return fmt::format(
      "the program has one rank, but {} is {}. That is correct if a process of a larger MPI "
      "program, or a shell in a step, started it. If not, its processes do not find each other and "
      "overwrite each other's checkpoints: start it with the launcher of its own MPI",
      variable, processes);
}

/// Slurm removes this from the tasks itself, so whoever has it there has set it on purpose.
bool is_meant_as_ensemble(const Environment& environment) {
  const auto found = environment.find(std::string(slurm_plugin));
  return found != environment.end() && found->second == "none";
}

bool is_task_of_srun(const Launch& launch) {
  return number_in(launch.environment, slurm_size) > 1 &&
         number_in(launch.environment, "SLURM_TASK_PID") == launch.process_id &&
         !is_meant_as_ensemble(launch.environment);
}

}  // namespace

MpiFamily family_of_library(std::string_view version) {
  const auto mentions = [version](std::string_view name) {
    return version.find(name) != std::string_view::npos;
  };
  if (mentions("Open MPI") || mentions("Spectrum MPI")) return MpiFamily::open_mpi;
  const std::array names = {"MPICH", "MVAPICH", "Intel(R) MPI"};
  return std::any_of(names.begin(), names.end(), mentions) ? MpiFamily::mpich : MpiFamily::unknown;
}

Status check_mpi_library(MpiFamily built_for, std::string_view version) {
  const MpiFamily bound = family_of_library(version);
  if (built_for == bound || built_for == MpiFamily::unknown || bound == MpiFamily::unknown)
    return {};
  const Family& wanted = about(bound);
  return fail(
      Code::bad_setting,
      "this libcairn is built for {}, but the program runs with {}, so no checkpoint can be "
      "made. Link the program with the libcairn for {}: pkg-config cairn-{}, or CMake's "
      "cairn::{}",
      about(built_for).name, wanted.name, wanted.name, wanted.flavour, wanted.flavour);
}

LaunchJudgement judge_launch(const Launch& launch) {
  if (launch.world_size != 1) return {};
  const Environment& environment = launch.environment;
  const bool is_known = launch.family != MpiFamily::unknown;
  const int by_own = is_known ? size_by_launcher(launch.family, environment) : -1;
  if (by_own == 1) return {};
  if (is_task_of_srun(launch))
    return {Verdict::wrong, launched_by_srun(launch.family, number_in(environment, slurm_size)),
            std::max(number_in(environment, "SLURM_PROCID"), 0)};
  const MpiFamily other = other_than(launch.family);
  const int by_other = is_known ? size_by_launcher(other, environment) : -1;
  if (by_own < 0 && by_other > 1 && !launch.is_child_of_rank)
    return {Verdict::wrong,
            launched_by_other(about(launch.family), about(other), by_other, environment),
            launched_rank(other, environment)};
  for (const std::string_view variable : {open_mpi.size_variable, mpich.size_variable, slurm_size})
    if (const int processes = number_in(environment, variable); processes > 1)
      return {Verdict::odd, odd_launch(variable, processes)};
  return {};
}

int launched_rank(MpiFamily launcher, const Environment& environment) {
  const int given = number_in(environment, about(launcher).rank_variable);
  return std::max(given < 0 ? number_in(environment, "SLURM_PROCID") : given, 0);
}

}  // namespace cairn
