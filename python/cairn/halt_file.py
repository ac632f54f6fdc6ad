"""The halt file of a job that runs. Trouble with it ends nothing: it is told once, and what was read last holds."""

from __future__ import annotations

from typing import Callable, Optional, Set

from cairn.halting import SIGNALLED, Halt, is_wish
from cairn.native import Native, Trouble


class HaltFile:
    """As far as it can be read and written."""

    def __init__(self, native: Native, say: Callable[[str], None]) -> None:
        self._native, self._say = native, say
        self._known: Optional[Halt] = None
        self._told: Set[str] = set()

    def look(self) -> Optional[Halt]:
        """What is in it; None if that cannot be read now."""
        return self._tried(self._native.halt)

    def latest(self) -> Halt:
        """The same; else what was read last."""
        return self.look() or self._known or Halt()

    def reason(self) -> Optional[str]:
        """The latest; None if none was ever read."""
        halt = self.look() or self._known
        return None if halt is None else halt.reason

    def ask_to_stop(self) -> bool:
        """Whether the wish, or another's, is in the file now."""
        halt = self._tried(self._native.ask_to_stop)
        return halt is not None and is_wish(halt.reason)

    def take_back_stop(self) -> bool:
        """Only what ask_to_stop has asked for. Whether there was something."""
        halt = self.look()
        if halt is None or halt.reason != SIGNALLED:
            return False
        return self._tried(lambda: self._native.take_back(SIGNALLED)) is not None

    def _tried(self, call: Callable[[], Halt]) -> Optional[Halt]:
        try:
            self._known = call()
            return self._known
        except Trouble as trouble:
            if str(trouble) not in self._told:
                self._told.add(str(trouble))
                self._say(f"{trouble}\nThe job goes on without it.")
            return None
