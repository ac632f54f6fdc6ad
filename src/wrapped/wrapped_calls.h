/* What the preloaded library and the job of the wrapped program, which it loads once it knows the
   program's MPI, call of each other. Plain C: the first knows nothing of Cairn. */
#ifndef CAIRN_WRAPPED_CALLS_H
#define CAIRN_WRAPPED_CALLS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names are relative to the prefix directory. The step is the part of the name from step_begin on,
   step_length bytes long; 0 if the pattern has no group for it. All but finish and leave may be
   called by any thread, at any time. */
struct cairn_wrapped_calls {
  /* A new redirected file was opened for writing; empties: what one of this name held is gone. */
  void (*opened)(const char* name, size_t step_begin, size_t step_length, int empties);
  /* A call of the program is about to open a redirected file for writing, to change its size, or to
     give its name to another file, which may be a new name; nothing has changed yet. After that
     call: changed, once for each. */
  void (*changes)(const char* name, size_t step_begin, size_t step_length, int empties);
  void (*changed)(const char* name);
  /* A checkpoint file could not be redirected. */
  void (*not_redirected)(const char* name, size_t step_begin, size_t step_length, int empties);
  /* A redirected file has lost its name. */
  void (*removed)(const char* name);
  /* It was moved to its plain place by a call of the program. */
  void (*moved_out)(const char* name);
  /* By all ranks, before MPI_Finalize. 0 if a rank is lost: then the redirected files must stay in
     the cache, for the next job. */
  int (*finish)(void);
  /* At the end of a process that did not finish. */
  void (*leave)(void);
  /* The program ends the job: nothing new is begun, or reported. May be called by a signal handler. */
  void (*aborts)(void);
};

struct cairn_wrapped_options {
  const char* redirected; /* the directory of redirected files on this node */
  /* Moves one to the place that the program meant; 0 or an errno. */
  int (*move_to_plain_place)(const char* name);
  /* Where the step is in a name. */
  void (*find_step)(const char* name, size_t* step_begin, size_t* step_length);
  /* From any thread: no step becomes a checkpoint from now on. */
  void (*job_lost)(void);
};

/* By all ranks, after MPI_Init and before the program looks for its files. Null if there will be no
   checkpoints; then nothing is to be redirected. */
const struct cairn_wrapped_calls* cairn_wrapped_start(const struct cairn_wrapped_options* options);

#ifdef __cplusplus
}
#endif

#endif
