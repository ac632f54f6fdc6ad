"""What job control itself adds to the log of a job. The native command knows the form of a line, and is told by a pipe: a
prefix directory that is slow, full or away keeps nobody waiting but that command."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from typing import Any, Callable, Dict, Mapping, Optional

from cairn.native import Native

PATIENCE_S = 10.0  # at the end, for what is not written yet


class Events:
    """What happens. Of these nobody hears."""

    def happened(self, event: str, note: str, seconds: Optional[float] = None) -> None:
        """One event; `seconds`: how long it took."""


class EventLog(Events):
    """Into the logs that the settings in the environment ask for. A context manager; trouble is told at its end."""

    def __init__(self, native: Native, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._command = [str(native.path), "log-events", "--prefix", native.prefix]
        self._environment, self._say = dict(environment), say
        self._writer: Optional[subprocess.Popen[bytes]] = None
        self._unsent = b""

    def __enter__(self) -> "EventLog":
        try:
            # In a session of its own, as what ends this process must not keep the last lines from being written.
            self._writer = subprocess.Popen(self._command, env=self._environment, stdin=subprocess.PIPE,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            self._say(f"the log lacks lines of this command: {self._command[0]}: {error.strerror}")
            return self
        assert self._writer.stdin is not None
        os.set_blocking(self._writer.stdin.fileno(), False)
        return self

    def happened(self, event: str, note: str, seconds: Optional[float] = None) -> None:
        if self._writer is None or self._writer.stdin is None:
            return
        line: Dict[str, Any] = {"event": event, "note": note}
        self._unsent += json.dumps(line if seconds is None else {**line, "seconds": seconds}).encode() + b"\n"
        with suppress(OSError):  # what a full pipe does not take goes with the next; where no log is kept nobody reads
            self._unsent = self._unsent[os.write(self._writer.stdin.fileno(), self._unsent):]

    def __exit__(self, *_: object) -> None:
        if self._writer is None:
            return
        try:
            told = self._writer.communicate(self._unsent, PATIENCE_S)[1].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            self._writer.kill()  # which a file system that is away may outlast, so nobody waits for it
            told = f"the log lacks lines of this command: it could not be written within {PATIENCE_S:g} s"
        if told:
            self._say(told.splitlines()[-1])
