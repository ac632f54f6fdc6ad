"""Whether a job is to stop, by what `cairn halt --list --json` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

FINALIZED = "SCR_FINALIZE_CALLED"
SIGNALLED = "SIGNAL_RECEIVED"
# What the library writes down: why a run has ended, which stops no further one by itself.
LIBRARYS = frozenset({FINALIZED, "NO_CHECKPOINTS_LEFT", "EXIT_BEFORE_TIME", "EXIT_AFTER_TIME",
                      "TIME_LIMIT", "SCR_INIT_FAILED"})
# What concerns one allocation. To its program a signal that `cairn run` got there is a wish like any other; if that was
# killed before it took the wish back, it means nothing to the next one.
PASSING = LIBRARYS | {SIGNALLED}


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


def is_wish(reason: str) -> bool:
    """Whether a program that finds it in the file stops for it."""
    return bool(reason) and reason not in LIBRARYS


def halt_seconds_of(halt: Halt, setting: int) -> int:
    """How long before its end no more is launched: what the file says goes before SCR_HALT_SECONDS."""
    return setting if halt.halt_seconds is None else halt.halt_seconds


def why_stop(halt: Halt, now_s: float, halt_seconds: int, reason_before: Optional[str]) -> Optional[str]:
    """Why no run should be started, None if one may be. `reason_before` is the one that was there
    before the last run; None: there was no run. The library's word counts for the run that gave it."""
    if is_wish(halt.reason) and halt.reason != SIGNALLED:
        return f"{halt.reason}: asked for by cairn halt; cairn halt --remove takes it back"
    if halt.checkpoints_left == 0:
        return "NO_CHECKPOINTS_LEFT: all checkpoints it was to make are made"
    margin_s = halt_seconds_of(halt, halt_seconds)
    if halt.exit_before_s is not None and now_s >= halt.exit_before_s - margin_s:
        return "EXIT_BEFORE_TIME: it is to be over by now"
    if halt.exit_after_s is not None and now_s >= halt.exit_after_s:
        return "EXIT_AFTER_TIME: its time has come"
    news = reason_before is not None and halt.reason != reason_before
    if news and halt.reason and halt.reason != FINALIZED:
        return f"{halt.reason}: the run has found that it is to stop"
    return None
