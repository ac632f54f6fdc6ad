"""Tests whether the kernel of a node answers: the fastest way to distinguish a dead node from a slow one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from itertools import chain
from typing import Dict, Iterable, List, Set

from cairn import connections
from cairn.connections import Address, Question, answers_of, wait_for
from cairn.processes import Lines, ends_with_us

WITNESSES = 3  # other nodes to test if all tested nodes are silent
PATIENCE_S = 1.3  # a lost packet is sent again after a second
# The port of the service "discard". Normally no process listens there, so the kernel rejects the connection at once; a
# process that does listen discards the data.
PORT = 9


class Reach:
    """A kernel without power or network neither accepts nor rejects a connection. Silence counts only for nodes that have
    answered before: others may be behind a filter. This host is never tested, as it would answer even without a
    network."""

    def __init__(self, port: int = PORT, patience_s: float = PATIENCE_S) -> None:
        self._port, self._patience_s = port, patience_s
        self._addresses: Dict[str, Address] = {}  # of nodes that have answered
        self._learning: List[Lines] = []
        self._early: Dict[str, Question] = {}

    def learn(self, nodes: Iterable[str]) -> None:
        """Tests nodes for the first time. Uses a process, as a thread would be unsafe with the forks here."""
        unknown = [node for node in nodes if node not in self._addresses]
        if unknown:
            self._learning.append(Lines(subprocess.Popen(
                [sys.executable, "-I", "-S", connections.__file__, str(self._port), str(self._patience_s), *unknown],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=ends_with_us())))

    def is_learning(self) -> bool:
        """True while first tests of nodes are running. Reads the answers that have arrived."""
        for lines in list(self._learning):
            for line in chain.from_iterable(iter(lines.news, [])):
                node, family, place = json.loads(line)
                address = Address(family, tuple(place))
                if not connections.is_this_host(address):
                    self._addresses[node] = address
            if not lines.is_open:
                lines.group.close()
                self._learning.remove(lines)
        return bool(self._learning)

    def ask(self, nodes: Iterable[str]) -> None:
        """Begins to test nodes, before a call of `silent` that needs the results."""
        self.is_learning()
        for node in nodes:
            if node in self._addresses and not self._is_asked(node, self._patience_s):
                self._forget(node)
                if len(self._early) < connections.AT_ONCE:
                    with suppress(OSError):
                        self._early[node] = Question(self._addresses[node])

    def silent(self, nodes: Iterable[str], patience_s: float = 0.0) -> Set[str]:
        """The nodes that answered before, and do not now, within `patience_s` or the usual time if that is longer. Empty
        if no other node answers: this host may have lost its network, which other tests detect."""
        self.is_learning()
        patience_s = max(patience_s, self._patience_s)
        asked = [node for node in nodes if node in self._addresses]
        early = {node: self._early[node] for node in asked if self._is_asked(node, 2 * patience_s)}
        wait_for(early, patience_s)
        found = {node for node, one in early.items() if one.is_conclusive and not one.answered}
        for node in asked:
            self._forget(node)
        # An answer to an early test may be too old.
        answers = answers_of({node: self._addresses[node] for node in asked if node not in found}, patience_s)
        found |= {node for node, answered in answers.items() if not answered}
        return found if any(answers.values()) or (found and self._has_witness(found, patience_s)) else set()

    def asked_for_s(self, nodes: Iterable[str]) -> float:
        """How long ago the last test of these nodes began; 0 if there was none."""
        now = time.monotonic()
        return min((now - self._early[node].begun_s for node in nodes if node in self._early), default=0.0)

    def _has_witness(self, silent: Set[str], patience_s: float) -> bool:
        """True if another node answers."""
        others = [node for node in self._addresses if node not in silent][:WITNESSES]
        return any(answers_of({node: self._addresses[node] for node in others}, patience_s).values())

    def _is_asked(self, node: str, since_s: float) -> bool:
        """True if a test of the node began less than `since_s` ago; an older one is not valid now."""
        return node in self._early and time.monotonic() - self._early[node].begun_s < since_s

    def _forget(self, node: str) -> None:
        if node in self._early:
            self._early.pop(node).close()
