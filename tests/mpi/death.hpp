// SIGKILL at a chosen moment of the program under test.
//
// One rank, the striker, watches for the moment: a point between two calls, the n-th change to a
// file inside a call, or a time after a call was entered. When it has come, the striker writes a
// note of where it was and kills the processes of all victims at once, itself last. All ranks must
// run on one machine.
//
// Changes are seen because this program defines the C library's mkdir, pwrite, rename, ... itself:
// the loader gives the program's functions to libcairn. The beginning of a piece of the work behind
// the program ("piece") is seen in the same way, as its thread gets a core or a policy then.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

struct DeathPlan {
  std::string at;       ///< a point or a call; empty: nobody dies
  int step = 0;         ///< in which checkpoint; 0 outside of them
  int striker = 0;      ///< the rank that watches
  std::string victims;  ///< "all", or ranks as in "2,3"
  int nth = 0;          ///< die in the n-th change, counted from 1; 0: by time
  std::string
      operation;     ///< count only these: "rename", or "rename:record" by the path's last part
  int after_us = 0;  ///< with nth 0: since the call was entered
  std::string note;  ///< file to write on the way: CALL STEP WHAT WHERE
};

/// On every rank; `pids` are those of all ranks, in order. Once, before all others.
void plan_death(const DeathPlan& plan, int rank, const std::vector<pid_t>& pids);

/// From now on there is no room for what is written to files whose names begin so.
void lack_room_for(const std::string& begin);

/// Dies here if this is the point.
void pass_point(const std::string& point, int step);

/// Changes made to files in a call, and whatever is planned for it. A striker that was to die by
/// time never gets out alive: where the call was faster, the note says "outside". One that was to
/// die in a change stays a while, as the change may be made in the background.
void enter_call(const std::string& call, int step);
int leave_call();
