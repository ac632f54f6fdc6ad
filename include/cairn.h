/* Cairn's own calls beside scr.h: what a dataset survives now, and when copies may be made.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Conventions
 *
 *  1. Everything that scr.h says at its beginning also holds here: the order of the calls, errors,
 *     strings, threads, and what happens if Cairn is disabled. A program that uses these calls
 *     does not compile with SCR.
 *  2. The state of a dataset says which failures it survives. Each state includes those before
 *     it:
 *       CAIRN_STATE_NONE: no dataset of this name can be restored. It is unknown to this run,
 *         incomplete, lost or deleted.
 *       CAIRN_STATE_WRITING: the program is between its Start and its Complete.
 *       CAIRN_STATE_WRITTEN: it is complete in the cache, and survives the death of processes, but
 *         not of every node. With CAIRN_PROTECT=behind it becomes protected soon; else its scheme
 *         is SINGLE, or a rank has no partner on another node.
 *       CAIRN_STATE_PROTECTED: it survives the loss of as many nodes as its redundancy scheme can
 *         rebuild; in a store that all nodes share, the loss of any node.
 *       CAIRN_STATE_FLUSHED: it is published in the prefix directory, and survives the loss of all
 *         caches.
 *  3. If several datasets have one name, the name stands for the newest of them.
 *  4. A run knows the datasets in its caches, and the last 64 copies in the prefix directory whose
 *     datasets have left the caches during this run. It does not know the others there.
 */
#ifndef CAIRN_H
#define CAIRN_H

#include "scr.h"

#define CAIRN_STATE_NONE 0
#define CAIRN_STATE_WRITING 1
#define CAIRN_STATE_WRITTEN 2
#define CAIRN_STATE_PROTECTED 3
#define CAIRN_STATE_FLUSHED 4

/* What Cairn_Wait returns if the time is over. No error: nothing is printed. */
#define CAIRN_TIMEOUT 100

#ifdef __cplusplus
extern "C" {
#endif

/* Local. Sets *state to what the dataset `name` survives now: one of the CAIRN_STATE_ values. Never
 * waits, sends no message, and does not look into the prefix directory, so it is cheap while a copy
 * is under way. The answer is never better than the truth, as far as this run can know: it cannot
 * know of a node that has just failed, or of a command that deletes a dataset. It may differ
 * between ranks for a short time, because each rank sees by itself that a copy is published.
 * A copy no longer counts if a newer dataset with the same file names, or beyond SCR_PREFIX_SIZE, is
 * about to replace it. A quarantined copy does not count either.
 * Legal in IDLE, RESTART, CHECKPOINT and OUTPUT.
 * Errors: BAD_ARGUMENT (NULL). *state is then CAIRN_STATE_NONE. */
CAIRN_EXPORT int Cairn_Dataset_state(const char* name, int* state);

/* Waits until the dataset `name` is in `state` or a better one on all ranks, but at most `seconds`:
 * a negative number sets no limit, and 0 only looks. The time begins when all ranks have called, and
 * is for protection and copy together. Returns SCR_SUCCESS, CAIRN_TIMEOUT if the time of a rank is
 * over, or an error, the same on all ranks. While the ranks wait, they repair damaged blocks, and
 * neither hints nor SCR_FLUSH_ASYNC_PERCENT hold the copies back. If a copy to the prefix directory
 * is due but failed before, this call tries it again, unless `seconds` is 0. Legal in IDLE.
 * CAIRN_TIMEOUT comes at most 0.1 s late, if a core is idle for each rank. The call may take longer
 * only for work that it does itself: to repair a block; to remove copies that it gives up, because
 * another job has owned the prefix directory or a block cannot be repaired; to make a copy, without
 * SCR_FLUSH_ASYNC=1, or if a newer dataset is in the prefix directory or on its way there; and, with
 * CAIRN_PROTECT=behind, to protect the dataset, if the ranks cannot reach each other in the
 * background, or there was no room for that before.
 *
 * Errors:
 *   NOT_FOUND      no dataset of this name is known, or it is deleted or cannot be restored now.
 *   BAD_ARGUMENT   `name` is NULL or "", `state` is none of CAIRN_STATE_WRITING to
 *                  CAIRN_STATE_FLUSHED, or `seconds` is not a number. Also if the dataset will not
 *                  reach the state before SCR_Finalize: for example, CAIRN_STATE_FLUSHED of a
 *                  checkpoint that SCR_FLUSH does not copy.
 *   NOT_COPIED     it cannot be copied now: every try has failed for 5 seconds, nothing has moved
 *                  for 60 seconds, or another job owns the prefix directory. Or it is damaged in
 *                  the caches, and another try, or nodes that are away, may have it whole.
 *   LOST           it is damaged in the caches, and no node has more of it. If it was to be copied,
 *                  the next Complete, or SCR_Finalize, returns this too, once.
 *   NO_SPACE       CAIRN_PROTECT=behind: a store has no room to protect it. It stays written.
 *   DIFFERS        the ranks passed different arguments.
 * After NOT_COPIED, Cairn keeps trying, as after SCR_Complete_output. */
CAIRN_EXPORT int Cairn_Wait(const char* name, int state, double seconds);

/* ---- hints for copies that go on while the program computes (SCR_FLUSH_ASYNC=1) ---- */

/* Local. From here to Cairn_Computing_end this rank sends no messages and waits for none, so copies
 * delay no other rank. A program that gives these hints has its datasets copied only between them.
 * It may give them as often as it likes: a call takes less than a microsecond. Without hints, copies
 * go on at all times.
 * A rank whose last hint was Cairn_Computing_end copies nothing for a second, and then as if there
 * were no hints; and it never stands back for more than a second in a row. So the data arrive
 * whatever the hints are. Nothing stands back while SCR_Finalize, Cairn_Wait or another call waits
 * for a copy. Hints have no effect on copies for which the program waits.
 * Several threads may call this at once. Legal in IDLE, RESTART, CHECKPOINT and OUTPUT. */
CAIRN_EXPORT int Cairn_Computing_begin(void);

/* Local. From here on this rank communicates again: see Cairn_Computing_begin. */
CAIRN_EXPORT int Cairn_Computing_end(void);

#ifdef __cplusplus
}
#endif

#endif
