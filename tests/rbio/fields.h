/* Fields of every type, whose bytes follow from step, field and place in the whole field: so any
 * number of ranks knows what it must hold. Uneven, with ranks that have nothing. */
#ifndef TEST_FIELDS_H
#define TEST_FIELDS_H

#include <rbio.h>

/* Registers all fields of this rank. Returns the first result that is not RBIO_SUCCESS. One rank of
 * each `split` ranks has nothing; 0: as it comes. */
int add_fields(rbio_series* series, int rank, int ranks, int split);
void compute_fields(int64_t step);
/* What a program does that reuses its memory. */
void forget_fields(void);
int fields_hold(int64_t step);
void free_fields(void);

#endif
