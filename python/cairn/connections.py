"""Test connections to the kernel of a node: it accepts or rejects a connection at once, even if its processes are busy.

As a program, connections.py PORT PATIENCE NODE ..., it looks up the addresses of nodes, as a name server may be slow, and
prints [node, family, address] of each node that answers, as JSON. It has few imports, as it runs for every launch.
"""

import errno
import json
import select
import socket
import sys
import time
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Tuple

ANSWERS = (0, errno.ECONNREFUSED)
SILENCE = (errno.ETIMEDOUT, errno.EHOSTUNREACH)  # other errors are local: no route, no ports, a filter
AT_ONCE = 200  # connections; the limit of open files may be 1024, and the process has others


class Address(NamedTuple):
    """An address of any family."""

    family: int
    place: Any


def address_of(node: str, port: int) -> Address:
    """Raises OSError if the name is unknown."""
    family, _, _, _, place = socket.getaddrinfo(node, port, type=socket.SOCK_STREAM)[0]
    return Address(int(family), place)


def is_this_host(address: Address) -> bool:
    """True for an address of this host: an answer from it says nothing about the network."""
    try:
        with socket.socket(address.family) as one:
            one.bind((address.place[0], 0, *address.place[2:]))
    except OSError as error:  # with any other error the address counts as local, so that it is never a witness
        return error.errno != errno.EADDRNOTAVAIL
    return True


class Question:
    """A test connection to one node. While it is open, the node is silent. If it failed for a local reason, it is not
    conclusive."""

    def __init__(self, address: Address) -> None:
        """Raises OSError, for example if too many files are open."""
        self.begun_s = time.monotonic()
        self.connection = socket.socket(address.family)
        self.connection.setblocking(False)
        self.is_open, self.answered, self.is_conclusive = True, False, True
        code = self.connection.connect_ex(address.place)
        if code != errno.EINPROGRESS:
            self._take(code)

    def look(self) -> None:
        """Reads the answer, which has arrived."""
        self._take(self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _take(self, code: int) -> None:
        self.is_open, self.answered = False, code in ANSWERS
        self.is_conclusive = self.answered or code in SILENCE

    def close(self) -> None:
        """Ends the test."""
        self.connection.close()


def wait_for(questions: Mapping[str, Question], patience_s: float) -> None:
    """Waits until each has answered, or `patience_s` have passed since its beginning."""
    waiting = {one.connection.fileno(): one for one in questions.values() if one.is_open}
    writable = select.poll()
    for number in waiting:
        writable.register(number, select.POLLOUT)
    while waiting:
        left_s = max(one.begun_s for one in waiting.values()) + patience_s - time.monotonic()
        for number, _ in writable.poll(1000 * max(0.0, left_s)):
            writable.unregister(number)
            waiting.pop(number).look()
        if left_s <= 0:
            return


def answers_of(addresses: Mapping[str, Address], patience_s: float) -> Dict[str, bool]:
    """Whether the nodes answer, for those with a conclusive test."""
    nodes = list(addresses)
    found: Dict[str, bool] = {}
    for begin in range(0, len(nodes), AT_ONCE):
        questions = dict(_asked({node: addresses[node] for node in nodes[begin:begin + AT_ONCE]}))
        wait_for(questions, patience_s)
        for node, one in questions.items():
            if one.is_conclusive:
                found[node] = one.answered
            one.close()
    return found


def _asked(addresses: Mapping[str, Address]) -> Iterator[Tuple[str, Question]]:
    for node, address in addresses.items():
        try:
            yield node, Question(address)
        except OSError:
            continue


def main() -> None:
    """The program."""
    port, patience_s, nodes = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    found = {}
    for node in nodes:
        try:
            found[node] = address_of(node, port)
        except OSError:
            continue
    for node, answered in answers_of(found, patience_s).items():
        if answered:
            print(json.dumps([node, *found[node]]))


if __name__ == "__main__":
    main()
