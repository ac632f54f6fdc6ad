"""Copies what the nodes of a dead job still hold to the prefix directory, and rebuilds it there."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from cairn.account import count_text, size_text, time_text
from cairn.drain import Drain, Drained
from cairn.event_log import Events
from cairn.folding import folded, lines_of, who_text
from cairn.long_work import TEMPORARY
from cairn.native import Native, Trouble
from cairn.node_work import HERE, NodeWork, first_json, last_line
from cairn.progress_bar import bar_of
from cairn.resources.local import Here
from cairn.roles import Answer, RemoteExecution

LIST_PATIENCE_S = 60.0  # or less, where less is left: most of that is for the copies
LIST_SHARE = 4
MARGIN_S = 5.0  # of the time left: what it takes to come to an end
SHARED_TRIES = 3  # nodes that copy all of a shared store where files cannot be read: each takes as much room


@dataclass
class Dataset:
    """What all nodes together know about one dataset."""

    number: int
    uuid: str
    name: str
    checkpoint: bool
    output: bool
    ranks: int
    in_prefix: bool
    bytes: int = 0
    nodes: List[str] = field(default_factory=list)  # that have something of it: files, or what protects others'
    shared: bool = False  # in a store that all nodes share: each has all of it
    committed: bool = True  # on one node at least, which proves that all were prepared: a restart decides by the same

    def text(self) -> str:
        """For people."""
        return f"{self.name or 'without a name'} (dataset {self.number})"


class Verdict(Enum):
    """What came of the attempt to save a dataset."""

    SAVED = "saved"
    COPIED = "copied"  # but not rebuilt, because the user did not want that
    FAILED = "failed"
    LATER = "later"  # there was a transient obstacle


def merged(lists: Mapping[str, Iterable[Mapping[str, Any]]]) -> List[Dataset]:
    """From what each node has listed; the oldest first."""
    found: Dict[str, Dataset] = {}
    for node, listed in lists.items():
        for one in listed:
            dataset = found.setdefault(one["uuid"], Dataset(
                one["number"], one["uuid"], one["name"], one["checkpoint"], one["output"], one["ranks"], False,
                shared=True, committed=False))
            # A node whose records are damaged knows little of what it holds.
            dataset.name = dataset.name or one["name"]
            dataset.checkpoint = dataset.checkpoint or one["checkpoint"]
            dataset.output = dataset.output or one["output"]
            dataset.ranks = max(dataset.ranks, one["ranks"])
            dataset.in_prefix = dataset.in_prefix or one["in_prefix"] or one.get("outlived", False)
            dataset.committed = dataset.committed or one["committed"]
            # One node that has some of it for itself is enough: what only that one has must be copied too.
            dataset.shared = dataset.shared and one.get("shared", False)
            dataset.bytes = max(dataset.bytes, one["bytes"]) if dataset.shared else dataset.bytes + one["bytes"]
            dataset.nodes.append(node)
    return sorted(found.values(), key=lambda one: (one.number, one.uuid))


def next_to_save(datasets: Sequence[Dataset], ended: Mapping[str, Verdict], checkpoints: bool = True) -> Optional[Dataset]:
    """Outputs, the oldest first, until one fails; then checkpoints, the newest first, until one is safe. One that is
    newer than an output that failed is of no use: the job would not make that output again. None: nothing is left
    to be done."""
    if Verdict.LATER in ended.values():
        return None
    before = None  # the output that has failed
    for one in datasets:
        if one.output and not one.in_prefix:
            if one.uuid not in ended:
                return one
            if ended[one.uuid] == Verdict.FAILED:
                before = one.number
                break
    for one in reversed(datasets if checkpoints else ()):
        if not one.checkpoint or (before is not None and one.number >= before):
            continue
        if one.in_prefix or ended.get(one.uuid) == Verdict.SAVED:
            return None
        if one.uuid not in ended:
            return one
    return None


@dataclass
class Saved:
    """One dataset, and what became of it."""

    dataset: Dataset
    verdict: Verdict
    outcome: str
    reason: str
    nodes: Dict[str, str]  # what each of its nodes has said that could not copy its parts

    def text(self) -> str:
        """One line."""
        why = f": {self.reason}" if self.reason else ""
        what = f"{self.dataset.text()}, {size_text(self.dataset.bytes)} on {', '.join(self.dataset.nodes)}"
        words = {Verdict.SAVED: "is now in the prefix directory", Verdict.COPIED: "is copied; cairn rebuild completes it",
                 Verdict.FAILED: "could not be saved", Verdict.LATER: "is not saved yet"}
        if self.outcome == "outlived" and self.verdict == Verdict.SAVED:
            return f"{what}: not needed, because the prefix directory has a newer one"
        return f"{what}: {words[self.verdict]}{why}"

    def as_json(self) -> Dict[str, Any]:
        """For programs."""
        one = self.dataset
        return {"number": one.number, "uuid": one.uuid, "name": one.name, "checkpoint": one.checkpoint,
                "output": one.output, "bytes": one.bytes, "nodes": one.nodes, "verdict": self.verdict.value,
                "outcome": self.outcome, "reason": self.reason, "failed_nodes": self.nodes}


@dataclass
class Result:
    """Of a whole scavenge."""

    silent: Dict[str, str] = field(default_factory=dict)  # nodes that could not list their caches, each with the reason
    nodes: List[str] = field(default_factory=list)  # all
    saved: List[Saved] = field(default_factory=list)
    drained: List[Drained] = field(default_factory=list)  # datasets that the job had begun to copy
    waits: str = ""  # why no further dataset was tried
    partly: Dict[str, str] = field(default_factory=dict)  # nodes that could not read all that they hold
    left: Dict[str, str] = field(default_factory=dict)  # nodes with caches that were left aside, each with the reason
    listed: int = 0  # datasets that the nodes listed, including those in the prefix directory
    complete: int = 0  # of these, those that some node had committed
    spoken_for: bool = True  # a node of the last run has listed all that it holds, and that is something

    def not_seen(self) -> Dict[str, str]:
        """Nodes that hold, or may hold, more than they listed."""
        return {**self.left, **self.partly, **self.silent}

    def may_have_missed(self) -> bool:
        """Whether there may be something to save that no node has listed. Each node of a run holds a part of each dataset
        that the run made, so one that lists all of them tells what those hold that are lost. Where something cannot be
        read, or was left aside, the other nodes may have it no more than this one; redundancy may have done without it."""
        if not self.nodes or (self.not_seen() and self.listed == 0):
            return True
        return bool(self.silent and not self.spoken_for) or bool((self.partly or self.left) and not self.saved)

    def verdict(self) -> Optional[Verdict]:
        """The worst result that counts; None: there was nothing to save. A checkpoint that could not be saved does not count
        if an older one was saved, nor does a dataset that was never complete."""
        counted = [one for one in self.saved if one.outcome != "uncommitted" or one.nodes]
        verdicts = [one.verdict for one in counted]
        if self.waits or Verdict.LATER in verdicts:
            return Verdict.LATER
        if self.may_have_missed():
            return Verdict.FAILED
        outputs_failed = any(one.verdict == Verdict.FAILED and one.dataset.output for one in counted)
        if outputs_failed or (verdicts and verdicts[-1] == Verdict.FAILED):
            return Verdict.FAILED
        return verdicts[-1] if verdicts else None

    def text(self) -> str:
        """One line; empty where there was nothing to be saved, and all nodes have told."""
        parts = [f"{one.name or one.number} copied" for one in self.drained if one.is_published()]
        parts += [f"{one.dataset.name} {one.verdict.value}" for one in self.saved]
        if self.waits:
            parts.append(f"{'the rest ' if parts else ''}later: {self.waits}")
        if len(self.silent) == len(self.nodes):
            parts.append("no node answered")
        elif self.silent:
            parts.append(f"no answer from {', '.join(sorted(self.silent))}")
        if self.partly:
            parts.append(f"some files on {', '.join(sorted(self.partly))} could not be read")
        if self.left:
            parts.append(f"caches on {', '.join(sorted(self.left))} were left aside, because they are not of this prefix "
                         "directory")
        return "; ".join(parts)

    def as_json(self) -> Dict[str, Any]:
        """For programs."""
        verdict = self.verdict()
        return {"verdict": verdict.value if verdict else "nothing to save", "nodes": self.nodes, "silent": self.silent,
                "partly": self.partly, "left": self.left, "waits": self.waits, "drained": [one.as_json() for one in self.drained], "datasets": [one.as_json() for one in self.saved]}


@dataclass(frozen=True)
class Wish:
    """What is to be done."""

    settings: Mapping[str, str]  # of the command on the nodes
    rebuild: bool = True
    checkpoints: bool = True
    ran_on: Sequence[str] = ()  # the nodes of the last run, by any of their names; empty: not known
    run_ended: bool = False  # known for certain, so that nobody has to wait for a sign of life of the last run
    end_time_s: Optional[float] = None  # of the allocation


class Scavenge:
    """Of one prefix directory, from some nodes."""

    def __init__(self, wish: Wish, native: Native, remote: RemoteExecution, say: Callable[[str], None],
                 why_stop: Callable[[], str] = lambda: "", tick: Callable[[], None] = lambda: None,
                 events: Events = Events()) -> None:
        self._wish, self._native, self._remote, self._say, self._events = wish, native, remote, say, events
        self._asked_to_stop = why_stop
        self._work = NodeWork(native, wish.settings, self._why_stop, tick)

    def run(self, nodes: Sequence[str], down: Mapping[str, str]) -> Result:
        """All that has to be done; of the nodes those that are `down` are not asked. Errors are in the result."""
        result = Result(dict(down), list(nodes), waits=self._why_stop())
        if result.waits:
            return result
        begun_s, ended = time.time(), "cut off"
        self._events.happened("SCAVENGE_START", f"asks {len(nodes) - len(down)} of {count_text(len(nodes), 'node')}")
        try:
            self._save_all([node for node in nodes if node not in down], result)
            ended = result.text() or "nothing to save"
        finally:
            self._events.happened("SCAVENGE_END", ended, time.time() - begun_s)
        return result

    def _save_all(self, nodes: Sequence[str], result: Result) -> None:
        """First what the job had begun to copy: that goes to its place at once, and what cannot be finished in this way is
        saved with the rest."""
        result.drained = self._drain(nodes)
        lists = self._lists(nodes, result)
        datasets = merged(lists)
        result.listed = len(datasets)
        for one in datasets:
            if not one.committed:
                self._say(f"{one.text()} was never complete: the job died before any node had committed it")
        datasets = [one for one in datasets if one.committed]
        result.complete = len(datasets)
        result.spoken_for = any(listed and node not in result.not_seen() and self._has_run_on(node)
                                for node, listed in lists.items())
        others = "" if len(result.silent) == len(result.nodes) else ", and what the other nodes hold may replace it"
        silent = {node: f"no answer ({why}); its cache cannot be listed{others}" for node, why in result.silent.items()}
        partly = {node: f"a part of its cache cannot be listed: {why}" for node, why in result.partly.items()}
        for line in [*lines_of(silent), *lines_of(partly), *lines_of(result.left)]:
            self._say(line)
        ended: Dict[str, Verdict] = {}
        while True:
            one = next_to_save(datasets, ended, self._wish.checkpoints)
            if one is None:
                break
            result.waits = self._why_stop()
            if result.waits:
                break
            saved = self._save(one)
            self._say(saved.text())
            ended[one.uuid] = saved.verdict
            result.saved.append(saved)

    def _drain(self, nodes: Sequence[str]) -> List[Drained]:
        drain = Drain(self._work, self._native, self._remote, self._say, self._wish.run_ended)
        try:
            drained = drain.run(nodes)
        except Trouble as trouble:
            self._say(f"whether the job had begun to copy datasets is unknown: {trouble}")
            return []
        if self._wish.rebuild:
            drain.give_names(drained)
        return drained

    def _has_run_on(self, node: str) -> bool:
        names = {name.partition(".")[0] for name in self._wish.ran_on}
        return not names or node.partition(".")[0] in names

    def _why_stop(self) -> str:
        return "the allocation ends" if self._left_s() < MARGIN_S else self._asked_to_stop()

    def _left_s(self) -> float:
        return math.inf if self._wish.end_time_s is None else self._wish.end_time_s - time.time()

    def _lists(self, nodes: Sequence[str], result: Result) -> Dict[str, List[Dict[str, Any]]]:
        """Of the nodes that answer. One that holds much takes longer for it than an idle spare."""
        command = self._work.command("scavenge-node", "--list", "--json")
        patience_s = min(LIST_PATIENCE_S, self._left_s() / LIST_SHARE)
        lists = {}
        for node, answer in self._remote.run({node: command for node in nodes}, patience_s, alike=False).items():
            reported = first_json(answer.text)
            if reported is None:
                result.silent[node] = last_line(answer)
                continue
            lists[node] = reported["datasets"]
            left = reported.get("left", [])
            if left:
                result.left[node] = "; ".join(left)
            if answer.code != 0 and (reported.get("unreadable") or not left):
                result.partly[node] = "; ".join(reported.get("unreadable", [])) or last_line(answer)
        return lists

    def _save(self, one: Dataset) -> Saved:
        command = self._work.command("scavenge-node", "--dataset", one.uuid, "--json", "--progress")
        answers = self._copy(one, command)
        failed = {node: last_line(answer) for node, answer in answers.items() if not has_copied(answer)}
        for why, names in folded(failed).items():
            self._say(f"{one.text()}: {who_text(names)} could not copy {'its part' if len(names) == 1 else 'their parts'}: {why}")
        later = [node for node, answer in answers.items() if answer.code == TEMPORARY]
        if later and len(later) == len(answers):
            return Saved(one, Verdict.LATER, "", failed[later[0]], failed)
        if not self._wish.rebuild:
            verdict = Verdict.LATER if later else Verdict.FAILED if failed else Verdict.COPIED
            return Saved(one, verdict, "", "; ".join(folded(failed)), failed)
        outcome, reason = self._rebuild(one, self._wish.run_ended and not later, bool(failed))
        is_safe = outcome in ("published", "there") or (outcome == "outlived" and not one.output)
        verdict = Verdict.SAVED if is_safe else Verdict.LATER if later or outcome == "later" else Verdict.FAILED
        return Saved(one, verdict, outcome, reason, failed)

    def _copy(self, one: Dataset, command: str) -> Dict[str, Answer]:
        """What the nodes have said that were asked. Of a shared store one does it all: the first that can. Where that
        cannot read files of the dataset, others try too: what they have copied is taken together."""
        def bar(seconds: float, done: Mapping[str, int]) -> str:
            return bar_of(one.text(), sum(done.values()), one.bytes, seconds)
        if not one.shared:
            return self._work.run(self._remote, {node: command for node in one.nodes}, bar)
        partly: Dict[str, Answer] = {}
        answers: Dict[str, Answer] = {}
        for node in one.nodes:
            answers = self._work.run(self._remote, {node: command}, bar)
            if answers[node].code == TEMPORARY:
                break
            copied, unread = has_copied(answers[node]), unreadable(answers[node], one)
            if copied and not unread:
                break
            self._say(f"{one.text()}: {node} could not copy {'all of ' if copied else ''}it: "
                      f"{unread or last_line(answers[node])}")
            if copied:
                partly.update(answers)
            if len(partly) == SHARED_TRIES:
                break
        return {**partly, **answers}

    def _rebuild(self, one: Dataset, run_ended: bool, failed: bool) -> "tuple[str, str]":
        """Outcome and reason, also where some nodes have failed: redundancy may do without their parts."""
        ended = ["--run-ended"] if run_ended else []
        command = self._work.command("rebuild", "--dataset", one.uuid, "--json", *ended)
        answer = self._work.run(Here(self._native.environment), {HERE: command}, lambda seconds, _: (
            f"{one.text()}: rebuilding and publishing, {time_text(seconds)}"))[HERE]
        reported = (first_json(answer.text) or {}).get("datasets", [])
        found = next((line for line in reported if line["uuid"] == one.uuid), None)
        if found is None and answer.code == 0 and not failed:
            return "there", ""
        if found is None:
            return ("later" if answer.code == TEMPORARY else "failed"), last_line(answer)
        return str(found["outcome"]), str(found.get("reason") or "")


def has_copied(answer: Answer) -> bool:
    """There is an account of it then, also where something else on the node could not be read."""
    return answer.code == 0 or "saved_bytes" in (first_json(answer.text) or {})


def unreadable(answer: Answer, one: Dataset) -> str:
    """What of this dataset the node could not read: the names of files and folders tell whose they are."""
    reported = (first_json(answer.text) or {}).get("unreadable", [])
    return next((str(line) for line in reported if one.uuid in line), "")
