"""Copies the data on the nodes of a dead job to the prefix directory, and rebuilds them there."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from cairn.account import count_text, dataset_text, size_text, time_text
from cairn.drain import LATER, Drain, Drained
from cairn.event_log import Events
from cairn.folding import folded, lines_of, who_text
from cairn.long_work import TEMPORARY
from cairn.native import Native, Trouble
from cairn.node_work import HERE, NodeWork, first_json, last_line
from cairn.progress_bar import bar_of
from cairn.resources.local import Here
from cairn.roles import Answer, RemoteExecution
from cairn.unflushed import Known, Unflushed

LIST_PATIENCE_S = 60.0  # less if the allocation ends soon: most of the time left is for the copies
LIST_SHARE = 4
MARGIN_S = 5.0  # of the time left: needed to finish
SHARED_TRIES = 3  # nodes that copy all of a shared store if files cannot be read: each copy takes space


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
    committed: bool = True  # on at least one node, which proves that all were prepared; a restart uses the same rule
    is_older: bool = False  # see Known
    is_made_good: bool = False  # the job does not need it any more

    def text(self) -> str:
        """As text."""
        return dataset_text(self.name, self.number)


def older_text(dataset: Dataset) -> str:
    """To distinguish it from the newer one."""
    return " (an older one)" if dataset.is_older else ""


class Verdict(Enum):
    """The result of the attempt to save a dataset."""

    SAVED = "saved"
    COPIED = "copied"  # not rebuilt, as the user requested
    FAILED = "failed"
    LATER = "later"  # a transient error


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
            dataset.committed = dataset.committed or one["committed"]
            # One node with private parts makes it not shared: these must be copied too.
            dataset.shared = dataset.shared and one.get("shared", False)
            dataset.bytes = max(dataset.bytes, one["bytes"]) if dataset.shared else dataset.bytes + one["bytes"]
            dataset.nodes.append(node)
    return sorted(found.values(), key=lambda one: (one.number, one.uuid))


def next_to_save(datasets: Sequence[Dataset], ended: Mapping[str, Verdict], checkpoints: bool = True) -> Optional[Dataset]:
    """The next dataset to save: outputs, the oldest first; then checkpoints, the newest first, until one is safe. What
    cannot be saved holds nothing else back. None: nothing is left to do."""
    if Verdict.LATER in ended.values():
        return None
    for one in datasets:
        if one.output and not one.in_prefix and one.uuid not in ended:
            return one
    for one in reversed(datasets if checkpoints else ()):
        if not one.checkpoint:
            continue
        if one.in_prefix or ended.get(one.uuid) == Verdict.SAVED:
            return None
        if one.uuid not in ended:
            return one
    return None


@dataclass
class Saved:
    """The result for one dataset."""

    dataset: Dataset
    verdict: Verdict
    outcome: str
    reason: str
    nodes: Dict[str, str]  # nodes that could not copy their parts, each with the error

    def text(self) -> str:
        """One line."""
        why = f": {self.reason}" if self.reason else ""
        what = f"{self.dataset.text()}{older_text(self.dataset)}, {size_text(self.dataset.bytes)} on {', '.join(self.dataset.nodes)}"
        words = {Verdict.SAVED: "is now in the prefix directory", Verdict.COPIED: "is copied; cairn rebuild completes it",
                 Verdict.FAILED: "could not be saved", Verdict.LATER: "is not saved yet"}
        if self.outcome == "outlived" and self.verdict == Verdict.SAVED:
            return f"{what}: not needed, because the prefix directory has a newer one"
        return f"{what}: {words[self.verdict]}{why}"

    def counts(self) -> bool:
        """False if it was never complete, or is not needed. A node that could not copy its part may know better."""
        return not self.dataset.is_made_good and (self.outcome != "uncommitted" or bool(self.nodes))

    def as_json(self) -> Dict[str, Any]:
        """For JSON."""
        one = self.dataset
        return {"number": one.number, "uuid": one.uuid, "name": one.name, "checkpoint": one.checkpoint,
                "output": one.output, "bytes": one.bytes, "nodes": one.nodes, "verdict": self.verdict.value,
                "outcome": self.outcome, "reason": self.reason, "failed_nodes": self.nodes, "is_older": one.is_older}


@dataclass
class Result:
    """The result of a whole scavenge."""

    silent: Dict[str, str] = field(default_factory=dict)  # nodes that could not list their caches, each with the reason
    nodes: List[str] = field(default_factory=list)  # all
    saved: List[Saved] = field(default_factory=list)
    drained: List[Drained] = field(default_factory=list)  # datasets whose copy the job had begun
    unlisted: List[Drained] = field(default_factory=list)  # of these, the unfinished ones that no node has listed
    waits: str = ""  # why further datasets were not tried
    partly: Dict[str, str] = field(default_factory=dict)  # nodes that could not read all of their data
    left: Dict[str, str] = field(default_factory=dict)  # nodes with caches that were ignored, each with the reason
    listed: int = 0  # datasets in the lists of the nodes, including those in the prefix directory
    complete: int = 0  # of these, the number that some node had committed
    in_prefix: List[Tuple[int, str]] = field(default_factory=list)  # numbers and names of those that the prefix directory had
    outputs: List[Dataset] = field(default_factory=list)  # complete ones that were to be saved
    has_complete_list: bool = True  # a node of the last run has listed all of its data, and has some
    note: str = ""  # what came of it, where no line about a dataset says it
    restart: str = ""  # the checkpoint that a restart will use now

    def not_seen(self) -> Dict[str, str]:
        """Nodes that have, or may have, more data than they listed."""
        return {**self.left, **self.partly, **self.silent}

    def lines_of_nodes(self) -> List[str]:
        """The nodes of not_seen, each with what is wrong."""
        others = "" if len(self.silent) == len(self.nodes) else ", and what the other nodes hold may replace it"
        silent = {node: f"no answer ({why}); its cache cannot be listed{others}" for node, why in self.silent.items()}
        partly = {node: f"a part of its cache cannot be listed: {why}" for node, why in self.partly.items()}
        return [*lines_of(silent), *lines_of(partly), *lines_of(self.left)]

    def may_have_missed(self) -> bool:
        """True if there may be data to save that no node has listed. Each node of a run has a part of each dataset, so
        one complete list also covers lost nodes. If data could not be read or were ignored, other nodes need not have
        them; but redundancy may have replaced them if something was saved."""
        if not self.nodes or (self.not_seen() and self.listed == 0):
            return True
        return bool(self.silent and not self.has_complete_list) or bool((self.partly or self.left) and not self.saved)

    def lost(self) -> List[Drained]:
        """Begun copies that nothing can finish: no node that answered has any of the dataset. A checkpoint is not needed if
        a newer one is safe."""
        safe = [one.number for one in self.drained if one.is_published() and not one.output]
        safe += [one.dataset.number for one in self.saved if one.verdict == Verdict.SAVED and one.dataset.checkpoint]
        return [one for one in self.unlisted if one.output or one.number > max(safe, default=-1)]

    def now_in_prefix(self) -> List[Tuple[int, str]]:
        """Numbers and names of the datasets that are known to be in the prefix directory, or that it has a newer one than."""
        found = [*(one for one in self.drained if one.is_published()),
                 *(one.dataset for one in self.saved if one.verdict == Verdict.SAVED)]
        return [*self.in_prefix, *((one.number, one.name) for one in found if not one.is_older)]

    def unsaved_outputs(self) -> List[Tuple[int, str]]:
        """Numbers and names of the outputs that are still to be saved, or cannot be saved."""
        settled = [one.dataset.uuid for one in self.saved if one.verdict == Verdict.SAVED or not one.counts()]
        return [*((one.number, one.name) for one in self.outputs if one.uuid not in settled),
                *((one.number, one.name) for one in self.lost() if one.output)]

    def verdict(self, lost: Collection[str] = ()) -> Optional[Verdict]:
        """The worst relevant result; None: there was nothing to save. A failed checkpoint is not relevant if an older one
        was saved, and neither is a dataset that was never complete, or is not needed, nor one of the labels in `lost`."""
        counted = [one for one in self.saved if one.counts() and (one.verdict == Verdict.SAVED or one.dataset.text() not in lost)]
        verdicts = [one.verdict for one in counted]
        if self.waits or Verdict.LATER in verdicts or any(one.outcome == LATER for one in self.lost()):
            return Verdict.LATER
        if self.may_have_missed() or self.lost():
            return Verdict.FAILED
        outputs_failed = any(one.verdict == Verdict.FAILED and one.dataset.output for one in counted)
        if outputs_failed or (verdicts and verdicts[-1] == Verdict.FAILED):
            return Verdict.FAILED
        return verdicts[-1] if verdicts else None

    def text(self) -> str:
        """One line; empty if there was nothing to save and all nodes have answered."""
        parts = [f"{one.name or one.number} copied" for one in self.drained if one.is_published()]
        parts += [f"{one.dataset.name}{older_text(one.dataset)} {one.verdict.value}" for one in self.saved]
        parts += [f"{one.name or one.number} not finished: {one.reason}" for one in self.lost()]
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
        """For JSON."""
        verdict = self.verdict()
        return {"verdict": verdict.value if verdict else "nothing to save", "nodes": self.nodes, "silent": self.silent,
                "partly": self.partly, "left": self.left, "waits": self.waits, "drained": [one.as_json() for one in self.drained],
                "lost": [one.as_json() for one in self.lost()], "datasets": [one.as_json() for one in self.saved],
                "note": self.note, "restart": self.restart}


@dataclass(frozen=True)
class Wish:
    """The options of a scavenge."""

    settings: Mapping[str, str]  # for the command on the nodes
    rebuild: bool = True
    checkpoints: bool = True
    ran_on: Sequence[str] = ()  # the nodes of the last run, by any of their names; empty: unknown
    run_ended: bool = False  # certain, so the commands need not wait for a sign of life of the last run
    end_time_s: Optional[float] = None  # end of the allocation
    is_made_good: Callable[[int, str], bool] = lambda number, name: False  # see Dataset
    mark_older: Callable[[Collection[Known]], None] = Unflushed().mark_older  # likewise


class Scavenge:
    """Saves datasets of one prefix directory from some nodes."""

    def __init__(self, wish: Wish, native: Native, remote: RemoteExecution, say: Callable[[str], None],
                 why_stop: Callable[[], str] = lambda: "", tick: Callable[[], None] = lambda: None,
                 events: Events = Events()) -> None:
        self._wish, self._native, self._remote, self._say, self._events = wish, native, remote, say, events
        self._asked_to_stop = why_stop
        self._work = NodeWork(native, wish.settings, self._why_stop, tick)

    def run(self, nodes: Sequence[str], down: Mapping[str, str]) -> Result:
        """Runs the whole scavenge, without the nodes in `down`. Errors are in the result."""
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
        """First finishes the copies that the job had begun, as these go directly to their place. Datasets that cannot be
        finished so are saved with the others."""
        result.drained = self._drain(nodes)
        lists = self._lists(nodes, result)
        datasets = merged(lists)
        result.listed = len(datasets)
        self._wish.mark_older([*(one for one in datasets if one.committed), *result.drained])
        result.in_prefix = [(one.number, one.name) for one in datasets if one.in_prefix and not one.is_older]
        known = {one.uuid for one in datasets}
        result.unlisted = [one for one in result.drained if not (one.is_published() or one.is_older or one.uuid in known)]
        for one in datasets:
            if not one.committed:
                self._say(f"{one.text()} was never complete: the job died before any node had committed it")
        datasets = [one for one in datasets if one.committed]
        result.complete = len(datasets)
        result.has_complete_list = any(listed and node not in result.not_seen() and self._has_run_on(node)
                                for node, listed in lists.items())
        for line in result.lines_of_nodes():
            self._say(line)
        for one in datasets:
            is_not_meant = one.is_older and one.output  # an older checkpoint is better than none
            one.is_made_good = not one.in_prefix and (is_not_meant or self._wish.is_made_good(one.number, one.name))
        result.outputs = [one for one in datasets if one.output and not one.in_prefix and not one.is_older]
        ended: Dict[str, Verdict] = {}
        needed = [one for one in datasets if not one.is_made_good]
        result.waits = self._save_each(needed, self._wish.checkpoints, ended, result)
        # The files of an output may be others than those that the job has made since, so it is saved if that is possible, but a
        # failure is of no interest. A checkpoint is not saved: the job has gone on from another one.
        self._save_each(datasets, False, ended, result)

    def _save_each(self, datasets: Sequence[Dataset], checkpoints: bool, ended: Dict[str, Verdict], result: Result) -> str:
        """Returns why not all that are to be saved were tried; empty if they were."""
        one = next_to_save(datasets, ended, checkpoints)
        while one is not None:
            waits = self._why_stop()
            if waits:
                return waits
            ended[one.uuid] = self._try(one, result)
            one = next_to_save(datasets, ended, checkpoints)
        return ""

    def _try(self, one: Dataset, result: Result) -> Verdict:
        saved = self._save(one)
        if saved.verdict == Verdict.SAVED or not one.is_made_good:
            self._say(saved.text())
            result.saved.append(saved)
        return saved.verdict

    def _say_of(self, one: Dataset, trouble: str) -> None:
        if not one.is_made_good:
            self._say(f"{one.text()}: {trouble}")

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
        """The lists of the nodes that answer. A node with much data takes longer than an idle spare."""
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
            self._say_of(one, f"{who_text(names)} could not copy {'its part' if len(names) == 1 else 'their parts'}: {why}")
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
        """The answers of the nodes that tried to copy. From a shared store, the first node that can copies everything. If
        it cannot read some files of the dataset, other nodes try too, and all copies are used together."""
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
            self._say_of(one, f"{node} could not copy {'all of ' if copied else ''}it: {unread or last_line(answers[node])}")
            if copied:
                partly.update(answers)
            if len(partly) == SHARED_TRIES:
                break
        return {**partly, **answers}

    def _rebuild(self, one: Dataset, run_ended: bool, failed: bool) -> "tuple[str, str]":
        """Outcome and reason. Tries to rebuild even if some nodes have failed, as redundancy may replace their parts."""
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
    """True if the node has copied its part, even if something else there could not be read."""
    return answer.code == 0 or "saved_bytes" in (first_json(answer.text) or {})


def unreadable(answer: Answer, one: Dataset) -> str:
    """What the node could not read of this dataset. Names of files and directories contain the id of the dataset."""
    reported = (first_json(answer.text) or {}).get("unreadable", [])
    return next((str(line) for line in reported if one.uuid in line), "")
