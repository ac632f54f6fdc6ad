"""Signs of life of the nodes, independent of any launcher."""

from __future__ import annotations

import time
from typing import Dict, List, Optional, Sequence, Set

from cairn.processes import Lines
from cairn.roles import Beats, RemoteExecution

# A Slurm step ends at once when its srun gets SIGTERM, but only after some seconds when its srun is killed.
PATIENCE_S = 0.3
PERIOD_S = 0.5  # of the signs of life
SHORTEST_SILENCE_S = 2 * PERIOD_S
SILENCE_S = 1.5  # after this time a silent node is suspected
EARLY = 0.5  # of the patience: then slow tests of a silent node begin


class Heartbeats:
    """Signs of life of each node, every `period_s`. A node is suspected at once when its connection closes, and after
    `patience_s` of silence. If the processes cannot be started, `trouble` has the reason, and they are started again
    after `rest_s`. A context manager: leaving it ends them."""

    def __init__(self, remote: RemoteExecution, nodes: Sequence[str], period_s: float = PERIOD_S,
                 patience_s: float = SILENCE_S, rest_s: float = 10.0) -> None:
        self._remote, self._period_s, self._patience_s, self._rest_s = remote, period_s, patience_s, rest_s
        self._streams: List[_Stream] = []
        self._heard: Dict[str, float] = {}  # of watched nodes
        self._resting: Dict[str, float] = {}  # end of the pause
        self._expected: Set[str] = set()  # nodes that may be suspected soon
        self._asked_to_end_s: Optional[float] = None
        self.trouble = ""
        self.watch(nodes)

    def __enter__(self) -> "Heartbeats":
        return self

    def __exit__(self, *_: object) -> None:
        begun_s = self.ask_to_end()
        for stream in self._streams:
            stream.group.wait(begun_s + PATIENCE_S - time.monotonic())
            stream.group.close()

    def ask_to_end(self) -> float:
        """Asks the processes to end. Returns the time of the first such call."""
        if self._asked_to_end_s is None:
            self._asked_to_end_s = time.monotonic()
            for stream in self._streams:
                stream.group.ask_to_end()
        return self._asked_to_end_s

    def watch(self, nodes: Sequence[str]) -> None:
        """Begins to watch nodes, or begins again."""
        for stream in [one for one in self._streams if not one.is_open]:
            self._streams.remove(stream)
            stream.group.close()
        fed = {node for stream in self._streams for node in stream.nodes}
        fresh = [node for node in nodes if node not in fed]
        try:
            self._streams += [_Stream(beats) for beats in self._remote.beats(fresh, self._period_s)] if fresh else []
        except OSError as error:
            self.trouble = error.strerror or str(error)
            nodes = [node for node in nodes if node in fed]
            self._resting.update(dict.fromkeys(fresh, time.monotonic() + self._rest_s))
        for node in nodes:
            self._heard[node] = time.monotonic()

    def rest(self, node: str) -> None:
        """Call when a suspicion was wrong. If the connection has closed, the node is watched again after a while, not at
        once: otherwise a place where connections never last would get one after the other."""
        if any(stream.is_open and node in stream.nodes for stream in self._streams):
            self._heard[node] = time.monotonic()
            return
        self._heard.pop(node, None)
        self._resting[node] = time.monotonic() + self._rest_s

    def suspects(self) -> List[str]:
        """Nodes that may be dead."""
        now = time.monotonic()
        awake = [node for node, until in self._resting.items() if now >= until]
        for node in awake:
            del self._resting[node]
        if awake:
            self.watch(awake)
        closed = set()
        for stream in self._streams:
            for node in stream.news():
                if node in self._heard:
                    self._heard[node] = now
            closed.update(() if stream.is_open else stream.nodes)
        self._expect([node for node, heard in self._heard.items() if now - heard > EARLY * self._patience_s])
        return [node for node, heard in self._heard.items() if node in closed or now - heard > self._patience_s]

    def _expect(self, quiet: List[str]) -> None:
        fresh = [node for node in quiet if node not in self._expected]
        self._expected = set(quiet)
        if fresh:
            self._remote.expect(fresh)


class _Stream(Lines):
    """A process with signs of life."""

    def __init__(self, beats: Beats) -> None:
        super().__init__(beats.process)
        self.nodes = beats.nodes
