"""Decides whether a job must stop, from the output of `cairn halt --list --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

FINALIZED = "SCR_FINALIZE_CALLED"
SIGNALLED = "SIGNAL_RECEIVED"
# Recorded by the library: why a run ended. These do not stop the next run by themselves.
LIBRARYS = frozenset({FINALIZED, "NO_CHECKPOINTS_LEFT", "EXIT_BEFORE_TIME", "EXIT_AFTER_TIME",
                      "TIME_LIMIT", "SCR_INIT_FAILED"})
# Reasons of one allocation only. A signal that `cairn run` received is a request to its own program. If `cairn run` was
# killed before it withdrew the request, the next `cairn run` ignores it.
PASSING = LIBRARYS | {SIGNALLED}


@dataclass(frozen=True)
class Halt:
    """The halt conditions of a prefix directory."""

    checkpoints_left: Optional[int] = None
    exit_before_s: Optional[int] = None
    exit_after_s: Optional[int] = None
    halt_seconds: Optional[int] = None
    reason: str = ""

    @staticmethod
    def of_json(record: Mapping[str, Any]) -> "Halt":
        """From one element of `prefixes`."""
        return Halt(record["checkpoints_left"], record["exit_before_s"], record["exit_after_s"],
                    record["halt_seconds"], record["reason"] or "")


def is_wish(reason: str) -> bool:
    """True if a program stops when it finds this reason in the halt file."""
    return bool(reason) and reason not in LIBRARYS


def halt_seconds_of(halt: Halt, setting: int) -> int:
    """How long before the end of the allocation no run starts: the halt file overrides SCR_HALT_SECONDS."""
    return setting if halt.halt_seconds is None else halt.halt_seconds


def why_stop(halt: Halt, now_s: float, halt_seconds: int, reason_before: Optional[str]) -> Optional[str]:
    """Why no run may start; None if one may. `reason_before`: the reason in the file before the last run; None: there was
    no run. A reason that the library records counts only for the run that recorded it."""
    if is_wish(halt.reason) and halt.reason != SIGNALLED:
        return f"{halt.reason}: requested by cairn halt; cairn halt --remove withdraws it"
    if halt.checkpoints_left == 0:
        return "NO_CHECKPOINTS_LEFT: the job has made all checkpoints that cairn halt allowed"
    margin_s = halt_seconds_of(halt, halt_seconds)
    if halt.exit_before_s is not None and now_s >= halt.exit_before_s - margin_s:
        return "EXIT_BEFORE_TIME: the job had to end before now"
    if halt.exit_after_s is not None and now_s >= halt.exit_after_s:
        return "EXIT_AFTER_TIME: the job had to end after its first checkpoint from that time on"
    news = reason_before is not None and halt.reason != reason_before
    if news and halt.reason and halt.reason != FINALIZED:
        return f"{halt.reason}: the last run stopped for this reason"
    return None
