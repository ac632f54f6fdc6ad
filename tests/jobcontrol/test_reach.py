"""Whether a kernel answers, found by real sockets."""

import errno
import socket
import threading
import time
from contextlib import ExitStack
from typing import Callable, List, Set

import pytest

from cairn import connections
from cairn.connections import Address, address_of, answers_of
from cairn.reach import Reach

HOST = "127.0.0.1"
ANOTHER = "127.0.0.2"  # where nobody listens at the port of the first, so it answers always


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[Address], bool]:
    """The addresses of this host stand for those of other nodes; what tells them apart."""
    printed = connections.is_this_host
    monkeypatch.setattr(connections, "is_this_host", lambda address: False)
    return printed


def learnt(reach: Reach, hosts: List[str]) -> Reach:
    reach.learn(hosts)
    assert threading.active_count() == 1, "a process that forks with preexec_fn must have no other thread"
    end = time.monotonic() + 30
    while reach.is_learning():
        assert time.monotonic() < end
        time.sleep(0.01)
    return reach


def silenced(stack: ExitStack, listener: socket.socket) -> None:
    """The kernel drops what more comes to it, as a host without power does."""
    for _ in range(3):
        one = stack.enter_context(socket.socket())
        one.setblocking(False)
        one.connect_ex(listener.getsockname())


def test_a_host_that_refuses_answers() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    reach = learnt(Reach(port, 0.3), [HOST])
    assert reach.silent([HOST]) == set()


def test_silence_counts_only_against_a_host_that_has_answered() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        silenced(stack, listener)
        reach = learnt(Reach(listener.getsockname()[1], 0.3), [HOST, "no-such-host.invalid"])
        assert reach.silent([HOST, "no-such-host.invalid"]) == set(), "it may be behind a filter"


def test_a_host_that_has_answered_and_falls_silent_is_reported_in_time() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        reach = learnt(Reach(listener.getsockname()[1], 0.3), [HOST, ANOTHER])
        silenced(stack, listener)
        begin = time.monotonic()
        assert reach.silent([HOST, "never-asked"]) == {HOST}
        assert time.monotonic() - begin < 3


def test_what_begins_early_is_over_early() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        reach = learnt(Reach(listener.getsockname()[1], 3.0), [HOST, ANOTHER])
        silenced(stack, listener)
        begin = time.monotonic()
        reach.ask([HOST])
        time.sleep(2.0)
        assert 2.0 <= reach.asked_for_s([HOST, "never-asked"]) <= time.monotonic() - begin
        assert reach.asked_for_s(["never-asked"]) == 0
        assert reach.silent([HOST]) == {HOST}
        assert 2.9 < time.monotonic() - begin < 5, "the whole of its patience, but once"


def test_an_early_answer_does_not_count_for_later() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        reach = learnt(Reach(listener.getsockname()[1], 0.3), [HOST, ANOTHER])
        reach.ask([HOST])
        silenced(stack, listener)
        assert reach.silent([HOST]) == {HOST}


def test_more_hosts_are_asked_than_a_process_may_have_files_open() -> None:
    hosts = [f"127.0.{i // 250}.{i % 250 + 1}" for i in range(1500)]
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    reach = learnt(Reach(port, 0.3), hosts)
    assert reach.silent(hosts) == set()


def test_where_none_of_several_answers_it_may_be_the_way_there(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: Set[str] = set()
    monkeypatch.setattr("cairn.reach.answers_of", lambda asked, patience_s: {node: node in alive for node in asked})
    reach = Reach()
    for node in ("n0", "n1", "n2"):
        reach._addresses[node] = Address(socket.AF_INET, (HOST, 9))  # pylint: disable=protected-access
    assert reach.silent(["n0", "n1"]) == set()
    alive.add("n2")
    assert reach.silent(["n0", "n1"]) == {"n0", "n1"}, "another one answers"
    alive.add("n1")
    assert reach.silent(["n0", "n1"]) == {"n0"}


def unable(*_: object) -> None:
    raise OSError(errno.EMFILE, "too many open files")


def test_this_host_is_no_witness_for_its_own_link(monkeypatch: pytest.MonkeyPatch, elsewhere: Callable[[Address], bool]) -> None:
    """It always answers itself."""
    with ExitStack() as stack:
        others = [f"127.0.0.{i}" for i in (2, 3, 4)]
        listeners = {host: stack.enter_context(socket.create_server((host, 0), backlog=0)) for host in (HOST,)}
        port = listeners[HOST].getsockname()[1]
        monkeypatch.setattr(connections, "is_this_host", lambda address: address.place[0] == HOST)
        reach = learnt(Reach(port, 0.3), [HOST, *others])
        monkeypatch.setattr("cairn.reach.answers_of", lambda asked, patience_s: dict.fromkeys(asked, False))
        assert reach.silent(others) == set() == reach.silent([HOST, *others]), "the link of this host may be cut"
        assert reach.silent(["127.0.0.2"]) == set(), "nor do the others answer"
    assert elsewhere(address_of(HOST, 9)) and elsewhere(address_of("localhost", 9))
    assert not elsewhere(Address(socket.AF_INET, ("240.0.0.1", 9))), "which no host has"
    monkeypatch.setattr(socket, "socket", unable)
    assert elsewhere(Address(socket.AF_INET, ("240.0.0.1", 9))), "nobody knows"


def test_what_cannot_be_asked_is_no_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its link, a host loses its way to some nodes, which tells nothing of them; others are silent."""
    reach = Reach()
    for node in ("a", "b", "c"):
        reach._addresses[node] = Address(socket.AF_INET, (HOST, 9))  # pylint: disable=protected-access
    monkeypatch.setattr("cairn.reach.answers_of", lambda asked, patience_s: {node: False for node in asked if node != "a"})
    assert reach.silent(["a", "b", "c"]) == set()
    assert reach.silent(["b", "c"]) == set()


def test_the_only_other_node_is_not_reported_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be this one that is cut off, and nobody else can say."""
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    reach = learnt(Reach(port, 0.3), [HOST])
    monkeypatch.setattr("cairn.reach.answers_of", lambda asked, patience_s: dict.fromkeys(asked, False))
    assert reach.silent([HOST]) == set()


def test_a_fault_of_this_host_says_nothing_of_a_node() -> None:
    nowhere = Address(socket.AF_INET, ("255.255.255.255", 9))  # for which a stream has no way
    assert answers_of({"node": nowhere}, 0.1) == {}
