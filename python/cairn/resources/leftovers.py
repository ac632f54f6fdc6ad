"""What a resource manager goes on with though its launcher is gone, and how that is ended."""

from __future__ import annotations

import time
from typing import Callable, List

TICK_S = 0.1


def end_all(listed: Callable[[], List[str]], cancel: Callable[[List[str]], object], patience_s: float) -> List[str]:
    """Cancels what is listed, and waits until nothing is, but no longer than that; what is left then."""
    left, end_s = listed(), time.monotonic() + patience_s
    if left:
        cancel(left)
    while left and time.monotonic() < end_s:
        time.sleep(TICK_S)
        left = listed()
    return left
