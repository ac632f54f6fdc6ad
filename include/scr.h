/* Cairn's C interface: the calls of SCR 3, so that a program written for SCR links unchanged.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Conventions
 *
 *  1. Collective. Every call is collective over MPI_COMM_WORLD, unless it says "local": all ranks
 *     make the same calls in the same order, with equal arguments where the call does not say that
 *     they may differ. Cairn talks over a communicator of its own.
 *  2. Order. SCR_Init comes after MPI_Init, SCR_Finalize before MPI_Finalize. Between them:
 *
 *       IDLE  SCR_Start_restart ........ RESTART ..... SCR_Complete_restart ...... IDLE
 *       IDLE  SCR_Start_checkpoint ..... CHECKPOINT .. SCR_Complete_checkpoint ... IDLE
 *       IDLE  SCR_Start_output ......... OUTPUT ...... SCR_Complete_output ....... IDLE
 *
 *     Phases do not nest or overlap. Before SCR_Init and after SCR_Finalize the state is UNINIT.
 *     "Legal in" below names the states in which a call may be made.
 *  3. Result. SCR_SUCCESS, or one of the CAIRN_E_ codes: the same one on every rank for a
 *     collective call, and one line on standard error, from rank 0, that names the call, what is
 *     wrong and what to do; a local call's line is from its own rank. A call out of order gives
 *     CAIRN_E_WRONG_STATE, unequal calls or arguments CAIRN_E_DIFFERS; both leave everything as it
 *     was. The ranks compare their calls in every state, UNINIT included. A Complete that is in
 *     order ends its phase whether it succeeds or not.
 *  4. The process. No call ends or aborts it, installs a signal handler or changes its folder; only
 *     SCR_HALT_EXIT=1, which the user sets, lets SCR_Init and the Complete of a checkpoint end a
 *     run that is to stop, and SCR_Need_checkpoint and every Complete one that is to stop at once:
 *     MPI is finalized, the exit code is 0. An error of MPI itself ends the job, as MPI does by
 *     default.
 *  5. Strings end with NUL. Buffers that receive a name or a path hold SCR_MAX_FILENAME bytes, NUL
 *     included; a longer one is an error, never cut short. Out-arguments are untouched on error,
 *     flags excepted: those are 0 then.
 *  6. Names of files are relative to the current folder or absolute, and lie under SCR_PREFIX. Each
 *     rank writes files of its own, reads back its own, and closes them before Complete. Where the
 *     cache is bypassed, several ranks may write one file, and all that have asked for it read it.
 *     The name .cairn under SCR_PREFIX, and names of files that begin with .cairn. are Cairn's own.
 *  7. Threads. SCR_Route_file may be called by several threads at once. All other calls are made by
 *     one thread at a time, one that may call MPI (MPI_THREAD_FUNNELED is enough).
 *  8. SCR_ENABLE=0, or an SCR_Init that failed: SCR_Init says so, and every other call returns
 *     CAIRN_E_DISABLED at once, without a line; flags are 0, SCR_Route_file and SCR_Route still
 *     copy the name. A program that goes on runs without checkpoints.
 *
 * Booleans are ints: 0 is false, anything else is true.
 */
#ifndef SCR_H
#define SCR_H

/* The release of SCR whose interface this is, and that of Cairn. */
#define SCR_MAJOR "3"
#define SCR_MINOR "1"
#define SCR_PATCH "0"
#define SCR_VERSION "v3.1.0"
#define CAIRN_VERSION "0.1.0"

#define SCR_SUCCESS (0)
#define SCR_MAX_FILENAME 1024

/* What a dataset is for; joined by |. */
#define SCR_FLAG_NONE (0 << 0)       /* neither: dropped with the next dataset */
#define SCR_FLAG_CHECKPOINT (1 << 0) /* usable for restart, dropped once superseded */
#define SCR_FLAG_OUTPUT (1 << 1)     /* must reach the prefix directory, and stays there */

/* Why a call failed. Programs that must also build with SCR compare with SCR_SUCCESS only. */
#define CAIRN_E_WRONG_STATE 1   /* not legal in this state */
#define CAIRN_E_DIFFERS 2       /* ranks made different calls, or passed different arguments */
#define CAIRN_E_BAD_ARGUMENT 3  /* an argument out of its domain */
#define CAIRN_E_BAD_SETTING 4   /* an environment variable, a configuration file, SCR_Config */
#define CAIRN_E_IO 5            /* a file operation failed */
#define CAIRN_E_NO_SPACE 6      /* the store or the quota is full */
#define CAIRN_E_CORRUPT 7       /* bytes do not match their checksum and could not be repaired */
#define CAIRN_E_LOST 8          /* more is missing than the redundancy scheme holds */
#define CAIRN_E_WRONG_RANKS 9   /* the dataset was written by another number of ranks */
#define CAIRN_E_NOT_FOUND 10    /* no such dataset or file */
#define CAIRN_E_BUSY 11         /* another run of the same job holds the cache */
#define CAIRN_E_NEWER_FORMAT 12 /* a record written by a later version of Cairn */
#define CAIRN_E_UNTRUSTED 13    /* a path owned, linked or opened up by somebody else */
#define CAIRN_E_INVALID 14      /* some rank declared its part of the dataset invalid */
#define CAIRN_E_DISABLED 15     /* SCR_ENABLE=0, or SCR_Init failed */
#define CAIRN_E_NOT_COPIED \
  16 /* safe in the caches, and not in the prefix directory as it should be */

#if defined(__GNUC__)
#define CAIRN_EXPORT __attribute__((__visibility__("default")))
#define CAIRN_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define CAIRN_EXPORT
#define CAIRN_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the life of the library ---- */

/* Reads the settings, finds what the nodes' caches hold, moves files to where their ranks now run,
 * rebuilds what is missing and drops what cannot be saved, saying why. Legal in UNINIT, then IDLE.
 * Success does not mean that there is a checkpoint: ask SCR_Have_restart. May be called again
 * after an error, and after SCR_Finalize.
 * Errors: BAD_SETTING, DIFFERS (unequal SCR_Config calls), BUSY, UNTRUSTED, NO_SPACE, IO,
 * DISABLED (SCR_ENABLE=0); the state stays UNINIT. */
CAIRN_EXPORT int SCR_Init(void);

/* Copies what is due to the prefix directory, ends what is still under way and frees everything;
 * cached datasets stay. Legal in IDLE, then UNINIT.
 * Errors: NOT_COPIED (an output, or the newest checkpoint, is in the nodes' caches only), LOST (one
 * was found damaged there, and could not be repaired); the state is UNINIT all the same. */
CAIRN_EXPORT int SCR_Finalize(void);

/* Sets ("KEY=VALUE", or several leaves of one descriptor: "CKPT=0 TYPE=XOR SET_SIZE=8"), unsets
 * ("KEY=") or queries ("KEY", "CKPT=0 TYPE") a setting. The environment and the user's
 * configuration file take precedence over values set here. Setting and unsetting: legal in UNINIT,
 * the result is NULL. Querying: any state; the result is NULL, or a string that the caller frees
 * with free(); before SCR_Init it knows only what was set here. Local; SCR_Init checks that all
 * ranks have set the same. What cannot be read or is too late changes nothing, and is told. */
CAIRN_EXPORT const char* SCR_Config(const char* config);

/* SCR_Config of a text made as by printf, of less than 4 * SCR_MAX_FILENAME bytes. */
CAIRN_EXPORT const char* SCR_Configf(const char* format, ...) CAIRN_PRINTF(1, 2);

/* Local, any state, any thread: SCR_VERSION. Static; do not free. */
CAIRN_EXPORT char* SCR_Get_version(void);

/* Sets *flag when the run should end: the user has asked for it (the command `cairn halt`), or its
 * time is nearly over (SCR_HALT_SECONDS or less to SCR_END_TIME, where both are set). Rank 0 looks
 * into the prefix directory for it. What comes right after SCR_Need_checkpoint has said no is told
 * by that call first, so that there is a last checkpoint; whoever asks twice without it learns it
 * here. Legal in IDLE. Never ends anything itself. */
CAIRN_EXPORT int SCR_Should_exit(int* flag);

/* ---- files ---- */

/* Local. Writes to `file` (SCR_MAX_FILENAME bytes) the path at which this rank finds the file it
 * calls `name`; the same name gives the same path as long as the phase lasts.
 *   CHECKPOINT, OUTPUT: the path to write. Its folder exists. The file belongs to the dataset from
 *     now on and must be there at Complete. Names that differ only in their folder are two files.
 *     Where the cache is bypassed it is the absolute path of `name` itself; a link in the place of
 *     one of its folders below SCR_PREFIX, or of the file, is an error.
 *   RESTART: the path to read, checked and complete: of a file of this name that this rank wrote;
 *     else of one that CAIRN_BROADCAST names, whoever has written it; else of one that this rank
 *     wrote under another folder, if it is its only one of that base name; else NOT_FOUND.
 *     With CAIRN_ELASTIC=1 and another number of ranks, of any file of the checkpoint.
 *   IDLE: `name`, unchanged. UNINIT too, when convention 8 applies.
 * Errors: WRONG_STATE, BAD_ARGUMENT (not under SCR_PREFIX, Cairn's own, too long), NOT_FOUND, IO,
 * NO_SPACE. */
CAIRN_EXPORT int SCR_Route_file(const char* name, char* file);

/* ---- restart ---- */

/* Sets *flag if a checkpoint can be restarted from: the newest one not tried yet. `name`, if not
 * NULL, receives its name. Legal in IDLE. When the restart fails, call again: the next older one is
 * offered, until *flag is 0. It is 0 also once a restart or a checkpoint has succeeded. Where the
 * caches have none as new, one is brought from the prefix directory, or checked there if it is to
 * be read where it is (SCR_FETCH_BYPASS, or written without the cache), which takes its time.
 * Errors: WRONG_RANKS, with both numbers in the text; the datasets stay as they are. CORRUPT, LOST:
 * what was in the prefix directory is damaged, and CAIRN_ON_FETCH_FAIL=stop. IO: it cannot be read
 * now, so that there may be a checkpoint; CAIRN_ON_FETCH_FAIL=fresh begins without it. Nothing is
 * begun in its place after an error: SCR_Start_checkpoint and SCR_Start_output repeat it. */
CAIRN_EXPORT int SCR_Have_restart(int* flag, char* name);

/* Begins to read the checkpoint that SCR_Have_restart offers; `name` as there. All its bytes have
 * been compared with their checksums when this returns (those that are read in the prefix directory
 * itself by SCR_Have_restart, and not once more). With CAIRN_ELASTIC=1, one of another number of
 * ranks that only the caches have is copied to the prefix directory first. Legal in IDLE, then
 * RESTART.
 * Errors: NOT_FOUND (there is none), WRONG_RANKS; LOST or CORRUPT: it cannot be repaired and is not
 * offered again; what the copy failed for (NO_SPACE, IO): it is not offered again in this run. */
CAIRN_EXPORT int SCR_Start_restart(char* name);

/* Ends the reading; `valid` may differ between ranks: this rank got what it needs. Legal in
 * RESTART, then IDLE. When some rank says no: INVALID on all ranks; the dataset leaves the cache,
 * and is marked as failed in the prefix directory. */
CAIRN_EXPORT int SCR_Complete_restart(int valid);

/* Declares that the program restarted from the dataset `name` by its own means: numbering goes on
 * from there, newer cached datasets but outputs are dropped, and it is the current one of the
 * prefix directory. A name that is not known is no error: nothing is dropped. SCR_Have_restart
 * offers nothing any more. Legal in IDLE. Errors: BAD_ARGUMENT (NULL or ""), WRONG_RANKS as
 * SCR_Start_output. */
CAIRN_EXPORT int SCR_Current(const char* name);

/* ---- checkpoints and output ---- */

/* Sets *flag when a checkpoint is due: by SCR_CHECKPOINT_INTERVAL (calls of this function),
 * _SECONDS (since the last one) or _OVERHEAD (per cent of the run time), or because the run is to
 * stop, as SCR_Should_exit has it. 0 if none of them is set, and if the run is to stop at once,
 * without a further checkpoint (`cairn halt --immediate`). Advice only. Legal in IDLE. */
CAIRN_EXPORT int SCR_Need_checkpoint(int* flag);

/* SCR_Start_output with a name made from the dataset's number and SCR_FLAG_CHECKPOINT. Legal in
 * IDLE, then CHECKPOINT. */
CAIRN_EXPORT int SCR_Start_checkpoint(void);

/* Ends the checkpoint as SCR_Complete_output does. Legal in CHECKPOINT, then IDLE. */
CAIRN_EXPORT int SCR_Complete_checkpoint(int valid);

/* Begins a dataset of any number of files per rank, none included. `name` is for people and should
 * be unique; NULL or "" lets Cairn make one. `flags`: SCR_FLAG_ values. Legal in IDLE, then OUTPUT.
 * Errors: WRONG_RANKS (the newest checkpoint, in the caches or the prefix directory, is of another
 * number of ranks; set CAIRN_ON_MISMATCH=fresh to begin in its place), what SCR_Have_restart
 * refused (what is there cannot be read now), DIFFERS, BAD_ARGUMENT, NO_SPACE, IO. */
CAIRN_EXPORT int SCR_Start_output(const char* name, int flags);

/* Ends the dataset; `valid` may differ between ranks: this rank's files are written and closed. On
 * success all files are protected and the dataset survives what its scheme tolerates; older ones
 * that the store has no room for are dropped only now. Otherwise the dataset is gone and the older
 * ones stay (files that were written without the cache are left as they are): INVALID (some rank
 * said no, or a file is missing), NO_SPACE, IO. NOT_COPIED is another matter: all is well, but the
 * dataset, an output or the SCR_FLUSH-th checkpoint, could not be copied to the prefix directory;
 * it stays in the cache, and it, or the next checkpoint in its place, is tried again with each
 * dataset until one is there. Legal in OUTPUT, then IDLE. */
CAIRN_EXPORT int SCR_Complete_output(int valid);

/* Takes the dataset `name` out of the index of the prefix directory; all its files stay, and
 * "cairn index add" puts it back. A name that is not there is no error. Legal in IDLE.
 * Errors: BAD_ARGUMENT (NULL or ""). */
CAIRN_EXPORT int SCR_Drop(const char* name);

/* Deletes the dataset `name` wherever it is kept, all of them if several have that name; no error
 * if there is none. Legal in IDLE.
 * Errors: BAD_ARGUMENT (NULL or ""). */
CAIRN_EXPORT int SCR_Delete(const char* name);

/* ---- the calls of 2009 ----
 * For programs with one file per rank and checkpoint: SCR_Start, SCR_Route, write, SCR_Complete;
 * at the start of a run SCR_Route alone gives the path of the newest checkpoint's file. */

/* Local. SCR_Route_file into a buffer of `size` bytes. In IDLE: the path of `name` in the
 * checkpoint that SCR_Have_restart would offer, if this rank has that file there and all bytes of
 * the checkpoint have been checked in this run, else `name`. */
CAIRN_EXPORT int SCR_Route(const char* name, char* file, int size);

/* SCR_Start_checkpoint. `file` says which one the rank is about to write, may differ between ranks
 * and may be NULL; SCR_Route is what makes a file part of the checkpoint. */
CAIRN_EXPORT int SCR_Start(const char* file);

/* SCR_Complete_checkpoint; `file` as for SCR_Start. Both arguments may differ between ranks. */
CAIRN_EXPORT int SCR_Complete(const char* file, int valid);

#ifdef __cplusplus
}
#endif

#endif
