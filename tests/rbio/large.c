/* Of a field the first of two ranks has a little, and the second more than 2 GiB, almost all zeros.
 *
 *   large write DIRECTORY OPTIONS     on two ranks
 *   large restore DIRECTORY OPTIONS   on one rank
 */
#include <rbio.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { small_count = 1000 };
#define LARGE_COUNT ((INT64_C(1) << 31) + 12345)
static const int64_t marks[] = {0,         (INT64_C(1) << 30) - 1, INT64_C(1) << 30,
                                INT32_MAX, INT64_C(1) << 31,       LARGE_COUNT - 1};
enum { mark_count = sizeof marks / sizeof marks[0] };

/* Takes no memory until it is written to. */
static unsigned char* make_zeros(int64_t bytes) {
  void* start = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? NULL : start;
}

static void write_step(rbio_series* series, int rank) {
  unsigned char* data = make_zeros(LARGE_COUNT);
  if (rank == 0) memset(data, 0x11, small_count);
  for (int i = 0; rank == 1 && i < mark_count; ++i) data[marks[i]] = (unsigned char)(i + 1);
  EXPECT(
      rbio_add_field(series, "x", RBIO_UINT8, 1, data, rank == 0 ? small_count : LARGE_COUNT, NULL),
      RBIO_SUCCESS);
  rbio_ticket ticket = 0;
  EXPECT(rbio_begin(series, 1, &ticket), RBIO_SUCCESS);
  EXPECT(rbio_wait(series, ticket), RBIO_SUCCESS);
  munmap(data, (size_t)LARGE_COUNT);
}

static int64_t count_nonzero(const unsigned char* data, int64_t bytes) {
  int64_t count = 0;
  for (int64_t i = 0; i < bytes; ++i) count += data[i] != 0;
  return count;
}

static void restore_step(rbio_series* series) {
  const int64_t count = small_count + LARGE_COUNT;
  unsigned char* data = make_zeros(count);
  EXPECT(rbio_add_field(series, "x", RBIO_UINT8, 1, data, count, NULL), RBIO_SUCCESS);
  EXPECT(rbio_restore(series, 1, NULL), RBIO_SUCCESS);
  for (int i = 0; i < small_count; ++i) EXPECT(data[i], 0x11);
  for (int i = 0; i < mark_count; ++i) EXPECT(data[small_count + marks[i]], i + 1);
  EXPECT(count_nonzero(data, count), small_count + mark_count);
  munmap(data, (size_t)count);
}

int main(int argc, char** argv) {
  int rank = 0;
  rbio_series* series = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT(argc, 4);
  EXPECT(rbio_open(MPI_COMM_WORLD, argv[2], argv[3], &series), RBIO_SUCCESS);
  if (strcmp(argv[1], "write") == 0)
    write_step(series, rank);
  else
    restore_step(series);
  EXPECT(rbio_close(&series), RBIO_SUCCESS);
  MPI_Finalize();
  return failed_checks > 0;
}
