"""Whether the kernel of a node answers: the fastest sign that a node which says nothing more is dead, and not slow."""

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

WITNESSES = 3  # of those that are not in question, where all that are fall silent
PATIENCE_S = 1.3  # a lost packet is sent again after a second
# Of the service "discard": nobody listens there, which is told at once, and whoever does has no use for what it gets.
PORT = 9


class Reach:
    """Without power, or cut off, a kernel neither takes nor refuses a connection. Only of nodes that have answered once does
    silence tell anything: others may be behind a filter. This host is never asked: it would be a witness for links that it
    has lost."""

    def __init__(self, port: int = PORT, patience_s: float = PATIENCE_S) -> None:
        self._port, self._patience_s = port, patience_s
        self._addresses: Dict[str, Address] = {}  # of those that have answered
        self._learning: List[Lines] = []
        self._early: Dict[str, Question] = {}

    def learn(self, nodes: Iterable[str]) -> None:
        """Asks nodes for the first time. By a process: there must be no thread beside what is forked here."""
        unknown = [node for node in nodes if node not in self._addresses]
        if unknown:
            self._learning.append(Lines(subprocess.Popen(
                [sys.executable, "-I", "-S", connections.__file__, str(self._port), str(self._patience_s), *unknown],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=ends_with_us())))

    def is_learning(self) -> bool:
        """Whether nodes have been asked for the first time and may still answer. Takes the answers there are."""
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
        """Begins to ask nodes of which `silent` is to tell soon: what begins early is over early."""
        self.is_learning()
        for node in nodes:
            if node in self._addresses and not self._is_asked(node, self._patience_s):
                self._forget(node)
                if len(self._early) < connections.AT_ONCE:
                    with suppress(OSError):
                        self._early[node] = Question(self._addresses[node])

    def silent(self, nodes: Iterable[str], patience_s: float = 0.0) -> Set[str]:
        """Those that have answered once, and do not now; they are given so much time, or what is usual if that is more.
        None where no other node than this one answers: it may be this one that is cut off, and others find that out."""
        self.is_learning()
        patience_s = max(patience_s, self._patience_s)
        asked = [node for node in nodes if node in self._addresses]
        early = {node: self._early[node] for node in asked if self._is_asked(node, 2 * patience_s)}
        wait_for(early, patience_s)
        found = {node for node, one in early.items() if one.tells and not one.answered}
        for node in asked:
            self._forget(node)
        # An early answer may be too old.
        answers = answers_of({node: self._addresses[node] for node in asked if node not in found}, patience_s)
        found |= {node for node, answered in answers.items() if not answered}
        return found if any(answers.values()) or (found and self._has_witness(found, patience_s)) else set()

    def asked_for_s(self, nodes: Iterable[str]) -> float:
        """How long ago the last of them was asked for `silent`; 0 if none was."""
        now = time.monotonic()
        return min((now - self._early[node].begun_s for node in nodes if node in self._early), default=0.0)

    def _has_witness(self, silent: Set[str], patience_s: float) -> bool:
        """Whether another node answers."""
        others = [node for node in self._addresses if node not in silent][:WITNESSES]
        return any(answers_of({node: self._addresses[node] for node in others}, patience_s).values())

    def _is_asked(self, node: str, since_s: float) -> bool:
        """For no longer than that; an older question says nothing of now."""
        return node in self._early and time.monotonic() - self._early[node].begun_s < since_s

    def _forget(self, node: str) -> None:
        if node in self._early:
            self._early.pop(node).close()
