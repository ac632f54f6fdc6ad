"""Signs of life of the nodes, independent of any launcher."""

from __future__ import annotations

import os
import time
from typing import Dict, List, Sequence

from cairn.processes import Group
from cairn.roles import RemoteExecution

# Ends by itself when nobody listens any more.
BEAT = "while echo; do sleep {:g}; done"


class Heartbeats:
    """A process on each node that says something every `period_s`. Whose connection closes is
    suspected at once, who is silent for `patience_s` then. A context manager: leaving it ends them."""

    def __init__(self, remote: RemoteExecution, nodes: Sequence[str], period_s: float = 1.0,
                 patience_s: float = 10.0) -> None:
        self._remote, self._period_s, self._patience_s = remote, period_s, patience_s
        self._groups: Dict[str, Group] = {}
        self._pipes: Dict[str, int] = {}
        self._heard: Dict[str, float] = {}
        self._resting: Dict[str, float] = {}  # until when
        for node in nodes:
            self.watch(node)

    def __enter__(self) -> "Heartbeats":
        return self

    def __exit__(self, *_: object) -> None:
        for node in list(self._groups):
            self.forget(node)

    def watch(self, node: str) -> None:
        """From now on, also again."""
        self.forget(node)
        process = self._remote.start(node, BEAT.format(self._period_s))
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._groups[node] = Group(process)
        self._pipes[node] = process.stdout.fileno()
        self._heard[node] = time.monotonic()

    def rest(self, node: str) -> None:
        """A suspicion was wrong: the node is watched again after `patience_s`, not at once, so that a place
        where no connection lives does not get one after the other."""
        self.forget(node)
        self._resting[node] = time.monotonic() + self._patience_s

    def forget(self, node: str) -> None:
        """No longer."""
        group = self._groups.pop(node, None)
        self._resting.pop(node, None)
        self._pipes.pop(node, None)
        if group:
            group.close()

    def suspects(self) -> List[str]:
        """Nodes that may be dead."""
        now = time.monotonic()
        for node in [node for node, until in self._resting.items() if now >= until]:
            self.watch(node)
        return [node for node, pipe in self._pipes.items()
                if self._is_closed(node, pipe, now) or now - self._heard[node] > self._patience_s]

    def _is_closed(self, node: str, pipe: int, now: float) -> bool:
        try:
            if os.read(pipe, 4096) == b"":
                return True
            self._heard[node] = now
        except BlockingIOError:
            pass
        except OSError:
            return True
        return False
