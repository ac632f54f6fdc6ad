"""Events that job control adds to the log of a job. The native command formats and writes the lines, which it reads from
a pipe: so only that command waits for a slow, full or unavailable prefix directory."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from typing import Any, Callable, Dict, Mapping, Optional

from cairn.native import Native

PATIENCE_S = 10.0  # at the end, for what is not written yet


class Events:
    """Receives events; this class ignores them."""

    def happened(self, event: str, note: str, seconds: Optional[float] = None) -> None:
        """Adds one event; `seconds`: its duration."""


class EventLog(Events):
    """Writes to the logs that the settings in the environment enable. A context manager; prints errors at its end."""

    def __init__(self, native: Native, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._command = [str(native.path), "log-events", "--prefix", native.prefix]
        self._environment, self._say = dict(environment), say
        self._writer: Optional[subprocess.Popen[bytes]] = None
        self._unsent = b""

    def __enter__(self) -> "EventLog":
        try:
            # In a session of its own, so that a signal to this process does not prevent the last lines.
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
        with suppress(OSError):  # the rest is sent with the next event; without a log the reader has ended
            self._unsent = self._unsent[os.write(self._writer.stdin.fileno(), self._unsent):]

    def __exit__(self, *_: object) -> None:
        if self._writer is None:
            return
        try:
            message = self._writer.communicate(self._unsent, PATIENCE_S)[1].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            self._writer.kill()  # no wait follows: it may hang in an unavailable file system
            message = f"the log lacks lines of this command: it could not be written within {PATIENCE_S:g} s"
        if message:
            self._say(message.splitlines()[-1])
