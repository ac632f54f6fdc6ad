"""How much computing the checkpoints of a job hold, and how much of it failures have cost: what the log tells."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Sequence, Tuple, Union

from cairn.job_log import Entry

# The first of these in a run shows that it did not restart, if nothing has shown before that it did.
GOES_ON = ("CHECKPOINT_START", "OUTPUT_START", "FINALIZE")


class Computing:
    """Follows the runs of a job. Times are seconds since 1970, and those of computing the sum over all runs."""

    def __init__(self) -> None:
        self.began_s = 0.0  # when this run began to compute, after its restart if there was one; 0: not yet
        self.regained_s = 0.0  # computing that it need not do again; until it is known, that of the newest checkpoint
        self.kept_s = 0.0  # computing that the checkpoint holds to which a next run would go back
        self.from_scratch = ""  # why it began so, although there was a checkpoint; empty: it did not
        self._is_known = False  # what it began with
        self._is_halted = False
        self._newest = ""  # the newest checkpoint, and where it is
        self._held: Dict[Tuple[str, Union[int, str, None]], float] = {}

    def begin_run(self) -> None:
        """What is said from now on is of another run."""
        self.began_s, self.regained_s = 0.0, self.kept_s
        self.from_scratch, self._is_known, self._is_halted = "", False, False

    def add(self, entry: Entry) -> None:
        """One entry more."""
        if entry.what == "COMPUTE_START":
            self.began_s = self.began_s or entry.time_s
        elif entry.what == "RESTART_SUCCESS" or (entry.what == "CURRENT" and not self._has_restarted()):
            self._begins(self._held_by(entry), "")
            self.began_s = entry.time_s
        elif entry.what == "FRESH_START":
            self._begins(0.0, entry.note or "no reason was logged")
        elif entry.what in GOES_ON and not self._is_known:
            self._begins(0.0, self._newest and f"it did not restart from {self._newest}")
        elif entry.what == "CHECKPOINT_END" and not entry.note:
            self.kept_s = self.regained_s + max(0.0, entry.time_s - (self.began_s or entry.time_s))
            self._newest = f"{entry.name}, which was {entry.protection()}"
            for key in (entry.dataset, entry.name):
                self._held[entry.job, key] = self.kept_s
        elif entry.what == "HALT":
            self._is_halted = True
        if entry.what == "FINALIZE" and not self._is_halted:
            self._newest = ""  # the job has come to its end: who starts it again may want another one

    def _has_restarted(self) -> bool:
        return self._is_known and not self.from_scratch

    def _begins(self, regained_s: float, from_scratch: str) -> None:
        self.regained_s = self.kept_s = regained_s
        self.from_scratch, self._is_known = from_scratch, True

    def _held_by(self, checkpoint: Entry) -> float:
        """0 where an earlier allocation has made it: what that has computed is not counted."""
        by_name = self._held.get((checkpoint.job, checkpoint.name), 0.0)
        return self._held.get((checkpoint.job, checkpoint.dataset), by_name) if checkpoint.dataset else by_name


class Stretch(NamedTuple):
    """What one run has computed."""

    failed: bool
    launched_s: float
    began_s: float  # as Computing has it
    ended_s: float  # 0: it has not
    regained_s: float
    kept_s: float


def lost_s(runs: Sequence[Stretch], now_s: float) -> float:
    """By how much later the job comes to its end than if nothing had failed: from the checkpoint that a run restarted from
    (from the very start, if it began from scratch) to the failure, and from there until the run computed."""
    total = kept_s = 0.0
    origin_s: Optional[float] = None  # when the job would have begun that had come as far without a failure
    for run in runs:
        begins_s = run.began_s - run.regained_s
        if origin_s is not None and run.began_s:
            total, origin_s = total + begins_s - origin_s, None
        if origin_s is None and run.failed:
            origin_s, kept_s = (begins_s, run.kept_s) if run.began_s else (run.launched_s, 0.0)
    if origin_s is not None:
        total += max(0.0, (runs[-1].ended_s or now_s) - origin_s - kept_s)
    return max(0.0, total)
