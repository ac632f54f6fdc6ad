/* Compiles if scr.h declares each call as SCR 3.1 does, and gives the constants the same values. */
#include <scr.h>

#include "calls_of_scr_3_1.h"

_Static_assert(SCR_SUCCESS == scr_success, "SCR_SUCCESS");
_Static_assert(SCR_MAX_FILENAME == scr_max_filename, "SCR_MAX_FILENAME");
_Static_assert(SCR_FLAG_NONE == scr_flag_none, "SCR_FLAG_NONE");
_Static_assert(SCR_FLAG_CHECKPOINT == scr_flag_checkpoint, "SCR_FLAG_CHECKPOINT");
_Static_assert(SCR_FLAG_OUTPUT == scr_flag_output, "SCR_FLAG_OUTPUT");
