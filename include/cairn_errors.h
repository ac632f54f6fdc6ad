/* The results of Cairn's C interfaces, scr.h and rbio.h.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A call returns 0 (SCR_SUCCESS, RBIO_SUCCESS) or one of these codes. The line that Cairn prints on
 * standard error says what happened and what to do.
 */
#ifndef CAIRN_ERRORS_H
#define CAIRN_ERRORS_H

#define CAIRN_E_WRONG_STATE 1   /* the call is not legal in this state */
#define CAIRN_E_DIFFERS 2       /* ranks made different calls, or passed different arguments */
#define CAIRN_E_BAD_ARGUMENT 3  /* an argument has an invalid value */
#define CAIRN_E_BAD_SETTING 4   /* error in the environment, a configuration file or an option */
#define CAIRN_E_IO 5            /* a file operation failed */
#define CAIRN_E_NO_SPACE 6      /* the store, the quota or the memory is full */
#define CAIRN_E_CORRUPT 7       /* bytes do not match their checksum and cannot be repaired */
#define CAIRN_E_LOST 8          /* more is missing than the redundancy scheme can rebuild */
#define CAIRN_E_WRONG_RANKS 9   /* another number of ranks wrote the dataset */
#define CAIRN_E_NOT_FOUND 10    /* no such dataset, step or file */
#define CAIRN_E_BUSY 11         /* another run uses the cache or the series */
#define CAIRN_E_NEWER_FORMAT 12 /* a newer version of Cairn wrote this record */
#define CAIRN_E_UNTRUSTED 13    /* a path is a link, has another owner, or others can write to it */
#define CAIRN_E_INVALID 14      /* the dataset is invalid; SCR_Complete_output lists the reasons */
#define CAIRN_E_DISABLED 15     /* SCR_ENABLE=0, or SCR_Init failed */
#define CAIRN_E_NOT_COPIED 16   /* safe in the cache, but the copy to the prefix directory failed */

#if defined(__GNUC__)
#define CAIRN_EXPORT __attribute__((__visibility__("default")))
#else
#define CAIRN_EXPORT
#endif

#endif
