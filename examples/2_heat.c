/* Lesson 2: heat spreading over a plate, checkpointed by Cairn.
 *
 * The plate is cut into bands of rows, one per rank; each step exchanges the rows at the cuts and
 * applies the 5-point stencil. A checkpoint is two files per rank: the field, and a short text that
 * describes the field. The result does not depend on whether, when or where the run was
 * interrupted, so two result directories can be compared byte by byte.
 *
 * Rank 0 prints one line per event, "heat EVENT key=value ...", times in seconds. */
#include <mpi.h>
#include <scr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { columns = 2048, rows_per_mib = (1 << 20) / (columns * (int)sizeof(double)) };

typedef struct {
  int size_mib, steps, every;
  const char* output; /* directory for the final field, NULL for none */
} Options;

/* This rank's band: rows 1..rows. Rows 0 and rows + 1 are copies of the neighbours' rows, or 0 at
 * the edge of the plate. */
typedef struct {
  int rank, ranks, rows, step;
  double *now, *next;
} Band;

static double* row_of(double* field, int row) { return field + (size_t)row * columns; }
static size_t field_bytes(const Band* band) {
  return (size_t)band->rows * columns * sizeof(double);
}

/* ---- physics ---- */

/* A temperature in [0, 1) that looks like noise, so that no two rows of the plate are alike. */
static double first_temperature(uint64_t cell) {
  cell = (cell + 1) * 0x9E3779B97F4A7C15u;
  cell = (cell ^ (cell >> 32)) * 0xD6E8FEB86659FD93u;
  return (double)(cell >> 11) / 9007199254740992.0;
}

static void heat_up(Band* band) {
  const uint64_t first_cell = (uint64_t)band->rank * band->rows * columns;
  double* field = row_of(band->now, 1);
  for (size_t i = 0; i < (size_t)band->rows * columns; ++i)
    field[i] = first_temperature(first_cell + i);
  band->step = 0;
}

static void exchange_edges(Band* band) {
  const int up = band->rank > 0 ? band->rank - 1 : MPI_PROC_NULL;
  const int down = band->rank + 1 < band->ranks ? band->rank + 1 : MPI_PROC_NULL;
  double* now = band->now;
  MPI_Sendrecv(row_of(now, 1), columns, MPI_DOUBLE, up, 0, row_of(now, band->rows + 1), columns,
               MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(row_of(now, band->rows), columns, MPI_DOUBLE, down, 1, row_of(now, 0), columns,
               MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The left and right edges of the plate keep their temperature. Beyond the first and the last row
 * the temperature is 0. */
static void advance(Band* band) {
  const double spread = 0.2;
  exchange_edges(band);
  for (int r = 1; r <= band->rows; ++r) {
    const double *above = row_of(band->now, r - 1), *here = row_of(band->now, r);
    const double* below = row_of(band->now, r + 1);
    double* out = row_of(band->next, r);
    out[0] = here[0];
    out[columns - 1] = here[columns - 1];
    for (int c = 1; c < columns - 1; ++c)
      out[c] = here[c] + spread * (above[c] + below[c] + here[c - 1] + here[c + 1] - 4 * here[c]);
  }
  double* done = band->next;
  band->next = band->now;
  band->now = done;
  ++band->step;
}

/* ---- files ---- */

static int write_file(const char* path, const void* data, size_t bytes) {
  FILE* file = fopen(path, "wb");
  if (!file) return 0;
  const size_t written = fwrite(data, 1, bytes, file);
  return (fclose(file) == 0) & (written == bytes);
}

static int read_file(const char* path, void* data, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (!file) return 0;
  const int whole = fread(data, 1, bytes, file) == bytes && fgetc(file) == EOF;
  fclose(file);
  return whole;
}

/* Writes the path of this rank's file of the current step to `path`. */
static int route(const Band* band, const char* kind, char* path) {
  char name[SCR_MAX_FILENAME];
  snprintf(name, sizeof name, "heat/step.%d/%s.%d", band->step, kind, band->rank);
  return SCR_Route_file(name, path) == SCR_SUCCESS;
}

static size_t describe(const Band* band, char* text, size_t size) {
  return (size_t)snprintf(text, size, "step %d\nrank %d of %d\nrows %d\ncolumns %d\n", band->step,
                          band->rank, band->ranks, band->rows, columns);
}

static int save(Band* band) {
  char path[SCR_MAX_FILENAME], text[256];
  return route(band, "field", path) && write_file(path, row_of(band->now, 1), field_bytes(band)) &&
         route(band, "state", path) && write_file(path, text, describe(band, text, sizeof text));
}

/* The description must be the one that this rank would write: same step, ranks and shape. */
static int load(Band* band) {
  char path[SCR_MAX_FILENAME], expected[256], text[256];
  const size_t bytes = describe(band, expected, sizeof expected);
  return route(band, "state", path) && read_file(path, text, bytes) &&
         memcmp(text, expected, bytes) == 0 && route(band, "field", path) &&
         read_file(path, row_of(band->now, 1), field_bytes(band));
}

/* ---- checkpoint and restart ---- */

/* Returns 1 if a checkpoint was loaded, 0 if there is none, and -1 if there is one that this run
 * cannot read now. */
static int restart(Band* band) {
  char name[SCR_MAX_FILENAME];
  int found = 0;
  for (;;) {
    if (SCR_Have_restart(&found, name) != SCR_SUCCESS) return -1;
    if (!found) return 0;
    if (SCR_Start_restart(name) != SCR_SUCCESS) continue; /* Cairn offers the next older one */
    const int readable = sscanf(name, "step.%d", &band->step) == 1 && load(band);
    if (SCR_Complete_restart(readable) == SCR_SUCCESS) return 1;
  }
}

static void checkpoint(Band* band) {
  char name[SCR_MAX_FILENAME];
  snprintf(name, sizeof name, "step.%d", band->step);
  const double start = MPI_Wtime();
  if (SCR_Start_output(name, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return;
  const int written = save(band);
  MPI_Barrier(MPI_COMM_WORLD); /* separates the time to write from the time to protect */
  const double middle = MPI_Wtime();
  const int kept = SCR_Complete_output(written) == SCR_SUCCESS;
  if (band->rank == 0)
    printf("heat checkpoint step=%d ok=%d mib=%.1f write_s=%.3f protect_s=%.3f\n", band->step, kept,
           (double)field_bytes(band) * band->ranks / (1 << 20), middle - start,
           MPI_Wtime() - middle);
}

static int checkpoint_is_due(const Band* band, int every) {
  int due = 0;
  if (every > 0) return band->step % every == 0;
  SCR_Need_checkpoint(&due);
  return due;
}

static void run(Band* band, const Options* options, int guarded) {
  int leave = 0;
  while (band->step < options->steps && !leave) {
    advance(band);
    if (!guarded || !checkpoint_is_due(band, options->every)) continue;
    checkpoint(band);
    SCR_Should_exit(&leave);
  }
}

static int write_result(const Band* band, const char* directory) {
  char path[SCR_MAX_FILENAME];
  mkdir(directory, 0777); /* all ranks try; if it is missing, the write fails */
  snprintf(path, sizeof path, "%s/field.%d", directory, band->rank);
  int mine = write_file(path, row_of(band->now, 1), field_bytes(band)), all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return all;
}

/* ---- the program ---- */

static int parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--size") == 0)
      options->size_mib = atoi(value);
    else if (strcmp(argv[i], "--steps") == 0)
      options->steps = atoi(value);
    else if (strcmp(argv[i], "--every") == 0)
      options->every = atoi(value);
    else if (strcmp(argv[i], "--output") == 0)
      options->output = value;
    else
      return 0;
  }
  return options->size_mib > 0 && options->steps >= 0 && options->every >= 0;
}

static int solve(Band* band, const Options* options) {
  const double start = MPI_Wtime();
  const int guarded = SCR_Init() == SCR_SUCCESS;
  const double init_s = MPI_Wtime() - start;
  const int restarted = guarded ? restart(band) : 0;
  if (restarted == 0) heat_up(band);
  if (restarted >= 0) {
    if (band->rank == 0)
      printf("heat start step=%d restarted=%d guarded=%d init_s=%.3f load_s=%.3f\n", band->step,
             restarted, guarded, init_s, MPI_Wtime() - start - init_s);
    run(band, options, guarded);
  }
  if (guarded) SCR_Finalize();
  if (restarted < 0) return 0;
  const int kept = !options->output || write_result(band, options->output);
  if (band->rank == 0)
    printf("heat end step=%d ok=%d run_s=%.3f\n", band->step, kept, MPI_Wtime() - start);
  return kept;
}

int main(int argc, char** argv) {
  Options options = {16, 40, 10, NULL};
  Band band = {0};
  int ok = 0;
  MPI_Init(&argc, &argv);
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* prints each event at once */
  MPI_Comm_rank(MPI_COMM_WORLD, &band.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &band.ranks);
  if (parse(argc, argv, &options)) {
    band.rows = options.size_mib * rows_per_mib;
    band.now = calloc((size_t)(band.rows + 2) * columns, sizeof(double));
    band.next = calloc((size_t)(band.rows + 2) * columns, sizeof(double));
    if (band.now && band.next) ok = solve(&band, &options);
    free(band.now);
    free(band.next);
  } else if (band.rank == 0) {
    fputs(
        "usage: 2_heat [--size MIB_PER_RANK] [--steps N] [--every STEPS, 0 to ask Cairn]\n"
        "              [--output DIRECTORY]\n",
        stderr);
  }
  MPI_Finalize();
  return ok ? 0 : 1;
}
