"""How much computing the checkpoints of a job have saved, and how much failures have cost, according to the log."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Sequence, Tuple, Union

from cairn.job_log import Entry

# If one of these comes before any sign of a restart, the run did not restart.
GOES_ON = ("CHECKPOINT_START", "OUTPUT_START", "FINALIZE")


class Computing:
    """Follows the runs of a job. Times are seconds since 1970, and those of computing the sum over all runs."""

    def __init__(self) -> None:
        self.began_s = 0.0  # when this run began to compute; with a restart, its end; 0: not yet
        self.regained_s = 0.0  # computing that it need not repeat; until that is known, that of the newest checkpoint
        self.kept_s = 0.0  # computing up to the checkpoint from which the next run would restart
        self.from_scratch = ""  # why it began from scratch, although a checkpoint existed; empty: it did not
        self._is_known = False  # whether it is known from what the run began
        self._is_halted = False
        self._newest = ""  # the newest checkpoint, and where it is
        self._held: Dict[Tuple[str, Union[int, str, None]], float] = {}

    def begin_run(self) -> None:
        """Further entries belong to another run."""
        self.began_s, self.regained_s = 0.0, self.kept_s
        self.from_scratch, self._is_known, self._is_halted = "", False, False

    def add(self, entry: Entry) -> None:
        """Adds an entry."""
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
            self._newest = ""  # the job has ended: a user who starts it again may want another checkpoint

    def _has_restarted(self) -> bool:
        return self._is_known and not self.from_scratch

    def _begins(self, regained_s: float, from_scratch: str) -> None:
        self.regained_s = self.kept_s = regained_s
        self.from_scratch, self._is_known = from_scratch, True

    def _held_by(self, checkpoint: Entry) -> float:
        """The computing up to a checkpoint. 0 if an earlier allocation made it: its computing is not counted."""
        by_name = self._held.get((checkpoint.job, checkpoint.name), 0.0)
        return self._held.get((checkpoint.job, checkpoint.dataset), by_name) if checkpoint.dataset else by_name


class Stretch(NamedTuple):
    """The computing of one run."""

    failed: bool
    launched_s: float
    began_s: float  # see Computing
    ended_s: float  # 0: it has not ended
    regained_s: float
    kept_s: float


def lost_s(runs: Sequence[Stretch], now_s: float) -> float:
    """How much later the job ends because of failures: the time from the checkpoint of a restart (or from the beginning,
    if the run began from scratch) to the failure, and from there until the next run computed."""
    total = kept_s = 0.0
    origin_s: Optional[float] = None  # when a job without failures would have begun to get as far
    for run in runs:
        begins_s = run.began_s - run.regained_s
        if origin_s is not None and run.began_s:
            total, origin_s = total + begins_s - origin_s, None
        if origin_s is None and run.failed:
            origin_s, kept_s = (begins_s, run.kept_s) if run.began_s else (run.launched_s, 0.0)
    if origin_s is not None:
        total += max(0.0, (runs[-1].ended_s or now_s) - origin_s - kept_s)
    return max(0.0, total)
