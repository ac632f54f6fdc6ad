/* Makes the calls of scr.h that its arguments name, in order, and writes what each returned to the
 * file OUT/calls.RANK (OUT is an environment variable), one line per call: "CALL CODE ANSWER".
 *
 *   [RANKS/]CALL[=ARGUMENT]     RANKS: a list as "0,2"; the other ranks skip the call
 *
 * "%r" in an argument stands for the rank. `read=NAME` copies the file that SCR_Route_file finds to
 * OUT/read.RANK.NAME, every / replaced by _; `write=NAME` writes a text that names it and its rank.
 */
#include <mpi.h>
#include <scr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;
static const char* out;

/* As SCR defines them. */
static const char version[] = "v" SCR_MAJOR_VERSION "." SCR_MINOR_VERSION "." SCR_PATCH_VERSION;

static void with_rank(const char* text, char* to, size_t size) {
  size_t at = 0;
  for (; *text != '\0' && at + 12 < size; ++text) {
    if (text[0] == '%' && text[1] == 'r') {
      at += (size_t)snprintf(to + at, size - at, "%d", rank);
      ++text;
    } else {
      to[at++] = *text;
    }
  }
  to[at] = '\0';
}

static int skips(const char** call) {
  const char* slash = strchr(*call, '/');
  const char* equals = strchr(*call, '=');
  if (slash == NULL || (equals != NULL && equals < slash)) return 0;
  int named = 0;
  for (const char* at = *call; at < slash; ++at) {
    char* end = NULL;
    if (strtol(at, &end, 10) == rank) named = 1;
    at = end;
  }
  *call = slash + 1;
  return !named;
}

static int copy(const char* from, const char* name) {
  char to[2 * SCR_MAX_FILENAME];
  snprintf(to, sizeof to, "%s/read.%d.%s", out, rank, name);
  for (char* at = to + strlen(out) + 1; *at != '\0'; ++at)
    if (*at == '/') *at = '_';
  FILE* source = fopen(from, "rb");
  FILE* target = fopen(to, "wb");
  if (source == NULL || target == NULL) return -1;
  char piece[65536];
  size_t bytes = 0;
  while ((bytes = fread(piece, 1, sizeof piece, source)) > 0) fwrite(piece, 1, bytes, target);
  fclose(source);
  return fclose(target);
}

static int write_to(const char* path, const char* name) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) return -1;
  fprintf(file, "%s of rank %d\n", name, rank);
  return fclose(file);
}

static int run(const char* call, const char* argument, char* answer) {
  char path[SCR_MAX_FILENAME] = "";
  int flag = -1;
  int code = SCR_SUCCESS;
  const int valid = *argument == '\0' || atoi(argument) != 0;
  if (strcmp(call, "version") == 0) return strcmp(version, SCR_Get_version());
  if (strcmp(call, "init") == 0) return SCR_Init();
  if (strcmp(call, "finalize") == 0) return SCR_Finalize();
  if (strcmp(call, "have") == 0) {
    code = SCR_Have_restart(&flag, path);
    snprintf(answer, SCR_MAX_FILENAME, "%d %.900s", flag, path);
    return code;
  }
  if (strcmp(call, "start_restart") == 0) return SCR_Start_restart(answer);
  if (strcmp(call, "complete_restart") == 0) return SCR_Complete_restart(valid);
  if (strcmp(call, "need") == 0) {
    code = SCR_Need_checkpoint(&flag);
    snprintf(answer, SCR_MAX_FILENAME, "%d", flag);
    return code;
  }
  if (strcmp(call, "start_checkpoint") == 0) return SCR_Start_checkpoint();
  if (strcmp(call, "checkpoint") == 0) return SCR_Start_output(argument, SCR_FLAG_CHECKPOINT);
  if (strcmp(call, "output") == 0) return SCR_Start_output(argument, SCR_FLAG_OUTPUT);
  if (strcmp(call, "output_checkpoint") == 0)
    return SCR_Start_output(argument, SCR_FLAG_OUTPUT | SCR_FLAG_CHECKPOINT);
  if (strcmp(call, "complete_checkpoint") == 0) return SCR_Complete_checkpoint(valid);
  if (strcmp(call, "complete") == 0) return SCR_Complete_output(valid);
  if (strcmp(call, "current") == 0) return SCR_Current(argument);
  if (strcmp(call, "delete") == 0) return SCR_Delete(argument);
  if (strcmp(call, "config") == 0) {
    const char* value = SCR_Config(argument);
    snprintf(answer, SCR_MAX_FILENAME, "%.900s", value == NULL ? "NULL" : value);
    free((void*)value);
    return SCR_SUCCESS;
  }
  code = SCR_Route_file(argument, path);
  snprintf(answer, SCR_MAX_FILENAME, "%.900s", path);
  if (strcmp(call, "route") == 0 || code != SCR_SUCCESS) return code;
  if (strcmp(call, "read") == 0) return copy(path, argument);
  if (strcmp(call, "write") == 0) return write_to(path, argument);
  return -2;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  out = getenv("OUT");
  char name[SCR_MAX_FILENAME];
  snprintf(name, sizeof name, "%s/calls.%d", out, rank);
  FILE* log = fopen(name, "w");
  if (log == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 1; i < argc; ++i) {
    const char* text = argv[i];
    if (skips(&text)) continue;
    char call[2 * SCR_MAX_FILENAME];
    with_rank(text, call, sizeof call);
    char* argument = strchr(call, '=');
    if (argument != NULL) *argument++ = '\0';
    char answer[SCR_MAX_FILENAME] = "";
    const int code = run(call, argument == NULL ? "" : argument, answer);
    fprintf(log, "%s %d %s\n", call, code, answer);
    fflush(log);
  }
  fclose(log);
  MPI_Finalize();
  return 0;
}
