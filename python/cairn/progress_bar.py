"""How far the copying to the prefix directory has come, on a terminal."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Callable, TextIO

from cairn.account import size_text, time_text

EVERY_S = 1.0
WIDTH = 20


def bytes_below(folders: Path, pattern: str) -> int:
    """Of the files in the folders that fit; what goes away meanwhile counts for nothing."""
    total = 0
    for folder in folders.glob(pattern):
        for where, _, names in os.walk(folder):
            for name in names:
                try:
                    total += os.lstat(os.path.join(where, name)).st_size
                except OSError:
                    continue
    return total


class ProgressBar:
    """One line that is written over again and again; nothing where `out` is no terminal. A context manager: leaving
    it removes the line."""

    def __init__(self, out: TextIO, what: str, all_bytes: int, done_bytes: Callable[[], int]) -> None:
        self._out, self._what, self._all, self._done_bytes = out, what, all_bytes, done_bytes
        self._begun_s = self._shown_s = time.monotonic()
        self._before = 0
        self._is_shown = False

    def __enter__(self) -> "ProgressBar":
        if self._out.isatty():
            self._before = self._done_bytes()  # of an earlier try
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """What else is told gets a line of its own."""
        if self._is_shown:
            self._out.write("\r\x1b[K")
            self._out.flush()
        self._is_shown = False

    def tick(self) -> None:
        """Shows it, if some time has passed."""
        now = time.monotonic()
        if not self._out.isatty() or now - self._shown_s < EVERY_S:
            return
        self._shown_s, self._is_shown = now, True
        self._out.write("\r\x1b[K" + line_of(self._what, self._before, self._done_bytes(), self._all, now - self._begun_s))
        self._out.flush()


def line_of(what: str, before: int, done: int, all_bytes: int, seconds: float) -> str:
    """"ckpt.12: [##########          ] 512 MiB of 1 GiB, 256 MiB/s, 2.0 s left" """
    done = min(done, all_bytes)
    rate = max(0, done - before) / seconds if seconds > 0 else 0.0
    filled = WIDTH * done // all_bytes if all_bytes else 0
    left = f", {time_text((all_bytes - done) / rate)} left" if rate > 0 else ""
    return (f"{what}: [{'#' * filled}{' ' * (WIDTH - filled)}] {size_text(done)} of {size_text(all_bytes)}, "
            f"{size_text(rate)}/s{left}")
