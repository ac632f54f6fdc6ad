"""Which nodes are fit for a run: the tests that SCR_NODE_TESTS names, and two that always count."""

from __future__ import annotations

import shlex
from typing import Callable, Dict, List, Mapping, Sequence

from cairn.native import Trouble
from cairn.roles import UNKNOWN, Answer, NodeTest, RemoteExecution, ResourceManager

PATIENCE_S = 10.0


class Excluded(NodeTest):
    """Those that SCR_EXCLUDE_NODES names."""

    name = "excluded"

    def __init__(self, excluded: Sequence[str]) -> None:
        self._excluded = frozenset(excluded)

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {node: "is excluded by the user" for node in nodes if node in self._excluded}


class SaidDown(NodeTest):
    """The word of the resource manager."""

    name = "resource_manager"

    def __init__(self, manager: ResourceManager) -> None:
        self._manager = manager

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        down = self._manager.down(nodes)
        return {node: f"{self._manager.name} says: {down[node]}" for node in nodes if node in down}


class OnNode(NodeTest):
    """A command on each node that must return 0."""

    def __init__(self, name: str, remote: RemoteExecution, command: Callable[[str], str],
                 judge: Callable[[Answer], str]) -> None:
        self.name = name
        self._remote, self._command, self._judge = remote, command, judge

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        answers = self._remote.run({node: self._command(node) for node in nodes}, PATIENCE_S)
        verdicts = {node: self._judge(answers[node]) for node in nodes if answers[node].code != UNKNOWN}
        return {node: verdict for node, verdict in verdicts.items() if verdict}


class Ping(NodeTest):
    """An answer to ping."""

    name = "ping"

    def __init__(self, ask: Callable[[Sequence[str]], Answer]) -> None:
        self._ask = ask

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        found = {}
        for node in nodes:
            answer = self._ask(["ping", "-c", "1", "-w", "2", node])
            if answer.code == 127:
                return {}  # no ping here is not the fault of the nodes
            if answer.code != 0:
                found[node] = "does not answer to ping"
        return found


def echo(remote: RemoteExecution) -> NodeTest:
    """The node runs commands."""
    def judge(answer: Answer) -> str:
        if answer.code == 0 and "cairn is here" in answer.text:
            return ""
        return f"runs no commands: {_first_line(answer)}"
    return OnNode("echo", remote, lambda node: "echo cairn is here", judge)


# The folder itself is made by the program.
CAPACITY = ('d={}; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; '
            'if [ -d "$d" ] && [ -w "$d" ]; then df -Pk "$d" | tail -n 1; '
            'else echo "$d cannot be written"; exit 1; fi')


def capacity(remote: RemoteExecution, folder: str, bytes_needed: int) -> NodeTest:
    """A folder (%n is the node) can be written, and has so much room."""
    def judge(answer: Answer) -> str:
        if answer.code != 0:
            return f"{folder}: {_first_line(answer)}"
        words = answer.text.split()
        free = int(words[3]) * 1024 if len(words) > 3 and words[3].isdigit() else 0
        return "" if free >= bytes_needed else f"{folder} has {free} bytes free, not {bytes_needed}"
    return OnNode("dir_capacity", remote,
                  lambda node: CAPACITY.format(shlex.quote(folder.replace("%n", node))), judge)


def _first_line(answer: Answer) -> str:
    return (answer.text.strip().splitlines() or [f"exit {answer.code}"])[0]


def tests_of(names: Sequence[str], manager: ResourceManager, excluded: Sequence[str],
             settings: Mapping[str, str], bytes_needed: int) -> List[NodeTest]:
    """Those to be done, the cheapest first."""
    tests: List[NodeTest] = [Excluded(excluded), SaidDown(manager)]
    for name in names:
        if name == "ping":
            tests += [Ping(manager.ask)] if manager.names_are_hosts() else []
        elif name == "echo":
            tests.append(echo(manager.remote()))
        elif name == "dir_capacity":
            tests += [capacity(manager.remote(), folder, bytes_needed) for folder in
                      sorted({settings["SCR_CACHE_BASE"], settings["SCR_CNTL_BASE"]})]
        elif name not in ("none", Excluded.name, SaidDown.name):
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
