#include "comm/ancestors.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace cairn {
namespace {

/// Of a line of /proc/PID/maps: libmpi.so.40, libmpich.so.12, libmpi_cray.so.12 and their like.
bool names_mpi_library(const std::string& line) {
  const std::size_t slash = line.rfind('/');
  if (slash == line.npos) return false;
  const std::string_view name = std::string_view(line).substr(slash + 1);
  return name.starts_with("libmpi") && name.find(".so") != name.npos;
}

bool has_mpi_library(const std::string& folder) {
  std::ifstream mappings(folder + "/maps");
  std::string line;
  while (std::getline(mappings, line))
    if (names_mpi_library(line)) return true;
  return false;
}

struct ProcessName {
  std::string program;
  long parent = 0;  ///< 0: none, or it cannot be seen
};

/// Of /proc/PID/stat: "77 (a name) S 76 ...", where the name may hold anything.
ProcessName name_in(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t begin = text.find('(');
  const std::size_t end = text.rfind(')');
  if (begin == text.npos || end == text.npos) return {};
  ProcessName found{text.substr(begin + 1, end - begin - 1)};
  std::string state;
  std::istringstream(text.substr(end + 1)) >> state >> found.parent;
  return found;
}

bool is_launcher(std::string_view program) {
  constexpr std::array<std::string_view, 15> names = {
      "mpirun", "mpiexec",  "orterun",    "orted", "prterun", "prted", "hydra_", "pmi_proxy",
      "srun",   "mpispawn", "slurmstepd", "flux-", "aprun",   "pals",  "jsm"};
  return std::any_of(names.begin(), names.end(),
                     [program](std::string_view name) { return program.starts_with(name); });
}

}  // namespace

std::vector<Ancestor> ancestors_of(long process, const std::string& proc) {
  constexpr std::size_t most = 1000;  // process ids are given again while this reads them
  const auto folder_of = [&proc](long id) { return proc + "/" + std::to_string(id); };
  std::vector<Ancestor> ancestors;
  for (long id = name_in(folder_of(process)).parent; id > 0 && ancestors.size() < most;) {
    const ProcessName found = name_in(folder_of(id));
    ancestors.push_back({found.program, has_mpi_library(folder_of(id))});
    id = found.parent;
  }
  return ancestors;
}

bool has_rank_below_launcher(const std::vector<Ancestor>& ancestors) {
  const auto first = std::find_if(ancestors.begin(), ancestors.end(), [](const Ancestor& one) {
    return one.has_mpi_library || is_launcher(one.program);
  });
  return first != ancestors.end() && !is_launcher(first->program);
}

}  // namespace cairn
