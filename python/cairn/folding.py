"""Combines equal messages of many nodes to one line."""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence

NAMED = 3  # up to this number, all nodes are named; of more only the first, the last and the number


def who_text(names: Sequence[str]) -> str:
    """"n1, n2", or "512 nodes (n1 ... n512)"."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{len(names)} nodes ({names[0]} ... {names[-1]})"


def folded(messages: Mapping[str, str]) -> Dict[str, List[str]]:
    """The nodes of each message, in the order of the first occurrence."""
    groups: Dict[str, List[str]] = {}
    for name, message in messages.items():
        groups.setdefault(message, []).append(name)
    return groups


def lines_of(messages: Mapping[str, str]) -> List[str]:
    """"NODES: MESSAGE", once for each message."""
    return [f"{who_text(names)}: {message}" for message, names in folded(messages).items()]
