"""The halt file of a running job. An error does not end the job: it is printed once, and the last content remains
valid."""

from __future__ import annotations

from typing import Callable, Optional, Set

from cairn.halting import SIGNALLED, Halt, is_wish
from cairn.native import Native, Trouble


class HaltFile:
    """Access to the halt file that survives errors."""

    def __init__(self, native: Native, say: Callable[[str], None]) -> None:
        self._native, self._say = native, say
        self._known: Optional[Halt] = None
        self._reported: Set[str] = set()

    def look(self) -> Optional[Halt]:
        """Its content; None if it cannot be read now."""
        return self._tried(self._native.halt)

    def latest(self) -> Halt:
        """Its content, or if it cannot be read, the content read last."""
        return self.look() or self._known or Halt()

    def reason(self) -> Optional[str]:
        """The latest reason; None if the file has never been read."""
        halt = self.look() or self._known
        return None if halt is None else halt.reason

    def ask_to_stop(self) -> bool:
        """Requests a stop. True if the file has this request, or another one, now."""
        halt = self._tried(self._native.ask_to_stop)
        return halt is not None and is_wish(halt.reason)

    def take_back_stop(self) -> bool:
        """Withdraws the request of ask_to_stop only. True if there was one."""
        halt = self.look()
        if halt is None or halt.reason != SIGNALLED:
            return False
        return self._tried(lambda: self._native.take_back(SIGNALLED)) is not None

    def _tried(self, call: Callable[[], Halt]) -> Optional[Halt]:
        try:
            self._known = call()
            return self._known
        except Trouble as trouble:
            if str(trouble) not in self._reported:
                self._reported.add(str(trouble))
                self._say(f"{trouble}\nThe job goes on without it.")
            return None
