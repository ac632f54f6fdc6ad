/* A simulation code that knows nothing of Cairn: it looks for its newest files, goes on from there, and writes one file per
   rank and step. It checks what it reads, and prints where it started.

     program STEPS [what to do otherwise ...]
       die=S      rank 1 is killed in the middle of its file of step S
       abort=S    rank 1 calls MPI_Abort there
       exit=S     all ranks call exit after step S, without MPI_Finalize
       survive=S  with two: after its first file of step S, each rank but 1 waits until the others know of a death, and calls
                  MPI_Finalize after the second one
       hold=S     rank 1 does not close its file of step S
       rename     each file is written under another name, and renamed
       none=R     rank R writes no file
       late=R     rank R writes each file after the others have gone on
       two        each rank writes two files in each step
       one        each rank writes the same name in each step
       turn       each rank writes two names in turn
       header     rank 0 writes one more, which all ranks read
       order      with two: odd ranks write them in another order
       keep       rank 1 closes each file only in the next step
       read       each rank reads its file of the step before in each step
       exec       another program, which the rank starts, writes the files
       thread     a thread of the program writes the files
       fork       a child process writes the files
       pause=MS   before each step
       says       rank 0 prints each step that all ranks have written
       die_all=S  all ranks are killed in the middle of their files of step S
       back=S     after step S, the step numbers go back to 2
       spoil=HOW  each rank changes the file from which it started, and is killed: 1 appends, 2 writes over the beginning,
                  3 truncates by path, 4 by descriptor, 5 empties it
       bsend      a buffered message is under way when its sender calls MPI_Finalize */
#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { numbers = 3000, message_bytes = 8 << 20 };

static int rank;
static FILE* kept;
static int option_count;
static char** options;

/* The value of an option, -1 if it is not there, 0 if it has no value. */
static int option(const char* name) {
  const size_t length = strlen(name);
  for (int i = 0; i < option_count; ++i)
    if (strncmp(options[i], name, length) == 0) {
      if (options[i][length] == '\0') return 0;
      if (options[i][length] == '=') return atoi(options[i] + length + 1);
    }
  return -1;
}

static void name_of(char* name, const char* kind, int step) {
  if (option("one") >= 0)
    sprintf(name, "out/%s.%d", kind, rank);
  else if (option("turn") >= 0)
    sprintf(name, "out/%s.%c.%d", kind, step % 2 == 0 ? 'b' : 'a', rank);
  else
    sprintf(name, "out/%s.%d.%d", kind, step, rank);
}

static double number_at(int step, int i) { return step * 1e6 + rank * 1e4 + i; }

/* Of the file that has the name of this step: the step that has written it. */
static int step_in_file(int step) {
  char name[100];
  double first;
  name_of(name, "state", step);
  FILE* const in = fopen(name, "rb");
  const int is_read = in != NULL && fread(&first, sizeof first, 1, in) == 1;
  if (in != NULL) fclose(in);
  return is_read ? (int)(first / 1e6) : 0;
}

static int newest_step(void) {
  int newest = 0;
  if (option("one") >= 0 || option("turn") >= 0) {
    const int odd = step_in_file(1);
    const int even = step_in_file(2);
    return odd > even ? odd : even;
  }
  DIR* const directory = opendir("out");
  if (directory == NULL) return 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    int step;
    int of;
    char more;
    if (sscanf(entry->d_name, "state.%d.%d%c", &step, &of, &more) == 2 && of == rank && step > newest)
      newest = step;
  }
  closedir(directory);
  return newest;
}

static void read_step(const char* kind, int step) {
  static double values[numbers];
  char name[100];
  name_of(name, kind, step);
  FILE* const in = fopen(name, "rb");
  if (in == NULL || fread(values, sizeof values, 1, in) != 1) {
    printf("CANNOT READ %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  fclose(in);
  for (int i = 0; i < numbers; ++i)
    if (values[i] != number_at(step, i)) {
      printf("WRONG BYTES in %s\n", name);
      MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

/* Then all others have their first file of this step. */
static void meet_before_death(int step) {
  if (option("survive") == step) MPI_Barrier(MPI_COMM_WORLD);
}

static void write_file(const char* kind, int step) {
  char final_name[100];
  char name[120];
  name_of(final_name, kind, step);
  strcpy(name, final_name);
  if (option("rename") >= 0) strcat(name, ".part");
  FILE* const out = fopen(name, "wb");
  if (out == NULL) {
    perror(name);
    MPI_Abort(MPI_COMM_WORLD, 5);
  }
  for (int i = 0; i < numbers; ++i) {
    const double value = number_at(step, i);
    fwrite(&value, sizeof value, 1, out);
    if (rank == 1 && i == numbers / 2) {
      fflush(out);
      if (option("die") == step) {
        meet_before_death(step);
        raise(SIGKILL);
      }
      if (option("abort") == step) MPI_Abort(MPI_COMM_WORLD, 7);
    }
    if (option("die_all") == step && i == numbers / 2) {
      fflush(out);
      MPI_Barrier(MPI_COMM_WORLD);
      raise(SIGKILL);
    }
  }
  if (rank == 1 && option("hold") == step) {
    fflush(out);
    return;
  }
  if (rank == 1 && option("keep") >= 0) {
    fflush(out);
    kept = out;
    return;
  }
  fclose(out);
  if (strcmp(name, final_name) != 0) rename(name, final_name);
}

static void* write_step(void* data) {
  const int step = *(int*)data;
  if (option("none") == rank) {
    meet_before_death(step);
    return NULL;
  }
  const int is_field_first = option("order") >= 0 && rank % 2 == 1;
  if (is_field_first) write_file("field", step);
  write_file("state", step);
  if (option("survive") == step && rank != 1) {
    meet_before_death(step);
    sleep(1);
  }
  if (option("two") >= 0 && !is_field_first) write_file("field", step);
  return NULL;
}

static void write_header(int step) {
  char name[100];
  sprintf(name, "out/state.%d.head", step);
  FILE* const out = fopen(name, "w");
  if (out == NULL || fprintf(out, "%d\n", step) < 0 || fclose(out) != 0) printf("CANNOT WRITE %s\n", name);
}

static void read_header(int step) {
  char name[100];
  int found = 0;
  sprintf(name, "out/state.%d.head", step);
  FILE* const in = fopen(name, "r");
  if (in == NULL || fscanf(in, "%d", &found) != 1 || found != step) printf("CANNOT READ %s\n", name);
  if (in != NULL) fclose(in);
}

static void write_by_another_program(int step) {
  char command[200];
  write_file("plain", step);
  sprintf(command, "cp out/plain.%d.%d out/state.%d.%d", step, rank, step, rank);
  if (system(command) != 0) printf("CANNOT RUN %s\n", command);
}

static void close_kept(void) {
  if (kept != NULL) fclose(kept);
  kept = NULL;
}

static void write_as_asked(int step) {
  if (option("header") >= 0 && rank == 0) write_header(step);
  if (option("thread") >= 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, write_step, &step);
    pthread_join(thread, NULL);
  } else if (option("exec") >= 0) {
    write_by_another_program(step);
  } else if (option("fork") >= 0) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      write_step(&step);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  } else {
    write_step(&step);
  }
}

/* Changes the file from which the rank has started. */
static void spoil(int step) {
  char name[100];
  name_of(name, "state", step);
  const int how = option("spoil");
  const int flags = how == 1 ? O_WRONLY | O_APPEND : how == 5 ? O_WRONLY | O_TRUNC : O_RDWR;
  const int file = how == 3 ? -1 : open(name, flags);
  int failed = 0;
  if (how == 1 || how == 2) failed = write(file, "spoiled!", 8) != 8;
  if (how == 3) failed = truncate(name, 100) != 0;
  if (how == 4) failed = ftruncate(file, 100) != 0;
  if (failed) printf("CANNOT CHANGE %s\n", name);
  if (file >= 0) close(file);
  MPI_Barrier(MPI_COMM_WORLD);
  raise(SIGKILL);
}

/* A message that MPI sends only while its sender is in a call of MPI. */
static void send_late(void) {
  char* const message = calloc(1, message_bytes);
  if (rank == 0) {
    const int size = message_bytes + MPI_BSEND_OVERHEAD;
    MPI_Buffer_attach(malloc((size_t)size), size);
    message[message_bytes - 1] = 'x';
    MPI_Bsend(message, message_bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
  } else if (rank == 1) {
    usleep(500000);
    MPI_Recv(message, message_bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf(message[message_bytes - 1] == 'x' ? "the message has come\n" : "WRONG BYTES in the message\n");
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int steps = atoi(argv[1]);
  option_count = argc - 2;
  options = argv + 2;
  int mine = option("none") == rank ? steps : newest_step();
  int from = 0;
  MPI_Allreduce(&mine, &from, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (from > 0 && option("none") != rank) {
    read_step("state", from);
    if (option("two") >= 0) read_step("field", from);
    if (option("header") >= 0) read_header(from);
  }
  if (rank == 0) {
    mkdir("out", 0777);
    printf("started from %d\n", from);
    fflush(stdout);
  }
  if (from > 0 && option("spoil") > 0) spoil(from);
  const int pause_ms = option("pause") > 0 ? option("pause") : 0;
  int has_gone_back = 0;
  for (int step = from + 1; step <= steps; ++step) {
    usleep((useconds_t)pause_ms * 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (option("says") >= 0 && rank == 0 && step > from + 1) {
      printf("written %d\n", step - 1);
      fflush(stdout);
    }
    close_kept();
    if (option("read") >= 0 && step > from + 1) read_step("state", step - 1);
    if (option("late") == rank) usleep((useconds_t)pause_ms * 500);
    write_as_asked(step);
    if (option("survive") == step) break;
    if (option("exit") == step) {
      MPI_Barrier(MPI_COMM_WORLD);
      exit(0);
    }
    if (option("back") == step && !has_gone_back) {
      has_gone_back = 1;
      step = 1;
    }
  }
  close_kept();
  if (option("bsend") >= 0) send_late();
  MPI_Finalize();
  return 0;
}
