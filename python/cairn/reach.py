"""Whether the kernel of a node answers: the fastest sign that a node which says nothing more is dead, and not slow."""

from __future__ import annotations

import errno
import select
import socket
import threading
import time
from contextlib import ExitStack
from typing import Any, Dict, Iterable, List, Set, Tuple

PATIENCE_S = 1.3  # a lost packet is sent again after a second
# Of the service "discard": nobody listens there, which is told at once, and whoever does has no use for what it gets.
PORT = 9
ANSWERS = (0, errno.ECONNREFUSED)
AT_ONCE = 200  # connections; a process may have 1024 files open, and has others
Address = Tuple[socket.AddressFamily, Any]  # of the family's own kind


class Reach:
    """A kernel takes or refuses a connection at once, however busy its processes are; without power, or cut off, it does
    neither. Only of nodes that have answered once does silence tell anything: others may be behind a filter."""

    def __init__(self, port: int = PORT, patience_s: float = PATIENCE_S) -> None:
        self._port, self._patience_s = port, patience_s
        self._addresses: Dict[str, Address] = {}  # of those that have answered

    def learn(self, nodes: Iterable[str]) -> threading.Thread:
        """Asks nodes for the first time; not here and now, since a name server may take its time."""
        unknown = [node for node in nodes if node not in self._addresses]
        thread = threading.Thread(target=self._learn, args=(unknown,), daemon=True)
        thread.start()
        return thread

    def silent(self, nodes: Iterable[str], patience_s: float = 0.0) -> Set[str]:
        """Those that have answered once, and do not now; they are given so much time, or what is usual if that is more."""
        asked = {node: self._addresses[node] for node in nodes if node in self._addresses}
        answers = _answers_of(asked, max(patience_s, self._patience_s))
        return {node for node, answered in answers.items() if not answered}

    def _learn(self, nodes: Iterable[str]) -> None:
        found = {}
        for node in nodes:
            try:
                family, _, _, _, address = socket.getaddrinfo(node, self._port, type=socket.SOCK_STREAM)[0]
                found[node] = (family, address)
            except OSError:
                continue
        answers = _answers_of(found, self._patience_s)
        self._addresses.update({node: found[node] for node, answered in answers.items() if answered})


def _answers_of(addresses: Dict[str, Address], patience_s: float) -> Dict[str, bool]:
    """Of those that could be asked: whether they answer."""
    found: Dict[str, bool] = {}
    nodes = list(addresses.items())
    for begin in range(0, len(nodes), AT_ONCE):
        found.update(_answers_of_some(nodes[begin:begin + AT_ONCE], patience_s))
    return found


def _answers_of_some(nodes: List[Tuple[str, Address]], patience_s: float) -> Dict[str, bool]:
    found: Dict[str, bool] = {}
    with ExitStack() as stack:
        waiting = {}
        writable = select.poll()
        for node, (family, address) in nodes:
            try:
                one = stack.enter_context(socket.socket(family))
            except OSError:  # too many files are open, say
                continue
            one.setblocking(False)
            code = one.connect_ex(address)
            found[node] = code in ANSWERS
            if code == errno.EINPROGRESS:
                waiting[one.fileno()] = (node, one)
                writable.register(one, select.POLLOUT)
        end = time.monotonic() + patience_s
        while waiting and time.monotonic() < end:
            for number, _ in writable.poll(1000 * max(0.0, end - time.monotonic())):
                node, one = waiting.pop(number)
                writable.unregister(one)
                found[node] = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in ANSWERS
    return found
