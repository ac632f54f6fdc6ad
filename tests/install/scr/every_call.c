/* Built against SCR's declarations and a library that only has its names; see
 * test_binaries_of_scr.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls_of_scr_3_1.h"

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: not as expected\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The first run writes two checkpoints, the second one finds the newer. */
static void write_checkpoint(const char* name, int rank) {
  char file[scr_max_filename] = "", path[scr_max_filename] = "";
  int need = -1;
  expect(SCR_Need_checkpoint(&need) == scr_success && need == 0, "SCR_Need_checkpoint");
  if (name != NULL)
    expect(SCR_Start_output(name, scr_flag_checkpoint) == scr_success, "SCR_Start_output");
  else
    expect(SCR_Start_checkpoint() == scr_success, "SCR_Start_checkpoint");
  snprintf(file, sizeof file, "%s.%d", name == NULL ? "unnamed" : name, rank);
  expect(SCR_Route_file(file, path) == scr_success, "SCR_Route_file");
  FILE* out = fopen(path, "w");
  expect(out != NULL && fprintf(out, "%d", rank) > 0 && fclose(out) == 0, path);
  if (name != NULL)
    expect(SCR_Complete_output(1) == scr_success, "SCR_Complete_output");
  else
    expect(SCR_Complete_checkpoint(1) == scr_success, "SCR_Complete_checkpoint");
}

static int restart(int rank) {
  char name[scr_max_filename] = "", file[scr_max_filename] = "", path[scr_max_filename] = "";
  int found = -1, read = -1;
  expect(SCR_Have_restart(&found, name) == scr_success, "SCR_Have_restart");
  if (!found) return 0;
  expect(strcmp(name, "named") == 0, name);
  expect(SCR_Start_restart(name) == scr_success, "SCR_Start_restart");
  snprintf(file, sizeof file, "named.%d", rank);
  expect(SCR_Route_file(file, path) == scr_success, "SCR_Route_file");
  FILE* in = fopen(path, "r");
  expect(in != NULL && fscanf(in, "%d", &read) == 1 && fclose(in) == 0 && read == rank, path);
  expect(SCR_Complete_restart(1) == scr_success, "SCR_Complete_restart");
  return 1;
}

int main(int argc, char** argv) {
  int rank = -1, stop = -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  SCR_Config("SCR_CACHE_SIZE=2");
  SCR_Configf("SCR_FLUSH=%d", 1);
  expect(SCR_Init() == scr_success, "SCR_Init");
  const char* flush = SCR_Config("SCR_FLUSH");
  expect(flush != NULL && strcmp(flush, "1") == 0, "SCR_Config");
  free((void*)flush);
  const int restarted = restart(rank);
  if (!restarted) {
    write_checkpoint(NULL, rank);
    write_checkpoint("named", rank);
  } else {
    expect(SCR_Current("named") == scr_success, "SCR_Current");
    expect(SCR_Drop("scr.dataset.1") == scr_success, "SCR_Drop");
    expect(SCR_Delete("named") == scr_success, "SCR_Delete");
  }
  expect(SCR_Should_exit(&stop) == scr_success && stop == 0, "SCR_Should_exit");
  expect(SCR_Finalize() == scr_success, "SCR_Finalize");
  if (rank == 0) printf("%s of %s\n", restarted ? "restarted" : "began", SCR_Get_version());
  MPI_Finalize();
  return 0;
}
