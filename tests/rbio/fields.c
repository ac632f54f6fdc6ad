#include "fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { fields = 13 };
static const size_t type_bytes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16};

static struct {
  unsigned char* data;
  size_t bytes, first_byte;
} mine[fields];

/* The last field has no element on any rank. */
static int64_t all_elements(int field) { return field == fields - 1 ? 0 : 997 * (field + 1) + 3; }

/* A third of the ranks, another one for each field, has nothing; the last one has the rest. */
static int64_t first_element(int field, int rank, int ranks, int split) {
  int64_t first = 0;
  if (rank == ranks) return all_elements(field);
  for (int below = 0; below < rank; ++below)
    if ((below + field) % 3 != 1 && (split == 0 || below % split != 0))
      first += all_elements(field) * (below + 1) / (ranks * (ranks + 1));
  return first;
}

static unsigned char byte_at(int64_t step, int field, size_t byte) {
  return (unsigned char)(byte * 31 + byte / 251 + (size_t)step * 7 + (size_t)field * 101);
}

int add_fields(rbio_series* series, int rank, int ranks, int split) {
  for (int field = 0; field < fields; ++field) {
    const int type = field % 12 + 1, components = field % 3 + 1;
    const size_t element_bytes = type_bytes[type] * (size_t)components;
    const int64_t first = first_element(field, rank, ranks, split);
    const int64_t count = first_element(field, rank + 1, ranks, split) - first;
    mine[field].bytes = (size_t)count * element_bytes;
    mine[field].first_byte = (size_t)first * element_bytes;
    mine[field].data = mine[field].bytes > 0 ? malloc(mine[field].bytes) : NULL;
    char name[32];
    int number = -1;
    snprintf(name, sizeof name, "field %d", field);
    const int result =
        rbio_add_field(series, name, type, components, mine[field].data, count, &number);
    if (result != RBIO_SUCCESS) return result;
    if (number != field) return CAIRN_E_INVALID;
  }
  return RBIO_SUCCESS;
}

void compute_fields(int64_t step) {
  for (int field = 0; field < fields; ++field)
    for (size_t i = 0; i < mine[field].bytes; ++i)
      mine[field].data[i] = byte_at(step, field, mine[field].first_byte + i);
}

void forget_fields(void) {
  for (int field = 0; field < fields; ++field)
    if (mine[field].data != NULL) memset(mine[field].data, 0xEE, mine[field].bytes);
}

int fields_hold(int64_t step) {
  for (int field = 0; field < fields; ++field)
    for (size_t i = 0; i < mine[field].bytes; ++i)
      if (mine[field].data[i] != byte_at(step, field, mine[field].first_byte + i)) return 0;
  return 1;
}

void free_fields(void) {
  for (int field = 0; field < fields; ++field) free(mine[field].data);
}
