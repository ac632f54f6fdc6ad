"""Whether a job is to stop, by what `cairn halt --list --json` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

FINALIZED = "SCR_FINALIZE_CALLED"
# What the library writes down: why a run has ended, which stops no further one by itself.
LIBRARYS = frozenset({FINALIZED, "NO_CHECKPOINTS_LEFT", "EXIT_BEFORE_TIME", "EXIT_AFTER_TIME",
                      "TIME_LIMIT", "SCR_INIT_FAILED"})


@dataclass(frozen=True)
class Halt:
    """What is in force in a prefix directory."""

    checkpoints_left: Optional[int] = None
    exit_before_s: Optional[int] = None
    exit_after_s: Optional[int] = None
    halt_seconds: Optional[int] = None
    reason: str = ""

    @staticmethod
    def of_json(record: Mapping[str, Any]) -> "Halt":
        """From one of the `prefixes`."""
        return Halt(record["checkpoints_left"], record["exit_before_s"], record["exit_after_s"],
                    record["halt_seconds"], record["reason"] or "")


def why_stop(halt: Halt, now_s: float, halt_seconds: int, reason_before: Optional[str]) -> Optional[str]:
    """Why no run should be started, None if one may be. `reason_before` is the one that was there
    before the last run; None: there was no run. The library's word counts for the run that gave it."""
    if halt.reason and halt.reason not in LIBRARYS:
        return f"{halt.reason}: asked for by cairn halt; cairn halt --remove takes it back"
    if halt.checkpoints_left == 0:
        return "NO_CHECKPOINTS_LEFT: all checkpoints it was to make are made"
    margin = halt.halt_seconds if halt.halt_seconds is not None else halt_seconds
    if halt.exit_before_s is not None and now_s >= halt.exit_before_s - margin:
        return "EXIT_BEFORE_TIME: it is to be over by now"
    if halt.exit_after_s is not None and now_s >= halt.exit_after_s:
        return "EXIT_AFTER_TIME: its time has come"
    news = reason_before is not None and halt.reason != reason_before
    if news and halt.reason and halt.reason != FINALIZED:
        return f"{halt.reason}: the run has found that it is to stop"
    return None
