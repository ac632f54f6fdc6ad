/* Ranks write rows of one file by turns, collectively and each alone, read the rows of others and
 * compare. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 64, row_bytes = 10007 };

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "%s fails\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte_of(long row, int at) {
  return (unsigned char)(row * 31 + at * 7 + at / 256);
}

static MPI_Offset offset_of(long row) { return (MPI_Offset)row * row_bytes; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_File file;
  check(
      MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
      "open");
  unsigned char* row = malloc(row_bytes);
  for (int i = 0; i < rows; ++i) {
    const long mine = (long)i * ranks + rank;
    for (int at = 0; at < row_bytes; ++at) row[at] = byte_of(mine, at);
    if (i % 2 == 0)
      check(
          MPI_File_write_at_all(file, offset_of(mine), row, row_bytes, MPI_BYTE, MPI_STATUS_IGNORE),
          "write_at_all");
    else
      check(MPI_File_write_at(file, offset_of(mine), row, row_bytes, MPI_BYTE, MPI_STATUS_IGNORE),
            "write_at");
  }
  check(MPI_File_sync(file), "sync");
  MPI_Barrier(MPI_COMM_WORLD);
  check(MPI_File_sync(file), "sync");
  for (int i = 0; i < rows; ++i) {
    const long other = (long)i * ranks + (rank + 1) % ranks;
    check(MPI_File_read_at(file, offset_of(other), row, row_bytes, MPI_BYTE, MPI_STATUS_IGNORE),
          "read_at");
    for (int at = 0; at < row_bytes; ++at) {
      if (row[at] == byte_of(other, at)) continue;
      fprintf(stderr, "rank %d: byte %d of row %ld is %d\n", rank, at, other, row[at]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  free(row);
  check(MPI_File_close(&file), "close");
  MPI_Finalize();
  return 0;
}
