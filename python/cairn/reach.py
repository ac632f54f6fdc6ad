"""Whether the kernel of a node answers: the fastest sign that a node which says nothing more is dead, and not slow."""

from __future__ import annotations

import errno
import select
import socket
import threading
import time
from contextlib import ExitStack
from typing import Any, Dict, Iterable, Set, Tuple

PATIENCE_S = 1.3  # a lost packet is sent again after a second
# Of the service "discard": nobody listens there, which is told at once, and whoever does has no use for what it gets.
PORT = 9
ANSWERS = (0, errno.ECONNREFUSED)
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

    def silent(self, nodes: Iterable[str]) -> Set[str]:
        """Those that have answered once, and do not now."""
        asked = {node: self._addresses[node] for node in nodes if node in self._addresses}
        return set(asked) - _answering(asked, self._patience_s)

    def _learn(self, nodes: Iterable[str]) -> None:
        found = {}
        for node in nodes:
            try:
                family, _, _, _, address = socket.getaddrinfo(node, self._port, type=socket.SOCK_STREAM)[0]
                found[node] = (family, address)
            except OSError:
                continue
        answering = _answering(found, self._patience_s)
        self._addresses.update({node: found[node] for node in answering})


def _answering(addresses: Dict[str, Address], patience_s: float) -> Set[str]:
    found: Set[str] = set()
    with ExitStack() as stack:
        waiting = {}
        for node, (family, address) in addresses.items():
            one = stack.enter_context(socket.socket(family))
            one.setblocking(False)
            code = one.connect_ex(address)
            if code in ANSWERS:
                found.add(node)
            elif code == errno.EINPROGRESS:
                waiting[one] = node
        end = time.monotonic() + patience_s
        while waiting and time.monotonic() < end:
            _, ready, _ = select.select([], list(waiting), [], max(0.0, end - time.monotonic()))
            for one in ready:
                node = waiting.pop(one)
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in ANSWERS:
                    found.add(node)
    return found
