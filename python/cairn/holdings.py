"""The datasets that the caches of a dead job hold, as the nodes list them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from cairn.account import dataset_text
from cairn.node_work import NodeWork, first_json
from cairn.roles import Answer, RemoteExecution

PATIENCE_S = 60.0  # less if the allocation ends soon: most of the time left is for the copies
SHARE = 4


@dataclass
class Dataset:
    """The merged information of all nodes about one dataset."""

    number: int
    uuid: str
    name: str
    checkpoint: bool
    output: bool
    ranks: int
    in_prefix: bool
    bytes: int = 0
    nodes: List[str] = field(default_factory=list)  # nodes with files of it, or with redundancy data
    shared: bool = False  # in a store that all nodes share, so each has all of it
    due: bool = False  # the job was to copy it to the prefix directory, which lacks it
    committed: bool = True  # on at least one node, which proves that all were prepared; a restart uses the same rule

    def text(self) -> str:
        """As text."""
        return dataset_text(self.name, self.number)


def ask_for_lists(work: NodeWork, remote: RemoteExecution, nodes: Sequence[str], left_s: float) -> Dict[str, Answer]:
    """The lists of the nodes, in JSON. A node with much data takes longer than an idle spare. `left_s`: of the allocation."""
    command = work.command("scavenge-node", "--list", "--json")
    return remote.run({node: command for node in nodes}, min(PATIENCE_S, left_s / SHARE), alike=False)


def held_on(work: NodeWork, remote: RemoteExecution, nodes: Sequence[str], left_s: float) -> List[Dataset]:
    """What the nodes that answer hold."""
    answers = ask_for_lists(work, remote, nodes, left_s)
    lists = {node: first_json(answer.text) for node, answer in answers.items()}
    return merged({node: listed["datasets"] for node, listed in lists.items() if listed is not None})


def merged(lists: Mapping[str, Iterable[Mapping[str, Any]]]) -> List[Dataset]:
    """Merges the lists of the nodes; the oldest dataset first."""
    found: Dict[str, Dataset] = {}
    for node, listed in lists.items():
        for one in listed:
            dataset = found.setdefault(one["uuid"], Dataset(
                one["number"], one["uuid"], one["name"], one["checkpoint"], one["output"], one["ranks"], False,
                shared=True, committed=False))
            # A node with damaged records knows little about its data.
            dataset.name = dataset.name or one["name"]
            dataset.checkpoint = dataset.checkpoint or one["checkpoint"]
            dataset.output = dataset.output or one["output"]
            dataset.ranks = max(dataset.ranks, one["ranks"])
            dataset.in_prefix = dataset.in_prefix or one["in_prefix"] or one.get("outlived", False)
            dataset.due = dataset.due or one.get("due", False)
            dataset.committed = dataset.committed or one["committed"]
            # One node with private parts makes it not shared: these must be copied too.
            dataset.shared = dataset.shared and one.get("shared", False)
            dataset.bytes = max(dataset.bytes, one["bytes"]) if dataset.shared else dataset.bytes + one["bytes"]
            dataset.nodes.append(node)
    return sorted(found.values(), key=lambda one: (one.number, one.uuid))


def left_in_caches(datasets: Sequence[Dataset], wants_newest: bool) -> List[Dataset]:
    """Complete datasets that were to be copied to the prefix directory, and are not there: outputs, and the newest checkpoint.
    `wants_newest`: it was to be copied whatever its number is, as at the end of a program."""
    complete = [one for one in datasets if one.committed and not one.in_prefix]
    newest = max((one.number for one in datasets if one.committed and one.checkpoint), default=-1)
    return [one for one in complete if (one.due and one.output) or (one.number == newest and (one.due or wants_newest))]
