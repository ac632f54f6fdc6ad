"""Which nodes are fit for a run: the tests that SCR_NODE_TESTS names, and three that always count."""

from __future__ import annotations

import shlex
import socket
from typing import Callable, Dict, List, Mapping, Sequence

from cairn.connections import address_of, is_this_host
from cairn.native import Trouble, cache_folders
from cairn.processes import exit_codes
from cairn.roles import GONE, UNKNOWN, Answer, NodeTest, RemoteExecution, ResourceManager

PATIENCE_S = 10.0
EXCLUDED = "is excluded by the user"


class Excluded(NodeTest):
    """Those that SCR_EXCLUDE_NODES names."""

    name = "excluded"
    tells_loss = True

    def __init__(self, excluded: Sequence[str]) -> None:
        self._excluded = frozenset(excluded)

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {node: EXCLUDED for node in nodes if node in self._excluded}


class SaidDown(NodeTest):
    """The word of the resource manager."""

    name = "resource_manager"
    tells_loss = True

    def __init__(self, manager: ResourceManager) -> None:
        self._manager = manager

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        down = self._manager.down(nodes)
        return {node: f"{self._manager.name} says: {down[node]}" for node in nodes if node in down}


class Kernel(NodeTest):
    """That of a node which has answered before answers nothing any more."""

    name = "kernel"
    tells_loss = True

    def __init__(self, remote: RemoteExecution) -> None:
        self._remote = remote

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        gone = self._remote.gone(nodes)
        return {node: GONE.text for node in nodes if node in gone}


class OnNode(NodeTest):
    """A command on each node that must return 0."""

    def __init__(self, name: str, remote: RemoteExecution, command: Callable[[str], str],
                 judge: Callable[[Answer], str], tells_loss: bool = False) -> None:
        self.name, self.tells_loss = name, tells_loss
        self._remote, self._command, self._judge = remote, command, judge

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        answers = self._remote.run({node: self._command(node) for node in nodes}, PATIENCE_S)
        verdicts = {node: self._judge(answers[node]) for node in nodes if answers[node].code != UNKNOWN}
        return {node: verdict for node, verdict in verdicts.items() if verdict}


class Ping(NodeTest):
    """An answer to ping. As long as no other node than this one has ever answered, a filter between them may be why."""

    name = "ping"

    def __init__(self, tell: Callable[[str], None] = lambda text: None) -> None:
        self._tell, self._has_told, self._passes = tell, False, False

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        codes = exit_codes({node: ["ping", "-c", "1", "-w", "2", node] for node in nodes}, PATIENCE_S)
        self._passes = self._passes or any(code == 0 and not _is_here(node) for node, code in codes.items())
        # Any other code tells of ping: that it must not be used here, or does not know the name.
        silent = [node for node in nodes if codes.get(node) == 1]
        if silent and not self._passes and not self._has_told:
            self._has_told = True
            self._tell("no other node answers to ping, so the test is ignored")
        return dict.fromkeys(silent, "does not answer to ping") if self._passes else {}


def _is_here(node: str) -> bool:
    """By whatever name or address."""
    if node.partition(".")[0] == socket.gethostname().partition(".")[0]:
        return True
    try:
        return is_this_host(address_of(node, 0))
    except OSError:
        return False


def echo(remote: RemoteExecution) -> NodeTest:
    """The node runs commands."""
    def judge(answer: Answer) -> str:
        if answer.code == 0 and "cairn is here" in answer.text:
            return ""
        return f"no command can run there: {_first_line(answer)}"
    return OnNode("echo", remote, lambda node: "echo cairn is here", judge, tells_loss=True)


# The folder itself is made by the program. What the job has there already is room for it.
CAPACITY = ('d={folder}; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; '
            'if [ -d "$d" ] && [ -w "$d" ]; then df -Pk "$d" | tail -n 1; du -skc {own}* 2>/dev/null | tail -n 1 | grep . || echo 0; '
            'else echo "$d cannot be written"; exit 1; fi')


def capacity(remote: RemoteExecution, folder: str, own: str, bytes_needed: int) -> NodeTest:
    """A folder (%n is the node) can be written, and has so much room for the job; what the job has below it already,
    in all its prefix directories, begins with `own`."""
    def judge(answer: Answer) -> str:
        if answer.code != 0:
            return f"{folder}: {_first_line(answer)}"
        words = answer.text.split()
        numbers = [int(word) * 1024 for word in (*words[3:4], *words[6:7]) if word.isdigit()]
        return "" if sum(numbers) >= bytes_needed else f"{folder} has {sum(numbers)} bytes free, and needs {bytes_needed}"

    def command(node: str) -> str:
        here = folder.replace("%n", node)
        return CAPACITY.format(folder=shlex.quote(here), own=shlex.quote(f"{here}/{own}"))
    return OnNode("dir_capacity", remote, command, judge)


def _first_line(answer: Answer) -> str:
    return (answer.text.strip().splitlines() or [f"exit {answer.code}"])[0]


def folders_of(settings: Mapping[str, str]) -> Dict[str, int]:
    """The folders that a node must have, and the bytes that must be free in each: those of CACHEDIR=FOLDER BYTES=SIZE and
    CNTLDIR lines, and those that the library uses."""
    found = dict.fromkeys(cache_folders(settings), 0)
    for key, value in settings.items():
        kind, _, folder = key.rpartition(" ")[0].partition("=")
        if kind in ("CACHEDIR", "CNTLDIR") and key.endswith(" BYTES"):
            # Where one folder is both, it must have room for both.
            found[folder] = found.get(folder, 0) + int(value)
    return found


def tests_of(names: Sequence[str], manager: ResourceManager, excluded: Sequence[str],
             settings: Mapping[str, str], tell: Callable[[str], None] = lambda text: None) -> List[NodeTest]:
    """Those to be done, the cheapest first. `tell`: what a test has to say of itself."""
    tests: List[NodeTest] = [Excluded(excluded), SaidDown(manager), Kernel(manager.remote())]
    for name in names:
        if name == "ping":
            tests += [Ping(tell)] if manager.names_are_hosts() else []
        elif name == "echo":
            tests.append(echo(manager.remote()))
        elif name == "dir_capacity":
            own = f"{settings['SCR_USER_NAME']}/cairn.{settings['SCR_JOB_ID']}."
            tests += [capacity(manager.remote(), folder, own, count)
                      for folder, count in sorted(folders_of(settings).items())]
        elif name not in ("none", Excluded.name, SaidDown.name, Kernel.name):
            raise Trouble(f'SCR_NODE_TESTS: "{name}" is none of ping, echo, dir_capacity, none')
    return tests


def unfit(tests: Sequence[NodeTest], nodes: Sequence[str]) -> Dict[str, str]:
    """The nodes that fail a test, each with the first reason; they are not asked again."""
    found: Dict[str, str] = {}
    for test in tests:
        left = [node for node in nodes if node not in found]
        if left:
            found.update(test.unfit(left))
    return found
