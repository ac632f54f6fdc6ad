/* rbIO: a series of steps in shared files, written by a few ranks for all.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A program registers its fields once. Each begin copies them to the writer rank of a group of
 * ranks and returns; the writer's thread writes the step while all ranks compute. A step has one
 * file per group, or fewer. In a file each field is contiguous, in the order of the ranks.
 *
 *   rbio_open(MPI_COMM_WORLD, "checkpoints", NULL, &series);
 *   rbio_add_field(series, "density", RBIO_FLOAT64, 1, density, n, &field);
 *   rbio_restore(series, RBIO_NEWEST, &step);         fails with CAIRN_E_NOT_FOUND in the first run
 *   while (compute(++step))
 *     if (step % 100 == 0 && rbio_begin(series, step, NULL) != RBIO_SUCCESS)
 *       rbio_begin(series, step, NULL);             an earlier step had failed: this one begins now
 *   rbio_close(&series);
 *
 * Conventions
 *
 *  1. Collective calls. Each call says whether it is collective over the communicator of
 *     rbio_open, or local. All ranks make the same collective calls in the same order, and pass
 *     equal arguments except where the comment says "may differ". rbIO communicates on its own
 *     duplicate of the communicator.
 *  2. State. Every call with a series is legal from rbio_open to rbio_close, and between MPI_Init
 *     and MPI_Finalize. A series that is not closed before MPI_Finalize may lack the steps that no
 *     wait has reported; those that are there are whole.
 *  3. Result. A call returns RBIO_SUCCESS or one of the CAIRN_E_ codes of cairn_errors.h. After an
 *     error, one line on standard error names the call, says what happened, and what to do.
 *       - Collective calls return the same code on every rank, and rank 0 of the communicator
 *         prints the line. For a local call, the rank that made it prints the line.
 *       - NULL, or a series that was closed, gives CAIRN_E_WRONG_STATE on the rank that passes it.
 *         That rank takes no part in the call, so other ranks with a valid series wait for it.
 *       - If the ranks make different collective calls or pass different arguments, all get
 *         CAIRN_E_DIFFERS, and the line lists which ranks called what. It changes nothing.
 *       - After an error, output arguments keep their values, except flags and tickets, which
 *         become 0; with the error of a step, rbio_test sets *finished to 1.
 *  4. Errors of steps. If a step cannot be written, the steps before it stay. In all modes the next
 *     collective call of begin, wait or close returns the error, the same on all ranks. Each error
 *     is returned once by such a call, and always by rbio_wait for the ticket of that step. The
 *     local calls rbio_test and rbio_progress return it earlier, as soon as the rank knows it from
 *     the writer of its group; they print no line, and the collective calls return it all the same.
 *     A rank of another group cannot know it: there these local calls succeed, and the rank gets
 *     the error from its next begin, wait or close, as all ranks do.
 *     The series can be used further: a begin that returns the error of an earlier step has begun
 *     nothing, and the next one begins. A step that has failed does not appear, unless its bytes
 *     were durable, and only its time was over or its directory could not get its name: then it may
 *     appear later, whole.
 *  5. The process. No call ends or aborts the process, or installs a signal handler. An error
 *     inside MPI ends the job, as MPI does by default; errors of MPI-IO are those of the step. If
 *     the process of a rank has ended, a rank of the same node that waits for it in a call ends the
 *     job in the same way. On a node with one rank, in the first rbio_open, and in mode=collective
 *     only the launcher may do so. If a rank has not enough memory for a step, begin returns
 *     CAIRN_E_NO_SPACE on all ranks, and the series can be used further. Where a resource manager
 *     limits memory by a cgroup, Linux may kill a process instead: let the option `memory` leave
 *     room below that limit. If a rank has no memory left for anything else, its call returns
 *     CAIRN_E_IO, and those of the other ranks may not return: end the job then.
 *  6. Threads. One thread at a time is inside rbIO, and it must be allowed to call MPI. The
 *     threads that rbIO starts make no MPI call, so that MPI_THREAD_SINGLE is enough.
 *  7. Durable means: the bytes and the names are on the device or the servers of the file system,
 *     and survive a crash of all nodes. A step is published when its directory step.NUMBER exists;
 *     it is durable by then. A crash at any moment leaves the steps that were published, and at the
 *     next rbio_open each step of which all bytes were durable is published too. So it is with a
 *     step that replaces one of the same number: a crash between two renames leaves no step of this
 *     number until the next rbio_open, which publishes the new one.
 *  8. Counts are numbers of elements of this rank; an element has one or more components, which lie
 *     side by side. Sizes and counts have 64 bits. Steps are numbers from 0 to 2^63 - 1 that the
 *     program chooses. Beginning a step that exists replaces it once the new one is published.
 */
#ifndef RBIO_H
#define RBIO_H

#include <mpi.h>
#include <stdint.h>

#include "cairn_errors.h"

#define RBIO_SUCCESS (0)

/* Instead of a step: the newest one, that is, the one whose writing began last. */
#define RBIO_NEWEST (-1)
/* Instead of a rank in rbio_stored_count: the sum over all ranks. */
#define RBIO_ALL_RANKS (-1)
/* A ticket that stands for no step; to wait for it succeeds at once. */
#define RBIO_NO_TICKET (0)

/* The type of a component. */
#define RBIO_INT8 1
#define RBIO_INT16 2
#define RBIO_INT32 3
#define RBIO_INT64 4
#define RBIO_UINT8 5
#define RBIO_UINT16 6
#define RBIO_UINT32 7
#define RBIO_UINT64 8
#define RBIO_FLOAT32 9
#define RBIO_FLOAT64 10
#define RBIO_COMPLEX64 11  /* two float32: real part, imaginary part */
#define RBIO_COMPLEX128 12 /* two float64 */

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of an open series. */
typedef struct rbio_series rbio_series;

/* Stands for one begun step of one series. Positive, and greater for steps begun later. */
typedef int64_t rbio_ticket;

/* What a rank has done since rbio_open. */
typedef struct rbio_statistics_t {
  int64_t steps_begun;
  int64_t steps_published;   /* known to this rank from wait, begin or close */
  int64_t steps_failed;      /* likewise */
  int64_t bytes;             /* of this rank's fields, in all steps begun */
  double begin_s;            /* seconds inside rbio_begin */
  double buffer_wait_s;      /* of these, waiting until all ranks had a buffer */
  int64_t written_bytes;     /* by this rank as a writer, as all are in mode=collective; else 0 */
  double write_s;            /* seconds that the writing and syncing of these took, without pauses
                              * for pace; for a bandwidth set pace=0, as devices write meanwhile */
  int64_t peak_buffer_bytes; /* the most that this rank's buffers had at one time */
  int64_t reserved[7];       /* 0 */
} rbio_statistics_t;

/* ---- open and close ---- */

/* Collective. Opens the series in `directory` for writing and restoring, and makes the directory,
 * with those above it, if it does not exist. If a run has died, publishes the steps of which all
 * bytes are durable, and removes the rest of what it left. A relative path begins at rank 0's
 * current directory. A series belongs to one open handle at a time: a lock on a file in it keeps
 * two runs apart, so that the file system must have locks (flock), else the error is IO. All nodes
 * must see the directory: a node that does not is an error (IO) after at most 10 seconds.
 *
 * `options` is NULL or a text "KEY=VALUE KEY=VALUE". The environment variable CAIRN_RBIO of rank 0
 * has the same form, and overrides single keys.
 *
 *   mode=threaded    begin copies; a thread of each writer writes while all ranks compute (default)
 *   mode=split       as threaded, but the first rank of each group, its writer, does not compute,
 *                    and all its counts are 0
 *   mode=sync        on a writer, begin returns after it has written; on the other ranks, after
 *                    their data have been copied or sent. If the file system hangs, begin does not
 *                    return on that writer
 *   mode=collective  begin returns after all ranks have written together, by collective MPI-IO
 *                    (coIO): without buffers, so that `memory` and `pace` have no effect. `files`
 *                    is 0 or 1. MPI-IO has no timeout: if the file system hangs, begin does not
 *                    return. With the MPI-IO of Open MPI (OMPIO) it does not return either if the
 *                    first rank of a file can open it and another one, which could just before,
 *                    cannot. With OMPI_MCA_io=romio321 the step then fails on all ranks.
 *                    ROMIO, as in MPICH, cannot write if a colon is in the path of `directory`.
 *                    The same data give the same bytes in all modes, and any mode restores them.
 *   group=N          N consecutive ranks share a writer; 0: the ranks of a node (default)
 *   files=N          files per step, from 1 to the number of groups; 0: one per group (default).
 *                    Keep 0 on NFS: writers on several nodes that share a file share pages of it,
 *                    and NFS does not keep such writes apart
 *   keep=N           after each step, removes all but the N newest steps; 0: keeps all (default)
 *   memory=SIZE      the limit for the buffers of a rank, for instance 512MB or 4GB. A writer has
 *                    buffers for steps of its group, and needs space for one step at least, and up
 *                    to 4 KiB more per field of which the group has 64 KiB or more; a rank on
 *                    another node than its writer has buffers for its own data, except in mode
 *                    sync. 0: as much as two steps need (default)
 *   timeout=SECONDS  a step fails if it is not written within this time after its writer has the
 *                    data; also if its data do not arrive from other nodes although all ranks have
 *                    been in one call for this time; default 600. In the modes sync and
 *                    collective begin itself writes, and no timeout ends a system call that hangs;
 *                    nor one of rbio_open, or of the calls that read
 *   pace=FRACTION    spreads the writing over this part of the time between two begins, so that it
 *                    slows computing down less; default 0.8; 0: writes as fast as possible, as
 *                    mode=sync always does. A step is durable that much later
 *   direct=no        writes large fields through the page cache, as all else. With yes (default),
 *                    their whole pages go straight to the device (O_DIRECT) where the file system
 *                    allows it. Has no effect in mode=collective
 *
 * Errors: BAD_ARGUMENT (series, directory or communicator is null), DIFFERS (directory or options),
 * BAD_SETTING (an unknown key, a wrong value, or more files than groups; also if the launcher, or
 * this library, belongs to another MPI than the program), WRONG_STATE (not between MPI_Init and
 * MPI_Finalize), BUSY (another run or handle has the series open, or a file system still holds a
 * thread of a series that this process has closed), IO, NO_SPACE, UNTRUSTED (the directory is a
 * symbolic link: give the path that it points to), NEWER_FORMAT (a newer version has written what a
 * dead run left). After an error *series is NULL. */
CAIRN_EXPORT int rbio_open(MPI_Comm comm, const char* directory, const char* options,
                           rbio_series** series);

/* Collective. Waits until all begun steps are published or have failed, at most until their
 * timeouts. Messages between nodes that are not complete after another timeout are left to MPI, and
 * their buffers stay until the process ends. If a file system still holds the thread of a writer,
 * which could change the series later, no handle can open the series until the process of rank 0
 * ends. Then frees the series and sets *series to NULL, also after an error other than WRONG_STATE
 * and DIFFERS. Returns the error of a step that no call has returned yet, the first if there are
 * several. On success all begun steps are durable, except those whose errors were returned before.
 */
CAIRN_EXPORT int rbio_close(rbio_series** series);

/* ---- fields ---- */

/* Local. Registers a field, which is part of all steps begun later. All ranks register the same
 * fields (name, type, components) in the same order; rbio_begin checks that. `data` and `count` may
 * differ: `count` elements begin at `data`, which must stay valid until the field is set anew or
 * the series is closed. `data` may be NULL if `count` is 0. rbIO reads the data only inside
 * rbio_begin, and writes to them only inside rbio_restore.
 *   name        1 to 255 printable ASCII characters, unique in the series; 4096 fields at most
 *   type        RBIO_INT8 to RBIO_COMPLEX128
 *   components  values per element, from 1 to 1048576
 *   count       elements of this rank, together at most 2^50 bytes
 *   field       receives the number of the field, from 0; may be NULL
 * Errors: BAD_ARGUMENT. */
CAIRN_EXPORT int rbio_add_field(rbio_series* series, const char* name, int type, int components,
                                void* data, int64_t count, int* field);

/* Local. Gives a field other data, another count, or both. Steps already begun do not change.
 * Errors: BAD_ARGUMENT. */
CAIRN_EXPORT int rbio_set_field(rbio_series* series, int field, void* data, int64_t count);

/* ---- write ---- */

/* Collective. Begins to write a step from the fields as they are now. When it returns, the data may
 * be changed. Nothing of the step is durable yet: rbio_wait reports when it is. The step is
 * published without a further call of the program, except where a group has ranks on other nodes
 * than its writer: see rbio_progress. If all buffers of a writer are in use, waits until the oldest
 * step is written. If all buffers of a rank on another node are in use, waits until its writer has
 * the data of the oldest step. rbio_statistics reports how long.
 * `ticket` receives the number to wait for; NULL if the program does not wait: then the next begin,
 * or close, reports an error.
 * If a step begun earlier has failed and no call has returned its error yet, this call returns that
 * error and begins nothing; call it again to begin the step, else this step is lost too.
 * Errors: that of an earlier step (IO, NO_SPACE); BAD_ARGUMENT (no field, or a negative step),
 * DIFFERS (the step, or the fields), NO_SPACE (a step does not fit into `memory`, or there is not
 * enough memory), IO. */
CAIRN_EXPORT int rbio_begin(rbio_series* series, int64_t step, rbio_ticket* ticket);

/* Local. Sets *finished to 1 if the bytes of this rank's group are durable, if the step has failed,
 * or if the time of the option timeout has passed since rbio_begin; otherwise to 0. Other groups
 * may still be writing: only rbio_wait says whether the step is published. Also does what
 * rbio_progress does. If the writer is on another node, *finished stays 0 as long as the writer
 * makes no call of rbIO.
 * If the writer of this rank's group has failed, returns the error of the step; rbio_wait returns
 * the reason. Ranks of other groups get no error here before the next collective call, so a program
 * that changes its course calls rbio_wait.
 * Errors: that of the step (IO, NO_SPACE); BAD_ARGUMENT (an unknown ticket). */
CAIRN_EXPORT int rbio_test(rbio_series* series, rbio_ticket ticket, int* finished);

/* Collective. Waits until the step is published or has failed. Returns RBIO_SUCCESS if it is
 * published, and thereby durable; else the error for which it is not. May be called for any ticket
 * of this series, in any order and more than once. The next begin does not need it.
 * Errors: IO, NO_SPACE, LOST (a user or another process has removed the step), BAD_ARGUMENT (an
 * unknown ticket), DIFFERS. */
CAIRN_EXPORT int rbio_wait(rbio_series* series, rbio_ticket ticket);

/* Local, optional. Advances the messages of groups that have ranks on other nodes than their
 * writers. Such a group's data reach the writer, and its thread begins to write, only inside calls
 * of rbIO: call this now and then on all ranks while they compute, else the step may be written not
 * before the next begin, wait or close. With the default group, the ranks of a node, there is
 * nothing to advance.
 * If the writer of this rank's group has failed, returns the error of the step, once, unless
 * another call has returned it on this rank.
 * Errors: that of a step (IO, NO_SPACE). */
CAIRN_EXPORT int rbio_progress(rbio_series* series);

/* ---- read ---- */

/* Collective. Fills the data of all registered fields from `step`, or, for RBIO_NEWEST, from the
 * newest step that is whole. The number of ranks may be another one than that which wrote it: the
 * counts of all ranks together must be what was written, and each rank receives the elements that
 * follow those of the ranks before it. A step may have fields that are not registered. First waits
 * for all steps that were begun.
 * `restored` receives the step that was read; may be NULL. Every byte is verified against its
 * checksum. With RBIO_NEWEST, if a step is damaged, rank 0 prints a warning, and the next older one
 * is tried; if a step cannot be read now, the error is returned, as it may be the newest.
 * If the number of all elements differs between steps, restore by number instead: for each step of
 * rbio_steps ask rbio_stored_count, set the counts, and go on to the next after CORRUPT.
 * Errors: NOT_FOUND (no such step, also if it is removed meanwhile; for RBIO_NEWEST: there is no
 * step at all, as in a first run, and no line is printed), CORRUPT (also if the directory of a step
 * was renamed; for RBIO_NEWEST: there are steps, and all are damaged), BAD_ARGUMENT (a field is not
 * in the step, has another type, or the counts do not add up), DIFFERS (the step, or the fields),
 * NEWER_FORMAT, IO (also if a node does not see what rank 0 sees). After an error the content of
 * the fields is undefined, except after NOT_FOUND with RBIO_NEWEST. */
CAIRN_EXPORT int rbio_restore(rbio_series* series, int64_t step, int64_t* restored);

/* Collective. Sets *count to the number of published steps, and stores at most `capacity` of them
 * in `steps`, the newest first. Leaves out a step whose header is damaged, with a warning. `steps`
 * may be NULL if `capacity` is 0. The arguments may differ. First waits for all steps that were
 * begun, as the next two calls do.
 * Errors: BAD_ARGUMENT, CORRUPT (there are steps, and all are damaged), NEWER_FORMAT, IO. */
CAIRN_EXPORT int rbio_steps(rbio_series* series, int64_t* steps, int capacity, int* count);

/* Collective. Sets *count to the elements of `field` that `rank` wrote in `step`, or, for
 * RBIO_ALL_RANKS, to those of all ranks. RBIO_NEWEST: of the newest step whose tables are whole.
 * `rank` may differ. Errors: NOT_FOUND (no such step; for RBIO_NEWEST: no step at all),
 * BAD_ARGUMENT (no such field or rank), CORRUPT, NEWER_FORMAT, IO. */
CAIRN_EXPORT int rbio_stored_count(rbio_series* series, int64_t step, const char* field, int rank,
                                   int64_t* count);

/* Collective. Sets *ranks to the number of ranks that wrote `step`; otherwise as
 * rbio_stored_count. */
CAIRN_EXPORT int rbio_stored_ranks(rbio_series* series, int64_t step, int* ranks);

/* ---- about it ---- */

/* Local. Stores what this rank has done since rbio_open.
 * Errors: BAD_ARGUMENT (`statistics` is NULL). */
CAIRN_EXPORT int rbio_statistics(rbio_series* series, rbio_statistics_t* statistics);

/* Local. The text of the last error that a call on this series returned on this rank, or "". For
 * NULL or a closed series: that of the last error of a call without an open series, such as a
 * failed rbio_open. Valid until the next call of rbIO; do not free it. Never NULL. */
CAIRN_EXPORT const char* rbio_error_text(rbio_series* series);

#ifdef __cplusplus
}
#endif

#endif
