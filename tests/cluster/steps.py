"""Runs in an allocation: what becomes of commands on nodes by steps of Slurm, as JSON. steps.py PACKAGE NODE ..."""

import json
import os
import signal
import sys
import time
from typing import Any, Callable, Dict, Tuple

sys.path.insert(0, sys.argv[1])

from cairn.resources.slurm import Slurm  # noqa: E402
from cairn.roles import RemoteExecution  # noqa: E402


def timed(call: Callable[[], Any]) -> Tuple[Any, float]:
    begin = time.monotonic()
    return call(), time.monotonic() - begin


def ends_with_its_parent(remote: RemoteExecution, node: str) -> bool:
    """Whether a step ends when the process that has started it is killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(remote.start(node, "while echo; do sleep 0.05; done").pid).encode())
        time.sleep(60)
    step = os.read(reader, 16).decode()
    time.sleep(0.5)
    lived = os.path.exists(f"/proc/{step}")
    os.kill(child, signal.SIGKILL)
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{step}") and time.monotonic() < end:
        time.sleep(0.02)
    return lived and not os.path.exists(f"/proc/{step}")


def main() -> None:
    nodes = sys.argv[2:]
    remote = Slurm(os.environ).remote()
    printed: Dict[str, Any] = {}
    printed["said"] = remote.run({node: "echo I am $(hostname); exit 3" for node in nodes}, 10)
    printed["each its own"] = remote.run({node: f"echo {node}" for node in nodes}, 10)
    printed["hung"], printed["hung_s"] = timed(lambda: remote.run({nodes[1]: "sleep 60"}, 10))
    printed["ends"] = ends_with_its_parent(remote, nodes[1])
    print(json.dumps(printed))


main()
