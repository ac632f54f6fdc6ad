"""Connections that ask whether a kernel answers: it takes or refuses one at once, however busy its processes are.

As a program, connections.py PORT PATIENCE NODE ..., it finds the addresses of nodes, since a name server may take its time,
and prints [node, family, address] of each one that answers, in JSON. Imports little: it runs for every launch.
"""

import errno
import json
import select
import socket
import sys
import time
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Tuple

ANSWERS = (0, errno.ECONNREFUSED)
SILENCE = (errno.ETIMEDOUT, errno.EHOSTUNREACH)  # other errors are this host's: no route, no ports, a filter
AT_ONCE = 200  # connections; a process may have 1024 files open, and has others


class Address(NamedTuple):
    """Of whatever family."""

    family: int
    place: Any


def address_of(node: str, port: int) -> Address:
    """Raises OSError if nobody knows the name."""
    family, _, _, _, place = socket.getaddrinfo(node, port, type=socket.SOCK_STREAM)[0]
    return Address(int(family), place)


def is_this_host(address: Address) -> bool:
    """An answer to itself tells a host nothing of its links."""
    try:
        with socket.socket(address.family) as one:
            one.bind((address.place[0], 0, *address.place[2:]))
    except OSError as error:  # what fails for another reason tells nothing, and is nobody's witness
        return error.errno != errno.EADDRNOTAVAIL
    return True


class Question:
    """One connection. As long as it is open nothing has come back, which is silence too. One that failed for a reason that
    is not the node's tells nothing."""

    def __init__(self, address: Address) -> None:
        """Raises OSError, if too many files are open, say."""
        self.begun_s = time.monotonic()
        self.connection = socket.socket(address.family)
        self.connection.setblocking(False)
        self.is_open, self.answered, self.tells = True, False, True
        code = self.connection.connect_ex(address.place)
        if code != errno.EINPROGRESS:
            self._take(code)

    def look(self) -> None:
        """Takes the answer, which has come."""
        self._take(self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _take(self, code: int) -> None:
        self.is_open, self.answered = False, code in ANSWERS
        self.tells = self.answered or code in SILENCE

    def close(self) -> None:
        """Nothing more is expected of it."""
        self.connection.close()


def wait_for(questions: Mapping[str, Question], patience_s: float) -> None:
    """Each has so long, from its own beginning."""
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
    """Of those that could be asked: whether they answer."""
    nodes = list(addresses)
    found: Dict[str, bool] = {}
    for begin in range(0, len(nodes), AT_ONCE):
        questions = dict(_asked({node: addresses[node] for node in nodes[begin:begin + AT_ONCE]}))
        wait_for(questions, patience_s)
        for node, one in questions.items():
            if one.tells:
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
