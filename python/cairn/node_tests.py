"""The tests of nodes before a run: those of SCR_NODE_TESTS, and three that always run."""

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
    """The nodes of SCR_EXCLUDE_NODES."""

    name = "excluded"
    tells_loss = True

    def __init__(self, excluded: Sequence[str]) -> None:
        self._excluded = frozenset(excluded)

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {node: EXCLUDED for node in nodes if node in self._excluded}


class SaidDown(NodeTest):
    """Nodes that the resource manager reports as down."""

    name = "resource_manager"
    tells_loss = True

    def __init__(self, manager: ResourceManager) -> None:
        self._manager = manager

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        down = self._manager.down(nodes)
        return {node: f"{self._manager.name} says: {down[node]}" for node in nodes if node in down}


class Kernel(NodeTest):
    """Nodes whose kernel answered before, and no longer does."""

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
    """Nodes that do not answer to ping. Ignored until another node than this one has answered, as a filter may be the
    reason."""

    name = "ping"

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self._say, self._has_said, self._passes = say, False, False

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        codes = exit_codes({node: ["ping", "-c", "1", "-w", "2", node] for node in nodes}, PATIENCE_S)
        self._passes = self._passes or any(code == 0 and not _is_here(node) for node, code in codes.items())
        # Any other code is an error of ping: it is not allowed here, or does not know the name.
        silent = [node for node in nodes if codes.get(node) == 1]
        if silent and not self._passes and not self._has_said:
            self._has_said = True
            self._say("no other node answers to ping, so the test is ignored")
        return dict.fromkeys(silent, "does not answer to ping") if self._passes else {}


def _is_here(node: str) -> bool:
    """True for any name and address of this host."""
    if node.partition(".")[0] == socket.gethostname().partition(".")[0]:
        return True
    try:
        return is_this_host(address_of(node, 0))
    except OSError:
        return False


def echo(remote: RemoteExecution) -> NodeTest:
    """Tests whether the node runs commands."""
    def judge(answer: Answer) -> str:
        if answer.code == 0 and "cairn is here" in answer.text:
            return ""
        return f"no command can run there: {_first_line(answer)}"
    return OnNode("echo", remote, lambda node: "echo cairn is here", judge, tells_loss=True)


# The program makes the directory itself. Space that the job already uses there counts as free.
CAPACITY = ('d={folder}; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; '
            'if [ -d "$d" ] && [ -w "$d" ]; then df -Pk "$d" | tail -n 1; du -skc {own}* 2>/dev/null | tail -n 1 | grep . || echo 0; '
            'else echo "$d cannot be written"; exit 1; fi')


def capacity(remote: RemoteExecution, folder: str, own: str, bytes_needed: int) -> NodeTest:
    """Tests whether a directory (%n stands for the node) is writable, and has enough space for the job. Names that begin
    with `own` are files of the job, in all its prefix directories."""
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
    """The directories that a node must have, and the bytes that must be free in each: those of lines CACHEDIR=DIRECTORY
    BYTES=SIZE and CNTLDIR, and those that the library uses."""
    found = dict.fromkeys(cache_folders(settings), 0)
    for key, value in settings.items():
        kind, _, folder = key.rpartition(" ")[0].partition("=")
        if kind in ("CACHEDIR", "CNTLDIR") and key.endswith(" BYTES"):
            # A directory that is both must have space for both.
            found[folder] = found.get(folder, 0) + int(value)
    return found


def tests_of(names: Sequence[str], manager: ResourceManager, excluded: Sequence[str],
             settings: Mapping[str, str], say: Callable[[str], None] = lambda text: None) -> List[NodeTest]:
    """The tests to run, the cheapest first. `say` prints messages of the tests."""
    tests: List[NodeTest] = [Excluded(excluded), SaidDown(manager), Kernel(manager.remote())]
    for name in names:
        if name == "ping":
            tests += [Ping(say)] if manager.names_are_hosts() else []
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
    """The nodes that fail a test, each with the first reason; later tests skip them."""
    found: Dict[str, str] = {}
    for test in tests:
        left = [node for node in nodes if node not in found]
        if left:
            found.update(test.unfit(left))
    return found
