"""The best checkpoint interval for the cost of checkpoints and the length of runs: the models of Young and Daly."""

from __future__ import annotations

import math
from typing import List, NamedTuple, Optional, Sequence

from cairn.job_log import FROM_OUTSIDE, Entry


class Costs(NamedTuple):
    """The costs of a job, according to its log."""

    starts: int
    total_s: float  # of all runs
    checkpoints: int
    checkpoint_s: float  # time to write and protect all of them
    flush_s: float  # time to copy those that were copied

    @property
    def cost_s(self) -> float:
        """The mean cost of a checkpoint."""
        return (self.checkpoint_s + self.flush_s) / self.checkpoints

    @property
    def between_interrupts_s(self) -> float:
        """The mean time of a run; like SCR, this counts each end of a run as an interrupt."""
        return self.total_s / self.starts


def duration_s(entries: Sequence[Entry]) -> float:
    """The time of all runs, each from its start to its last sign of life."""
    total, begun, last = 0.0, 0.0, 0.0
    for entry in entries:
        if entry.what in FROM_OUTSIDE:
            continue
        if entry.what == "START":
            total += last - begun
            begun = entry.time_s
        last = entry.time_s if entry.what == "START" else max(last, entry.time_s)
    return total + last - begun


def costs_of(entries: Sequence[Entry]) -> Optional[Costs]:
    """The costs in a log, whose entries are in order of time; None if no run has finished a checkpoint."""
    begins = [place for place, entry in enumerate(entries) if entry.what == "START"]
    of_runs = list(entries[begins[0]:]) if begins else []
    done: List[Entry] = [entry for entry in of_runs if entry.what == "CHECKPOINT_END" and not entry.note]
    names = {entry.name for entry in done}
    flushed = sum(entry.seconds for entry in of_runs if entry.what in ("FLUSH_SYNC", "FLUSH_ASYNC") and entry.name in names)
    costs = Costs(len(begins), duration_s(of_runs), len(done), sum(entry.seconds for entry in done), flushed)
    return costs if done and costs.cost_s > 0 and costs.total_s > 0 else None


def young_s(cost_s: float, between_s: float) -> float:
    """John W. Young, A first order approximation to the optimum checkpoint interval, 1974."""
    return math.sqrt(2 * cost_s * between_s)


def daly_s(cost_s: float, between_s: float) -> float:
    """John T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006, equation 37."""
    if cost_s >= 2 * between_s:
        return between_s
    part = cost_s / (2 * between_s)
    return young_s(cost_s, between_s) * (1 + math.sqrt(part) / 3 + part / 9) - cost_s


MODELS = {"young": young_s, "daly": daly_s}
