"""Ends parts of a run that a resource manager continues after the launcher has ended."""

from __future__ import annotations

import time
from typing import Callable, List, Optional

TICK_S = 0.1


def end_all(listed: Callable[[], Optional[List[str]]], cancel: Callable[[List[str]], object],
            patience_s: float) -> Optional[List[str]]:
    """Cancels what is listed, and waits up to `patience_s` until nothing is. Returns what is left, or None if the manager
    does not answer; repeats the query meanwhile."""
    left, end_s, is_cancelled = listed(), time.monotonic() + patience_s, False
    while True:
        if left and not is_cancelled:
            cancel(left)
            is_cancelled = True
        if left == [] or time.monotonic() >= end_s:
            return left
        time.sleep(TICK_S)
        left = listed()


def leftovers_text(left: Optional[List[str]], manager: str, cancel: str, look: str) -> str:
    """A message for the user; empty if nothing is left."""
    if left is None:
        return f"{manager}: no answer, so it is unknown whether the run continues there: {look}"
    return f"{manager} still has processes of the run: {cancel} {' '.join(left)}" if left else ""
