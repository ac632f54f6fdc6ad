"""What a resource manager goes on with though its launcher is gone, and how that is ended."""

from __future__ import annotations

import time
from typing import Callable, List, Optional

TICK_S = 0.1


def end_all(listed: Callable[[], Optional[List[str]]], cancel: Callable[[List[str]], object],
            patience_s: float) -> Optional[List[str]]:
    """Cancels what is listed, and waits until nothing is, but no longer than that; what is left then. None where that is not
    told, which is asked again meanwhile."""
    left, end_s, is_cancelled = listed(), time.monotonic() + patience_s, False
    while True:
        if left and not is_cancelled:
            cancel(left)
            is_cancelled = True
        if left == [] or time.monotonic() >= end_s:
            return left
        time.sleep(TICK_S)
        left = listed()


def told_of(left: Optional[List[str]], manager: str, cancel: str, look: str) -> str:
    """To people; empty if nothing is left."""
    if left is None:
        return f"{manager} gives no answer whether the run continues there: {look}"
    return f"{manager} still has processes of the run: {cancel} {' '.join(left)}" if left else ""
