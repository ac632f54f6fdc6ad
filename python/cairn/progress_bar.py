"""Shows the progress of a long operation on a terminal."""

from __future__ import annotations

import time
from typing import Callable, TextIO

from cairn.account import size_text, time_text

EVERY_S = 1.0
WIDTH = 20


class ProgressLine:
    """One line that is overwritten repeatedly; shows nothing if `out` is not a terminal. A context manager: leaving it
    removes the line."""

    def __init__(self, out: TextIO, text: Callable[[float], str]) -> None:
        """`text` returns what to show after a number of seconds."""
        self._out, self._text = out, text
        self._begun_s = self._shown_s = time.monotonic()
        self._is_shown = False

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Removes the line, so that other output begins on a line of its own."""
        if self._is_shown:
            self._out.write("\r\x1b[K")
            self._out.flush()
        self._is_shown = False

    def tick(self) -> None:
        """Shows the line again if EVERY_S have passed."""
        now = time.monotonic()
        if not self._out.isatty() or now - self._shown_s < EVERY_S:
            return
        self._shown_s, self._is_shown = now, True
        self._out.write("\r\x1b[K" + self._text(now - self._begun_s))
        self._out.flush()


def bar_of(what: str, done: int, all_bytes: int, seconds: float) -> str:
    """"ckpt.12: [##########          ] 512 MiB of 1 GiB, 256 MiB/s, 2.0 s left" """
    done = min(done, all_bytes)
    rate = done / seconds if seconds > 0 else 0.0
    filled = WIDTH * done // all_bytes if all_bytes else 0
    left = f", {time_text((all_bytes - done) / rate)} left" if rate > 0 else ""
    return (f"{what}: [{'#' * filled}{' ' * (WIDTH - filled)}] {size_text(done)} of {size_text(all_bytes)}, "
            f"{size_text(rate)}/s{left}")
