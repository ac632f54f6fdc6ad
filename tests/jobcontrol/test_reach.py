"""Whether a kernel answers, told by real sockets."""

import socket
import time
from contextlib import ExitStack

from cairn.reach import Reach

HOST = "127.0.0.1"


def silenced(stack: ExitStack, listener: socket.socket) -> None:
    """The kernel drops what more comes to it, as a host without power does."""
    for _ in range(3):
        one = stack.enter_context(socket.socket())
        one.setblocking(False)
        one.connect_ex(listener.getsockname())


def test_a_host_that_refuses_answers() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    reach = Reach(port, 0.3)
    reach.learn([HOST]).join()
    assert reach.silent([HOST]) == set()


def test_silence_counts_only_against_a_host_that_has_answered() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        silenced(stack, listener)
        reach = Reach(listener.getsockname()[1], 0.3)
        reach.learn([HOST, "no-such-host.invalid"]).join()
        assert reach.silent([HOST, "no-such-host.invalid"]) == set(), "it may be behind a filter"


def test_a_host_that_has_answered_and_falls_silent_is_told_in_time() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        reach = Reach(listener.getsockname()[1], 0.3)
        reach.learn([HOST]).join()
        silenced(stack, listener)
        begin = time.monotonic()
        assert reach.silent([HOST, "never-asked"]) == {HOST}
        assert time.monotonic() - begin < 3


def test_more_hosts_are_asked_than_a_process_may_have_files_open() -> None:
    hosts = [f"127.0.{i // 250}.{i % 250 + 1}" for i in range(1500)]
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    reach = Reach(port, 0.3)
    reach.learn(hosts).join()
    assert reach.silent(hosts) == set()
