"""Lists of hosts, by ClusterShell."""

from __future__ import annotations

from typing import Any, List, Sequence

from cairn.native import Trouble


def _node_sets() -> Any:
    try:
        from ClusterShell import NodeSet  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Trouble("the Python module ClusterShell is missing; Debian's package is "
                      "python3-clustershell") from error
    return NodeSet


def expand(text: str) -> List[str]:
    """"n[1-2],m" -> n1, n2 and m; in their order, each once."""
    module = _node_sets()
    hosts: List[str] = []
    try:
        for part in _parts(text):
            hosts += [host for host in module.NodeSet(part) if host not in hosts]
    except module.NodeSetException as error:
        raise Trouble(f'"{text}" is not a list of hosts: {error}') from error
    return hosts


def _parts(text: str) -> List[str]:
    """Splits at commas and blanks outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if depth == 0 and letter in ", \t\n":
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part]


def fold(hosts: Sequence[str]) -> str:
    """The short form."""
    return str(_node_sets().NodeSet.fromlist(list(hosts)))
