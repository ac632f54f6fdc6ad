/* Calls that cannot succeed: each returns a code, changes nothing, and the program continues.
 * misuse DIRECTORY, on two ranks. */
#include <rbio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int rank;
static rbio_series* series;
static double value = 1;

static void before_mpi_init(void) {
  EXPECT(rbio_open(MPI_COMM_WORLD, "d", "", &series), CAIRN_E_WRONG_STATE);
  EXPECT(series == NULL, 1);
  EXPECT(strstr(rbio_error_text(NULL), "MPI_Init") != NULL, 1);
}

static void open_with_wrong_arguments(const char* directory) {
  rbio_series* opened = (rbio_series*)&value;
  EXPECT(rbio_open(MPI_COMM_NULL, directory, "", &opened), CAIRN_E_BAD_ARGUMENT);
  EXPECT(opened == NULL, 1);
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, "", NULL), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_open(MPI_COMM_WORLD, NULL, "", &opened), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_open(MPI_COMM_WORLD, "", "", &opened), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, "gruop=2", &opened), CAIRN_E_BAD_SETTING);
  EXPECT(strstr(rbio_error_text(NULL), "did you mean group?") != NULL, 1);
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, "mode=fast", &opened), CAIRN_E_BAD_SETTING);
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, "group=1 files=3", &opened), CAIRN_E_BAD_SETTING);
  EXPECT(rbio_open(MPI_COMM_WORLD, "/proc/no such place/d", "", &opened), CAIRN_E_IO);
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, rank == 0 ? "files=1" : "files=0", &opened),
         CAIRN_E_DIFFERS);
  EXPECT(rbio_open(MPI_COMM_WORLD, rank == 0 ? directory : "elsewhere", "", &opened),
         CAIRN_E_DIFFERS);
  EXPECT(strstr(rbio_error_text(NULL), "elsewhere") != NULL, 1);
  EXPECT(opened == NULL, 1);
}

static void wrong_fields(void) {
  int field = 7;
  EXPECT(rbio_begin(series, 1, NULL), CAIRN_E_BAD_ARGUMENT); /* no field yet */
  EXPECT(rbio_add_field(series, NULL, RBIO_FLOAT64, 1, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "", RBIO_FLOAT64, 1, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v\n", RBIO_FLOAT64, 1, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v", 0, 1, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v", -1, 1, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v", 13, 1, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v", RBIO_FLOAT64, 0, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v", RBIO_FLOAT64, -1, &value, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v", RBIO_FLOAT64, 1, &value, -1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_add_field(series, "v", RBIO_FLOAT64, 1, NULL, 1, &field), CAIRN_E_BAD_ARGUMENT);
  EXPECT(field, 7);
  EXPECT(rbio_add_field(series, "v", RBIO_FLOAT64, 1, &value, 1, NULL), RBIO_SUCCESS);
  EXPECT(rbio_add_field(series, "v", RBIO_FLOAT64, 1, &value, 1, NULL), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_set_field(series, 1, &value, 1), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_set_field(series, -1, &value, 1), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_set_field(series, 0, &value, -1), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_set_field(series, 0, NULL, 1), CAIRN_E_BAD_ARGUMENT);
}

static void different_calls(void) {
  rbio_ticket ticket = 7;
  EXPECT(rank == 0 ? rbio_begin(series, 5, &ticket) : rbio_wait(series, 0), CAIRN_E_DIFFERS);
  EXPECT(strstr(rbio_error_text(series), "rbio_begin") != NULL, 1);
  EXPECT(strstr(rbio_error_text(series), "rbio_wait") != NULL, 1);
  EXPECT(ticket, rank == 0 ? 0 : 7);
  EXPECT(rbio_begin(series, 5 + rank, &ticket), CAIRN_E_DIFFERS);
  rbio_series* handle = series;
  EXPECT(rank == 0 ? rbio_close(&handle) : rbio_restore(series, 5, NULL), CAIRN_E_DIFFERS);
  EXPECT(handle == series, 1);
}

static void wrong_arguments(void) {
  int finished = 1, count = 7;
  int64_t number = 7;
  EXPECT(rbio_begin(series, -1, NULL), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_wait(series, 99), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_wait(series, -1), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_test(series, 99, &finished), CAIRN_E_BAD_ARGUMENT);
  EXPECT(finished, 0);
  EXPECT(rbio_test(series, 0, NULL), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_restore(series, -2, NULL), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_steps(series, NULL, 0, NULL), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_steps(series, &number, rank == 0 ? 1 : -1, &count), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_steps(series, rank == 0 ? &number : NULL, 1, &count), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_statistics(series, NULL), CAIRN_E_BAD_ARGUMENT);
  EXPECT(count == 7 && number == 7, 1);
}

static void wrong_restores(void) {
  int64_t count = 7;
  EXPECT(rbio_begin(series, 5, NULL), RBIO_SUCCESS);
  EXPECT(rbio_stored_count(series, 5, "w", 0, &count), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_stored_count(series, 5, NULL, 0, &count), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_stored_count(series, 5, "v", rank == 0 ? 0 : 2, &count), CAIRN_E_BAD_ARGUMENT);
  EXPECT(rbio_stored_count(series, 6, "v", 0, &count), CAIRN_E_NOT_FOUND);
  EXPECT(count, 7);
  EXPECT(rbio_set_field(series, 0, &value, rank), RBIO_SUCCESS);
  EXPECT(rbio_restore(series, 5, NULL), CAIRN_E_BAD_ARGUMENT); /* two elements were written */
  EXPECT(strstr(rbio_error_text(series), "rbio_stored_count") != NULL, 1);
  EXPECT(rbio_set_field(series, 0, &value, 1), RBIO_SUCCESS);
  EXPECT(rbio_restore(series, 5, NULL), RBIO_SUCCESS);
}

static void different_fields(void) {
  EXPECT(rbio_add_field(series, "v", RBIO_FLOAT64, 1, &value, 1, NULL), RBIO_SUCCESS);
  if (rank == 1)
    EXPECT(rbio_add_field(series, "w", RBIO_FLOAT64, 1, &value, 1, NULL), RBIO_SUCCESS);
  EXPECT(rbio_restore(series, 5, NULL), CAIRN_E_DIFFERS);
  EXPECT(rbio_restore(series, RBIO_NEWEST, NULL), CAIRN_E_DIFFERS);
  EXPECT(rbio_begin(series, 6, NULL), CAIRN_E_DIFFERS);
}

static void open_twice(const char* directory) {
  rbio_series* second = NULL;
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, "", &second), CAIRN_E_BUSY);
  EXPECT(second == NULL, 1);
}

static void closed_or_null(void) {
  rbio_series* closed = series;
  int finished = 1;
  EXPECT(rbio_close(&series), RBIO_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    rbio_series* handle = i == 0 ? closed : NULL;
    EXPECT(rbio_begin(handle, 1, NULL), CAIRN_E_WRONG_STATE);
    EXPECT(rbio_wait(handle, 1), CAIRN_E_WRONG_STATE);
    EXPECT(rbio_test(handle, 1, &finished), CAIRN_E_WRONG_STATE);
    EXPECT(rbio_add_field(handle, "v", RBIO_INT8, 1, NULL, 0, NULL), CAIRN_E_WRONG_STATE);
    EXPECT(rbio_restore(handle, RBIO_NEWEST, NULL), CAIRN_E_WRONG_STATE);
    EXPECT(rbio_close(&handle), CAIRN_E_WRONG_STATE);
  }
  EXPECT(rbio_close(NULL), CAIRN_E_WRONG_STATE);
  EXPECT(finished, 0);
}

int main(int argc, char** argv) {
  const char* directory = argc > 1 ? argv[1] : "series";
  before_mpi_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  open_with_wrong_arguments(directory);
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, NULL, &series), RBIO_SUCCESS);
  wrong_fields();
  different_calls();
  wrong_arguments();
  wrong_restores();
  open_twice(directory);
  closed_or_null();
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, NULL, &series), RBIO_SUCCESS);
  different_fields();
  MPI_Finalize();
  EXPECT(rbio_begin(series, 1, NULL), CAIRN_E_WRONG_STATE);
  EXPECT(rbio_close(&series), CAIRN_E_WRONG_STATE);
  return failed_checks > 0;
}
