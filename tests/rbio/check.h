/* A check that prints what differs, and counts it. */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <stdio.h>

static int failed_checks = 0;

#define EXPECT(actual, expected)                                                                \
  do {                                                                                          \
    const long long actual_ = (long long)(actual), expected_ = (long long)(expected);           \
    if (actual_ != expected_) {                                                                 \
      printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, actual_, expected_); \
      ++failed_checks;                                                                          \
    }                                                                                           \
  } while (0)

#endif
