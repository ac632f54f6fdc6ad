/* A code that renames directories and links files. Each rank writes its file of a step into a new directory, renames that to
   the step, and gives the file another name beside it. First it reads all that an earlier run has written.

     program STEPS PAUSE_MS [die]   all ranks are killed after the last step */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank;
static int wrong;

static void expect(int is_right, const char* what, int step) {
  if (is_right) return;
  printf("rank %d, step %d: %s\n", rank, step, what);
  ++wrong;
}

/* Whether the file has the number of rank and step, again and again. */
static int holds(const char* path, int step) {
  FILE* const in = fopen(path, "r");
  int value, count = 0;
  if (in == NULL) return 0;
  while (fscanf(in, "%d", &value) == 1 && value == step * 100 + rank) ++count;
  const int is_whole = feof(in) && count == 1000;
  fclose(in);
  return is_whole;
}

static int exists(const char* path) {
  struct stat state;
  return stat(path, &state) == 0;
}

static void write_step(int step) {
  char made[100], directory[100], file[120], kept[120];
  sprintf(made, "out/r%d/new", rank);
  sprintf(directory, "out/r%d/%d", rank, step);
  sprintf(file, "%s/state.%d.%d", made, step, rank);
  sprintf(kept, "out/r%d/kept.%d", rank, step);
  expect(mkdir(made, 0777) == 0, "mkdir fails", step);
  FILE* const out = fopen(file, "w");
  for (int i = 0; i < 1000; ++i) fprintf(out, "%d\n", step * 100 + rank);
  fclose(out);
  expect(rename(made, directory) == 0, "the directory cannot be renamed", step);
  expect(!exists(file) && !exists(made), "the old name is still there", step);
  sprintf(file, "%s/state.%d.%d", directory, step, rank);
  expect(holds(file, step), "the file is not whole under the new name", step);
  expect(link(file, kept) == 0 && holds(kept, step), "it cannot be linked", step);
  expect(link(directory, "out/none") != 0, "a directory can be linked", step);
}

int main(int argc, char** argv) {
  char path[120];
  int all_wrong;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int steps = atoi(argv[1]);
  mkdir("out", 0777);
  sprintf(path, "out/r%d", rank);
  mkdir(path, 0777);
  for (int step = 1; step <= steps; ++step) {
    sprintf(path, "out/r%d/%d/state.%d.%d", rank, step, step, rank);
    if (exists(path))
      expect(holds(path, step), "the file of the run before is not whole", step);
    else
      write_step(step);
    usleep((useconds_t)atoi(argv[2]) * 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    sprintf(path, "out/r%d/kept.%d", rank, step);
    expect(holds(path, step), "the linked file is not whole", step);
  }
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d wrong\n", all_wrong);
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 3) raise(SIGKILL);
  MPI_Finalize();
  return 0;
}
