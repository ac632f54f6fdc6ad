"""Finishes the copies to the prefix directory that a dead job had begun: each node copies the parts that it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from cairn.account import dataset_text, size_text, time_text
from cairn.folding import folded, who_text
from cairn.long_work import TEMPORARY
from cairn.native import Native
from cairn.node_work import HERE, NodeWork, first_json, last_line
from cairn.resources.local import Here
from cairn.roles import Answer, RemoteExecution

PUBLISHED, UNFINISHED, LATER = "published", "unfinished", "later"


@dataclass
class Drained:
    """A dataset that the job had begun to copy."""

    number: int
    uuid: str
    name: str
    outcome: str
    reason: str = ""  # of all but published
    output: bool = False
    is_older: bool = False  # see Known

    def is_published(self) -> bool:
        """All of it is in the prefix directory."""
        return self.outcome == PUBLISHED

    def text(self) -> str:
        """One line."""
        what = dataset_text(self.name, self.number)
        if self.is_published():
            return f"{what} is now in the prefix directory: the nodes have finished its copy"
        return f"{what}: its copy is not finished: {self.reason}"

    def as_json(self) -> Dict[str, Any]:
        """For programs."""
        return {"number": self.number, "uuid": self.uuid, "name": self.name, "outcome": self.outcome, "reason": self.reason}


class Drain:
    """Of one prefix directory."""

    def __init__(self, work: NodeWork, native: Native, remote: RemoteExecution, say: Callable[[str], None],
                 run_ended: bool = False) -> None:
        """`run_ended`: known for certain, so that no command has to wait for a sign of life of the last run."""
        self._work, self._native, self._remote, self._say, self._run_ended = work, native, remote, say, run_ended

    def run(self, nodes: Sequence[str]) -> List[Drained]:
        """What became of each dataset; empty where the job had begun none. What could not be finished is left as it is, for
        the next drain, a scavenge or the next run. Trouble: the prefix directory cannot be read."""
        plans = self._native.unfinished_copies() if nodes else []
        if not plans:
            return []
        command = self._work.command("drain-node", "--json", "--progress", *self._ended())
        answers = self._work.run(self._remote, {node: command for node in nodes}, lambda seconds, done: (
            f"finishing the copies of the dead job: {size_text(sum(done.values()))}, {time_text(seconds)}"))
        drained = outcomes(plans, answers)
        for one in drained:
            self._say(one.text())
        return drained

    def _ended(self) -> List[str]:
        return ["--run-ended"] if self._run_ended else []

    def give_names(self, drained: Sequence[Drained]) -> None:
        """The files of a published dataset have temporary names until an owner of the prefix directory has renamed them, as
        the next run does."""
        published = [one for one in drained if one.is_published()]
        if not published:
            return
        named = [word for one in published for word in ("--dataset", one.uuid)]
        command = self._work.command("rebuild", "--json", *named, *self._ended())
        answer = self._work.run(Here(self._native.environment), {HERE: command}, lambda seconds, _: (
            f"renaming the files, {time_text(seconds)}"))[HERE]
        if answer.code != 0:
            self._say(f"some files still have temporary names, which the next run or cairn rebuild changes: {last_line(answer)}")


def outcomes(plans: Sequence[Mapping[str, Any]], answers: Mapping[str, Answer]) -> List[Drained]:
    """What became of each plan, by what the nodes have answered. One node that has seen a dataset published is enough; nodes
    that come later do not see it any more."""
    found = {one["uuid"]: Drained(one["number"], one["uuid"], one["name"], UNFINISHED, output=one.get("output", False))
             for one in plans}
    failures: Dict[str, Dict[str, str]] = {uuid: {} for uuid in found}
    missing: Dict[str, Optional[List[int]]] = {uuid: None for uuid in found}
    overtaken = set()
    for node, answer in answers.items():
        report = first_json(answer.text)
        seen = {one["uuid"]: one for one in (report or {}).get("datasets", [])}
        if report is not None:
            overtaken.update(set(found) - set(seen))
        for uuid in set(found) & set(seen):  # others were planned since, by a run that lives
            one, known = seen[uuid], missing[uuid]
            if one["outcome"] == "published":
                found[uuid].outcome = PUBLISHED
            if one["outcome"] == "failed":
                failures[uuid][node] = one["reason"]
            missing[uuid] = [rank for rank in one["missing"] if known is None or rank in known]
    silent = {node: why for node, why in ((node, not_seen_by(answer)) for node, answer in answers.items()) if why}
    is_late = any(answer.code == TEMPORARY for answer in answers.values())
    for uuid, drained in found.items():
        if not drained.is_published():
            drained.outcome = LATER if is_late or uuid in overtaken else UNFINISHED
            drained.reason = reason_of({**failures[uuid], **silent}, uuid in overtaken, missing[uuid])
    return list(found.values())


def not_seen_by(answer: Answer) -> str:
    """Why a node may hold parts that it has not copied; empty if it has looked at all that it holds."""
    report = first_json(answer.text)
    if report is None:
        return last_line(answer)
    return next((str(text) for key in ("unreadable", "left") for text in report.get(key, [])), "")


def reason_of(failures: Mapping[str, str], is_overtaken: bool, missing: Optional[Sequence[int]]) -> str:
    """Why a copy is not finished: what the nodes have said, or else whose parts no node holds. `is_overtaken`: a node has not
    seen the plan any more, so what other nodes have seen `missing` may be there. `missing` is None where no node has worked on
    it."""
    said = [f"{who_text(names)}: {why}" for why, names in folded(failures).items()]
    if is_overtaken or not (said or missing):
        said.append("another process has changed its plan meanwhile" if not is_overtaken else
                    "a node sees its plan no more: another process has changed it, or the prefix directory is not mounted there")
    if said:
        return "; ".join(said)
    ranks = missing or []
    some = ", ".join(map(str, ranks[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"no node that was asked holds the parts of rank{'s' if len(ranks) > 1 else ''} {some}"
