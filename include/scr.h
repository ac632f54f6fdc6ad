/* Cairn's C interface: the calls of SCR 3. A program written for SCR compiles unchanged.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Conventions
 *
 *  1. Collective calls. Every call is collective over MPI_COMM_WORLD, unless its comment says
 *     "Local": all ranks make the same calls in the same order and pass equal arguments, except
 *     where the comment says that an argument may differ. Cairn communicates on its own
 *     communicator.
 *  2. Order. Call SCR_Init after MPI_Init, and SCR_Finalize before MPI_Finalize. Between them:
 *
 *       IDLE  SCR_Start_restart ........ RESTART ..... SCR_Complete_restart ...... IDLE
 *       IDLE  SCR_Start_checkpoint ..... CHECKPOINT .. SCR_Complete_checkpoint ... IDLE
 *       IDLE  SCR_Start_output ......... OUTPUT ...... SCR_Complete_output ....... IDLE
 *
 *     Phases do not nest or overlap. Before SCR_Init and after SCR_Finalize the state is UNINIT.
 *     "Legal in" below lists the states in which a call is allowed.
 *  3. Result. A call returns SCR_SUCCESS or one of the CAIRN_E_ codes of cairn_errors.h. After an
 *     error, one line on standard error names the call, says what is wrong, and what to do.
 *       - Collective calls return the same code on every rank, and rank 0 prints the line. For a
 *         local call, the rank that made it prints the line.
 *       - A call in the wrong state returns CAIRN_E_WRONG_STATE, and the line names the missing
 *         call. It changes nothing.
 *       - If the ranks make different calls or pass different arguments, all get CAIRN_E_DIFFERS,
 *         and the line lists which ranks called what. It changes nothing. The ranks compare their
 *         calls in every state, UNINIT included.
 *       - A Complete in the right state ends its phase, whether it succeeds or fails.
 *       - While Cairn cannot copy to the prefix directory, it prints each reason once, not for
 *         every dataset. If the directory does not exist, SCR_Init warns.
 *  4. The process. No call ends or aborts the process, installs a signal handler, or changes the
 *     current directory. An error inside MPI ends the job, as MPI does by default.
 *     Exception, if the user sets SCR_HALT_EXIT=1: a run that should end (see SCR_Should_exit)
 *     finalizes MPI and ends with exit code 0 in SCR_Init, or in the Complete of a checkpoint. If
 *     it should stop immediately, it also ends in SCR_Need_checkpoint, and in every Complete.
 *  5. Strings end with NUL. A buffer that receives a name or a path has SCR_MAX_FILENAME bytes,
 *     including the NUL. A longer name or path is an error; Cairn never truncates it. On an error,
 *     output arguments keep their values, except flags, which become 0.
 *  6. File names are absolute or relative to the current directory, and lie under SCR_PREFIX. Each
 *     rank writes its own files, closes them before Complete (fclose, CLOSE, H5Fclose, munmap), and
 *     reads back its own files. File names differ between ranks and between datasets: put the rank
 *     and the step into them. Where the cache is bypassed, several ranks may write one file, and
 *     every rank that has routed it may read it. The name .cairn under SCR_PREFIX, and file names
 *     that begin with .cairn., are reserved.
 *  7. Threads. Several threads may call SCR_Route_file at once. For all other calls, only one
 *     thread is inside Cairn at a time, and it must be allowed to call MPI
 *     (MPI_THREAD_FUNNELED is enough).
 *  8. Disabled. If SCR_ENABLE=0 or SCR_Init failed, SCR_Init prints why, and every other call
 *     returns CAIRN_E_DISABLED at once and prints nothing. Flags are 0, and SCR_Route_file and
 *     SCR_Route still copy the name. A program that continues runs without checkpoints.
 *
 *  9. Copies behind the program. With SCR_FLUSH_ASYNC=1, SCR_Have_restart, SCR_Start_restart,
 *     SCR_Complete_restart, SCR_Current, SCR_Drop and SCR_Delete first wait until no copy to the
 *     prefix directory is under way. If every try fails for 5 seconds, they give the copies up and
 *     go on; if nothing moves for 60 seconds, they return an error, and the copies stay. They also
 *     return an error (IO) if the prefix directory does not answer within 5 seconds.
 *
 * 10. Protection behind the program. With CAIRN_PROTECT=behind, Complete returns once a checkpoint
 *     is written, so that it survives the death of processes. Cairn protects it while the program
 *     computes; do not change its files. SCR_Have_restart, SCR_Start_restart, SCR_Start_checkpoint,
 *     SCR_Start_output, SCR_Current, SCR_Drop, SCR_Delete and SCR_Finalize wait for that. If it
 *     fails, the next Complete or SCR_Finalize returns the error, and a line on stderr names the
 *     dataset, which is not the one that this Complete ends.
 *
 * Booleans are ints: 0 is false, any other value is true.
 */
#ifndef SCR_H
#define SCR_H

/* The SCR release whose interface Cairn implements, and the release of Cairn. */
#define SCR_MAJOR "3"
#define SCR_MINOR "1"
#define SCR_PATCH "0"
#define SCR_VERSION "v3.1.0"
#define SCR_MAJOR_VERSION SCR_MAJOR
#define SCR_MINOR_VERSION SCR_MINOR
#define SCR_PATCH_VERSION SCR_PATCH
#define CAIRN_VERSION "0.1.0"

#define SCR_SUCCESS (0)
#define SCR_MAX_FILENAME 1024

/* The kind of a dataset. Combine with |. */
#define SCR_FLAG_NONE (0 << 0)       /* neither: deleted when the next dataset is written */
#define SCR_FLAG_CHECKPOINT (1 << 0) /* usable for a restart; newer checkpoints replace it */
#define SCR_FLAG_OUTPUT (1 << 1)     /* is copied to the prefix directory and stays there */

/* The error codes CAIRN_E_. A program that must also compile with SCR compares with SCR_SUCCESS
 * only. */
#include "cairn_errors.h"

#if defined(__GNUC__)
#define CAIRN_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define CAIRN_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- start, end, settings ---- */

/* Reads the settings, looks for datasets in the caches of the nodes, moves files to the nodes where
 * their ranks now run, and rebuilds missing files. If a dataset cannot be rebuilt, it prints why.
 * Success does not mean that there is a checkpoint: call SCR_Have_restart. May be called again
 * after an error, and after SCR_Finalize. Legal in UNINIT; then IDLE.
 * Errors: BAD_SETTING (also if the launcher, or this library, belongs to another MPI than the
 * program), DIFFERS (the ranks called SCR_Config differently), BUSY, UNTRUSTED, NO_SPACE, IO,
 * DISABLED (SCR_ENABLE=0). After an error the state is still UNINIT. */
CAIRN_EXPORT int SCR_Init(void);

/* Copies all outputs and, if SCR_FLUSH is not 0, the newest checkpoint to the prefix directory
 * unless they are there already. Finishes all background work, and frees all resources. Cached
 * datasets stay in the caches. Legal in IDLE; then UNINIT.
 * It waits until 10 seconds before SCR_END_TIME or a time of `cairn halt`, and at most
 * CAIRN_FLUSH_AT_END_TIMEOUT seconds; without these, as long as the copies take. With
 * CAIRN_FLUSH_AT_END=leave it waits for no copy. One line names the copies that are left; `cairn
 * run` or `cairn drain` finishes them. With SCR_FLUSH_ASYNC=1 it also returns if the prefix
 * directory hangs: after a minute without an answer, or about 10 seconds after its time is over.
 * The thread that hangs ends with the process. Without SCR_FLUSH_ASYNC=1 it waits for the answer,
 * and finishes a copy that has begun.
 * Errors: NOT_COPIED (an output, or the newest checkpoint, is only in the caches), LOST (as of
 * SCR_Complete_output, if no Complete has returned it); with CAIRN_PROTECT=behind also
 * NO_SPACE, IO or INVALID (the last checkpoint could not be protected; INVALID: its files have
 * changed). The state is UNINIT even after an error. */
CAIRN_EXPORT int SCR_Finalize(void);

/* Local. Sets, unsets or queries a setting:
 *   set    "KEY=VALUE", or several keys of one descriptor: "CKPT=0 TYPE=XOR SET_SIZE=8"
 *   unset  "KEY="
 *   query  "KEY", or a key of a descriptor: "CKPT=0 TYPE"
 * The environment and the user's configuration file override what is set here. To set and to unset
 * is legal in UNINIT; the result is NULL. To query is legal in any state; the result is NULL or a
 * string that the caller releases with free(). Before SCR_Init a query finds what was set here, in
 * the environment or in a file, but no defaults. SCR_Init checks that all ranks have set the same.
 * A text that cannot be parsed, or that comes too late, changes nothing, and Cairn prints an error.
 */
CAIRN_EXPORT const char* SCR_Config(const char* config);

/* Local. SCR_Config with a text formatted as by printf, of less than 4 * SCR_MAX_FILENAME bytes. */
CAIRN_EXPORT const char* SCR_Configf(const char* format, ...) CAIRN_PRINTF(1, 2);

/* Local, any state, any thread. Returns SCR_VERSION, a static string; do not free it. */
CAIRN_EXPORT char* SCR_Get_version(void);

/* Sets *flag when the run should end: a user asked for it (command `cairn halt`), or less than
 * SCR_HALT_SECONDS are left before SCR_END_TIME (if both are set). Rank 0 looks for requests in the
 * prefix directory. Never ends the run itself. Legal in IDLE.
 * A program that asks SCR_Need_checkpoint and then SCR_Should_exit gets the chance to write a last
 * checkpoint: if a request arrives between the two calls, this call does not report it yet, but the
 * next SCR_Need_checkpoint does. A second SCR_Should_exit in a row reports it, and so does the
 * first one if the run should stop immediately. */
CAIRN_EXPORT int SCR_Should_exit(int* flag);

/* ---- files ---- */

/* Local. Writes to `file` (SCR_MAX_FILENAME bytes) the path under which this rank opens the file
 * that it calls `name`. Within one phase, the same name always gives the same path.
 *   CHECKPOINT, OUTPUT: the path to write. Its directory exists. The file now belongs to the
 *     dataset, and must exist at Complete. Names that differ only in their directory are two files.
 *     Where the cache is bypassed, the path is the absolute path of `name`; then a symbolic link
 *     as the file, or as one of its directories below SCR_PREFIX, is an error.
 *   RESTART: the path to read; the file is complete and its checksums are verified. The file is
 *     the first of these that exists: one that this rank wrote under this name; one that
 *     CAIRN_BROADCAST names, whichever rank wrote it; one with the same base name that this rank
 *     wrote in another directory, if there is only one. Otherwise NOT_FOUND. Of a checkpoint that
 *     is read in the prefix directory itself (SCR_FETCH_BYPASS, SCR_GLOBAL_RESTART, written without
 *     the cache, imported, or by another number of ranks), any rank gets any file.
 *   IDLE: `name`, unchanged. Also in UNINIT, if convention 8 applies.
 * Errors: WRONG_STATE, BAD_ARGUMENT (not under SCR_PREFIX, reserved, too long), NOT_FOUND, IO,
 * NO_SPACE. */
CAIRN_EXPORT int SCR_Route_file(const char* name, char* file);

/* ---- restart ---- */

/* Sets *flag if there is a checkpoint to restart from: the newest one that was not tried yet.
 * `name`, if not NULL, receives its name. If the restart fails, call again: Cairn offers the next
 * older checkpoint, until *flag is 0. *flag is also 0 after a restart or a checkpoint has
 * succeeded. Legal in IDLE.
 *
 * If the prefix directory has a newer checkpoint than the caches, this call fetches it, which takes
 * time. It only checks the files if the program will read them in the prefix directory itself
 * (SCR_FETCH_BYPASS, or a checkpoint written without the cache).
 *
 * Errors:
 *   WRONG_RANKS    another number of ranks wrote the checkpoint; the message names both numbers,
 *                  and the datasets are kept.
 *   CORRUPT, LOST  the checkpoint in the prefix directory is damaged, and CAIRN_ON_FETCH_FAIL=stop
 *                  is set.
 *   IO             the prefix directory cannot be read now, so there may be a checkpoint.
 *                  CAIRN_ON_FETCH_FAIL=fresh starts without it.
 * After an error, SCR_Start_checkpoint and SCR_Start_output return the same error, so that nothing
 * new replaces the checkpoint. */
CAIRN_EXPORT int SCR_Have_restart(int* flag, char* name);

/* Begins to read the checkpoint that SCR_Have_restart offers; `name` as there. When this call
 * returns, all bytes of the checkpoint are verified against their checksums (SCR_Have_restart has
 * verified those that are read in the prefix directory; they are not read again). With
 * CAIRN_ELASTIC=1, a checkpoint of another number of ranks that is only in the caches is first
 * copied to the prefix directory. Legal in IDLE; then RESTART.
 * Errors: NOT_FOUND (there is none), WRONG_RANKS; LOST or CORRUPT: the checkpoint cannot be
 * repaired and is not offered again; the error of the copy (NO_SPACE, IO): it is not offered again
 * in this run. */
CAIRN_EXPORT int SCR_Start_restart(char* name);

/* Ends the reading. `valid` may differ between ranks: true if this rank has read all it needs.
 * If any rank passes false, all ranks get INVALID; the dataset is deleted from the cache and marked
 * as failed in the prefix directory. Legal in RESTART; then IDLE. */
CAIRN_EXPORT int SCR_Complete_restart(int valid);

/* Declares that the program has restarted from the dataset `name` by its own means. Cairn numbers
 * datasets from there, deletes newer cached datasets except outputs, and makes `name` the current
 * dataset of the prefix directory. If SCR_Have_restart follows before a checkpoint is written, it
 * was a request instead: that dataset is offered. An unknown name is not an error, and deletes
 * nothing. Legal in IDLE.
 * Errors: BAD_ARGUMENT (NULL or ""), WRONG_RANKS as for SCR_Start_output, unless `name` is in the
 * prefix directory, where any number of ranks can have read it. */
CAIRN_EXPORT int SCR_Current(const char* name);

/* ---- checkpoints and output ---- */

/* Sets *flag when a checkpoint is due:
 *   - at every SCR_CHECKPOINT_INTERVAL-th call of this function;
 *   - SCR_CHECKPOINT_SECONDS after the last checkpoint;
 *   - while checkpoints have cost less than SCR_CHECKPOINT_OVERHEAD percent of the run time;
 *   - when the run should end (see SCR_Should_exit), unless it is to stop immediately, without
 *     another checkpoint (`cairn halt --immediate`).
 * While a checkpoint is being protected (convention 10), the rules of seconds and of overhead do
 * not hold. If none of the three settings is set, only the last rule is left, and one warning says
 * what to set. The answer is advice: a program may write a checkpoint at any time. Legal in IDLE.
 */
CAIRN_EXPORT int SCR_Need_checkpoint(int* flag);

/* SCR_Start_output with SCR_FLAG_CHECKPOINT and a name made from the number of the dataset. Legal
 * in IDLE; then CHECKPOINT. */
CAIRN_EXPORT int SCR_Start_checkpoint(void);

/* Ends the checkpoint, as SCR_Complete_output does. Legal in CHECKPOINT; then IDLE. */
CAIRN_EXPORT int SCR_Complete_checkpoint(int valid);

/* Begins a dataset. Each rank may write any number of files, also none; a checkpoint needs a file
 * on at least one rank. `name` is for people and should be unique; if it is NULL or "", Cairn makes
 * one. `flags`: SCR_FLAG_ values. Legal in IDLE; then OUTPUT.
 * Errors: WRONG_RANKS (another number of ranks wrote the newest checkpoint, in the caches or the
 * prefix directory; CAIRN_ON_MISMATCH=fresh starts without it), the error that SCR_Have_restart
 * returned (a checkpoint cannot be read now), DIFFERS, BAD_ARGUMENT, NO_SPACE, IO. */
CAIRN_EXPORT int SCR_Start_output(const char* name, int flags);

/* Ends the dataset. `valid` may differ between ranks: true if this rank has written and closed all
 * its files. On success all files are protected, and the dataset survives every loss that its
 * redundancy scheme can rebuild; with CAIRN_PROTECT=behind they may be only written (convention
 * 10). Older datasets for which the store has no room are deleted only once it is protected. Legal
 * in OUTPUT; then IDLE.
 * Errors: INVALID, NO_SPACE or IO: the dataset is deleted, and the older ones are kept. If the
 * error is that of an earlier dataset (convention 10), the present one is complete. Files written
 * without the cache stay as they are. A dataset is INVALID if
 *   - a rank passed false;
 *   - SCR_Route_file or SCR_Route failed on a rank, whatever the rank passed, and even if the rank
 *     then routed another name instead: Cairn cannot know what was to be in that file. Start the
 *     dataset again to use other names;
 *   - a file is missing, or still open or mapped for writing (on Lustre, NFS and FUSE this is only
 *     noticed if the file changes while Cairn reads it);
 *   - two ranks have a file of the same name in the cache;
 *   - it is a checkpoint, and no rank has a file. (An output without files is complete; the first
 *     one of a run causes a warning.)
 * NOT_COPIED: the dataset is complete and safe in the cache, but it (an output, or every
 * SCR_FLUSH-th checkpoint) could not be copied to the prefix directory. Cairn tries again with each
 * further dataset; a newer checkpoint then takes the place of this one.
 * LOST: a dataset that was to be copied there is damaged in the caches, cannot be repaired, and was
 * not copied. The message names it: if it is an earlier one, the present one is complete. One call
 * returns this: the first Complete whose own dataset is complete, or SCR_Finalize. If another
 * dataset is safe in the cache and not copied, the code is LOST too, and the message names both. */
CAIRN_EXPORT int SCR_Complete_output(int valid);

/* Removes the dataset `name` from the index of the prefix directory. All its files stay, and
 * `cairn index add` puts it back. An unknown name is not an error. Legal in IDLE.
 * Errors: BAD_ARGUMENT (NULL or ""). */
CAIRN_EXPORT int SCR_Drop(const char* name);

/* Deletes the dataset `name` from the caches and from the prefix directory; all of them, if several
 * have this name. If another job owns the prefix directory, or a record in it cannot be read now,
 * SCR_Delete returns an error, and deletes nothing. An unknown name is not an error. Legal in IDLE.
 * Errors: BAD_ARGUMENT (NULL or ""). */
CAIRN_EXPORT int SCR_Delete(const char* name);

/* ---- the calls of 2009 ----
 * For programs with one file per rank and checkpoint: SCR_Start, SCR_Route, write, SCR_Complete.
 * At the start of a run, SCR_Route alone gives the path of this rank's file in the newest
 * checkpoint. */

/* Local. SCR_Route_file with a buffer of `size` bytes. In IDLE: the path of `name` in the
 * checkpoint that SCR_Have_restart would offer, if this rank has that file there and all bytes of
 * the checkpoint were verified in this run; otherwise `name`. */
CAIRN_EXPORT int SCR_Route(const char* name, char* file, int size);

/* SCR_Start_checkpoint. `file` names the file that the rank is about to write; it may differ
 * between ranks and may be NULL. Only SCR_Route makes a file part of the checkpoint. */
CAIRN_EXPORT int SCR_Start(const char* file);

/* SCR_Complete_checkpoint; `file` as for SCR_Start. Both arguments may differ between ranks. */
CAIRN_EXPORT int SCR_Complete(const char* file, int valid);

#ifdef __cplusplus
}
#endif

#endif
