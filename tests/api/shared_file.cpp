// One file of all ranks, written straight into the prefix directory with MPI's own calls.
#include "scenario.hpp"

namespace {

constexpr int stripes = 50;
constexpr int stripe_bytes = 5000;

/// Rank r writes every stripe of its number.
bool write_stripes(const char* path) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_File file{};
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                    &file) != MPI_SUCCESS)
    return false;
  bool written = true;
  for (int stripe = rank_of_this(); stripe < stripes; stripe += ranks) {
    const std::string content(stripe_bytes, static_cast<char>('A' + stripe));
    const MPI_Offset offset = static_cast<MPI_Offset>(stripe) * stripe_bytes;
    written = MPI_File_write_at(file, offset, content.data(), stripe_bytes, MPI_BYTE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS &&
              written;
  }
  return MPI_File_close(&file) == MPI_SUCCESS && written;
}

/// Every rank reads all of it.
bool holds_stripes(const char* path) {
  MPI_File file{};
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
    return false;
  std::string content(std::size_t{stripes} * stripe_bytes, '\0');
  bool right = MPI_File_read_at(file, 0, content.data(), stripes * stripe_bytes, MPI_BYTE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS;
  for (std::size_t at = 0; at < content.size(); ++at)
    right = right && content[at] == static_cast<char>('A' + at / stripe_bytes);
  return MPI_File_close(&file) == MPI_SUCCESS && right;
}

}  // namespace

/// A folder of the prefix directory that is a link, which the caller has made.
void linked_folder(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("linked", SCR_FLAG_CHECKPOINT));
  char path[SCR_MAX_FILENAME];
  expect_line("SCR_Route_file|it is a symbolic link|; replace the link");
  CHECK_CODE(CAIRN_E_UNTRUSTED, SCR_Route_file("linked/own", path));
  expect_error("SCR_Complete_output|passed valid=0");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_output(0));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// Restarts from what an earlier run has written; then writes the next one.
void shared_file(Verdict& verdict) {
  char path[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  const std::string found = offered();
  if (!found.empty()) {
    CHECK_CODE(SCR_SUCCESS, SCR_Start_restart(nullptr));
    CHECK_CODE(SCR_SUCCESS, SCR_Route_file((found + "/all").c_str(), path));
    CHECK(holds_stripes(path) && route_and_read(found + "/own"));
    CHECK_CODE(SCR_SUCCESS, SCR_Complete_restart(1));
    if (rank_of_this() == 0) say("restarted from " + found);
  }
  const std::string next = found.empty() ? "first" : "second";
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output(next.c_str(), SCR_FLAG_CHECKPOINT));
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file((next + "/all").c_str(), path));
  const bool written = write_stripes(path) && route_and_write(next + "/own");
  CHECK(written);
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(written));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}
