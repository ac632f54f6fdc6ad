/* An MPI program that knows nothing of Cairn: each rank writes a file for each step, under a temporary name; then each
 * reads its newest one, which it finds by listing the directory. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank, newest = -1, value = 0, wrong;
  char name[64], final[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 1; step <= 3; ++step) {
    snprintf(name, sizeof name, "restart.%d.%d.tmp", step, rank);
    snprintf(final, sizeof final, "restart.%d.%d", step, rank);
    FILE* const file = fopen(name, "w");
    if (!file) MPI_Abort(MPI_COMM_WORLD, 3);
    fprintf(file, "%d\n", step * 100 + rank);
    fclose(file);
    if (rename(name, final) != 0) MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  DIR* const directory = opendir(".");
  for (struct dirent* entry; (entry = readdir(directory));) {
    int step, of, end = 0;
    if (sscanf(entry->d_name, "restart.%d.%d%n", &step, &of, &end) == 2 && !entry->d_name[end] && of == rank && step > newest)
      newest = step;
  }
  closedir(directory);
  snprintf(final, sizeof final, "restart.%d.%d", newest, rank);
  FILE* const file = fopen(final, "r");
  if (!file || fscanf(file, "%d", &value) != 1) MPI_Abort(MPI_COMM_WORLD, 5);
  fclose(file);
  const int mine = value != 300 + rank;
  MPI_Reduce(&mine, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
