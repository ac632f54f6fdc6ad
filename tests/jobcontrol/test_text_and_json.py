"""Text and JSON of the commands for jobs say the same: a fact that changes one of them changes the other, or is in a list of
what is left out on purpose."""

import copy
import re
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set, Tuple

from cairn import account
from cairn.account import Account, Run, summary_of
from cairn.commands import drain as drain_command
from cairn.commands import status
from cairn.commands.scavenge import ends_of, what_came
from cairn.drain import LATER, PUBLISHED, UNFINISHED, Drained
from cairn.job_log import Checkpoint, Progress, Transfers
from cairn.scavenge import Dataset, Result, Saved, Verdict

Path = Tuple[Any, ...]


def children(value: Any) -> List[Tuple[Any, Any]]:
    """The parts of a value, each with its name or place."""
    if is_dataclass(value):
        return [(one.name, getattr(value, one.name)) for one in fields(value)]
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def leaves(value: Any, path: Path = ()) -> Iterator[Tuple[Path, Any]]:
    """All facts, and the lists and tables themselves, which may grow."""
    if path and not is_dataclass(value):
        yield path, value
    for name, part in children(value):
        yield from leaves(part, (*path, name))


def another(value: Any) -> Any:
    """A value of the same kind."""
    if isinstance(value, Enum):
        kinds = list(type(value))
        return kinds[(kinds.index(value) + 1) % len(kinds)]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return 3 * value + 7000
    if isinstance(value, str):
        return f"{value} and more"
    if isinstance(value, list):
        return [*value, copy.deepcopy(value[-1])] if value else value
    return value


# Tables whose keys are nodes, by the last part of their names. They may grow, and others may not.
BY_NODE = ("unfit", "nodes_lost", "silent", "partly", "left", "nodes", "down")


def grown(table: Dict[str, Any]) -> Dict[str, Any]:
    """With another node."""
    return {**table, "one more": list(table.values())[-1]} if table else table


def with_another(sample: Any, path: Path) -> Any:
    """A copy of the sample in which this fact is another one."""
    made = copy.deepcopy(sample)
    place = made
    for name in path[:-1]:
        place = getattr(place, name) if is_dataclass(place) else place[name]
    last = path[-1]
    value = getattr(place, last) if is_dataclass(place) else place[last]
    changed = grown(value) if isinstance(value, dict) and last in BY_NODE else another(value)
    if is_dataclass(place):
        setattr(place, last, changed)
    else:
        place[last] = changed
    return made


def name_of(path: Path) -> str:
    """"runs[].how", "unfit{}": the same for all elements of a list, and all nodes of a table."""
    text = ""
    for name in path:
        if isinstance(name, int):
            text += "[]"
        elif re.split(r"\W", text)[-1] in BY_NODE:
            text += "{}"
        else:
            text += f".{name}" if text else str(name)
    return text


def differences(samples: Sequence[Any], text_of: Callable[[Any], str], json_of: Callable[[Any], Any]) -> Tuple[Set[str], Set[str]]:
    """The facts that only the text has, and those that only JSON has, over all samples."""
    in_text: Set[str] = set()
    in_json: Set[str] = set()
    for sample in samples:
        text, report = text_of(copy.deepcopy(sample)), json_of(copy.deepcopy(sample))
        for path, _ in leaves(sample):
            changed = with_another(sample, path)
            name = name_of(path)
            in_text |= {name} if text_of(copy.deepcopy(changed)) != text else set()
            in_json |= {name} if json_of(copy.deepcopy(changed)) != report else set()
    return in_text - in_json, in_json - in_text


# --- cairn run ---

@dataclass
class Summary:
    """What the account at the end is made from."""

    account: Account
    progress: Progress
    ended_s: float
    advice: List[str]


def runs() -> List[Run]:
    """Two that die, the second after a restart, and one that ends."""
    lost = {"n1": "off"}
    return [
        Run(1, ["n0", "n1"], 10.0, 130.0, 140.0, 141.0, 20.0, 0.0, "", "", "signal 9", True, lost, 100.0, 0.0, 80.0),
        Run(2, ["n0", "n2"], 150.0, 0.0, 230.0, 231.0, 170.0, 2.0, "step.1", "", "signal 6", True, {}, 200.0, 80.0, 120.0),
        Run(3, ["n0", "n2"], 240.0, 0.0, 0.0, 400.0, 260.0, 3.0, "", "n2 is gone", "", False, {}, 300.0, 0.0, 0.0)]


def summaries() -> List[Summary]:
    """Of a job with all that can happen, and one that ends with its first failure."""
    made = Account("slurm", "srun", "77", ["n0", "n1", "n2", "n3"], 2, {"n1": "off"}, 5.0, runs(), "success", "it is done", "step.2 saved")
    moved = [Transfers(count, 1 << 30, 10.0 + count) for count in (2, 3, 4)]
    progress = Progress(checkpoints={3: Checkpoint("step.3")}, commits=5, failed=2, restarts=1, outputs=7, outputs_failed=6,
                        written=moved[0], flushed=moved[1], fetched=moved[2])
    short = copy.deepcopy(made)
    short.runs = short.runs[:1]
    return [Summary(made, progress, 420.0, ["set a setting"]), Summary(short, Progress(), 150.0, ["set another"])]


# Of cairn run, in JSON only.
RUN_LEFT_OUT = {
    "account.manager": "the user knows it", "account.launcher": "the user knows it", "account.job": "the user knows it",
    "account.nodes[]": "the text has their number", "account.runs[].nodes": "cairn run prints them as the run begins",
    "account.runs[].nodes[]": "cairn run prints them as the run begins",
    "account.runs[].nodes_lost": "the text has all unfit nodes", "account.runs[].nodes_lost{}": "the text has all unfit nodes",
    "account.runs[].newest_s": "the text has the newest of all", "account.runs[].restarted_from": "cairn run prints it as the run begins",
}


def test_the_summary_of_cairn_run() -> None:
    only_text, only_json = differences(
        summaries(), lambda one: "\n".join(account.lines_of(one.account, one.progress, one.ended_s, one.advice)),
        lambda one: summary_of(one.account, one.progress, one.ended_s, one.advice))
    assert only_text == set()
    assert only_json == set(RUN_LEFT_OUT)


# --- cairn scavenge ---

def results() -> List[Result]:
    """Of one that saves, one that may have missed something, and those that save nothing."""
    one = Dataset(5, "u5", "step.5", True, False, 4, False, 1 << 30, ["n0", "n1"])
    other = Dataset(6, "u6", "out.6", False, True, 4, False, 1 << 20, ["n0"])
    saved = [Saved(one, Verdict.SAVED, "published", "", {}), Saved(other, Verdict.FAILED, "failed", "no space", {"n1": "full"})]
    drained = [Drained(3, "u3", "step.3", PUBLISHED), Drained(7, "u7", "step.7", UNFINISHED, "n1: off"),
               Drained(8, "u8", "step.8", LATER, "n1 is busy", True)]
    nodes = ["n0", "n1", "n2"]
    return [
        Result({}, nodes, saved, drained, drained[1:], listed=2, complete=2, restart="step.5"),
        Result({"n1": "off"}, nodes, saved, [], [], partly={"n2": "damaged"}, left={"n0": "of another directory"}, listed=2,
               complete=2, has_complete_list=False, restart="step.5"),
        Result({"n1": "off"}, nodes, partly={"n2": "damaged"}, listed=2, complete=2, has_complete_list=False),
        Result({}, nodes, waits="the allocation ends"), Result({}, nodes), Result({}, nodes, listed=2),
        Result({"n0": "off"}, ["n0"]), Result({}, nodes, listed=2, complete=2, restart="step.1")]


def with_note(result: Result) -> Result:
    """As the command completes it."""
    manager = SimpleNamespace(remote=lambda: SimpleNamespace(name="ssh"))
    result.note = what_came(result, manager, SimpleNamespace(job="77"))  # type: ignore[arg-type]
    return result


def text_of_scavenge(result: Result) -> str:
    done = with_note(result)
    return "\n".join([*(one.text() for one in done.drained), *done.lines_of_nodes(), *(one.text() for one in done.saved), *ends_of(done)])


# Of cairn scavenge, in JSON only.
SCAVENGE_LEFT_OUT = {
    "drained[].uuid": "for programs", "unlisted[].uuid": "for programs", "saved[].dataset.uuid": "for programs",
    "saved[].dataset.checkpoint": "the name tells people", "saved[].dataset.output": "the name tells people",
    "saved[].nodes": "a line is printed as the node fails", "saved[].nodes{}": "a line is printed as the node fails",
    "saved[].outcome": "the text has the verdict and the reason", "unlisted[].outcome": "the text has the reason",
    "nodes[]": "the text has those that did not answer",
}


def test_the_report_of_cairn_scavenge() -> None:
    only_text, only_json = differences(results(), text_of_scavenge, lambda one: with_note(one).as_json())
    assert only_text == set()
    assert only_json == set(SCAVENGE_LEFT_OUT)


# --- cairn drain ---

@dataclass
class Drains:
    """What cairn drain reports."""

    drained: List[Drained]
    down: Dict[str, str]


def test_the_report_of_cairn_drain() -> None:
    drained = [Drained(3, "u3", "step.3", PUBLISHED), Drained(7, "u7", "step.7", UNFINISHED, "n1: off"),
               Drained(8, "u8", "step.8", LATER, "n1 is busy")]
    only_text, only_json = differences(
        [Drains(drained, {"n2": "off"})],
        lambda one: "\n".join([*drain_command.lines_of_down(one.down), *(dataset.text() for dataset in one.drained)]),
        lambda one: drain_command.report_of(one.drained, one.down))
    assert only_text == set()
    assert only_json == {"drained[].uuid"}, "for programs"


# --- cairn status ---

def statuses() -> List[Dict[str, Any]]:
    """The same job under cairn run in each state of its life, and without it."""
    run = {"number": 1, "nodes": ["n0", "n1"], "begun_s": 10.0, "how": "signal 9", "failed": True, "restarted_from": "step.1", "from_scratch": "gone"}
    last_run = {"state": status.RUNS, "by_cairn_run": False, "host": "n0", "process": 31}
    alive = {
        "prefix": "/pfs/a", "alive": True, "life": status.RUNS, "by_cairn_run": True, "program": status.RUNS, "ended_s": 40.0,
        "outcome": "", "reason": "", "host": "n9", "process": 17, "manager": "slurm", "launcher": "srun", "job": "77",
        "nodes": ["n0", "n1", "n2"], "wanted": 2, "spares_left": 1, "unfit": {"n2": "off"}, "begun_s": 5.0, "last_run": last_run,
        "runs": [run, {**run, "number": 2}], "checkpoint": {"name": "step.3", "age_s": 20.0, "cost_s": 2.0, "protection": "XOR in /ssd",
                                                            "restart": "a restart takes step.3"},
        "checkpoints": 4, "mean_cost_s": 3.0, "copies": [{"number": 3, "uuid": "u3", "name": "step.3", "copied": 1, "ranks": 4, "output": False}],
        "unflushed": [{"number": 4, "name": "step.4", "state": "written", "state_s": 7.0, "copy": "waits"}],
        "lost_s": 12.0, "halt": "asked", "left_caches": ["another cache"]}
    ended = {**alive, "alive": False, "life": status.ENDED}
    return [alive, ended, {**alive, "alive": False, "life": status.DIED}, {**ended, "outcome": "success", "reason": "done"},
            {**alive, "by_cairn_run": False}, {**ended, "by_cairn_run": False}]


# Of cairn status, in JSON only.
STATUS_LEFT_OUT = {
    "manager": "the user knows it", "launcher": "the user knows it",
    "runs[].begun_s": "the text has the life of the job", "runs[].restarted_from": "cairn run prints it as the run begins",
    "copies[].uuid": "for programs", "copies[].output": "for programs",
}


def test_the_report_of_cairn_status() -> None:
    now_s = 1000.0
    only_text, only_json = differences(statuses(), lambda one: "\n".join(status.lines_of(one, now_s)), lambda one: one)
    assert only_text == set()
    assert only_json == set(STATUS_LEFT_OUT)


def test_a_status_says_of_old_failures_how_many_they_are() -> None:
    [alive, *_] = statuses()
    alive["runs"] = [{**alive["runs"][0], "number": number} for number in range(1, 8)]
    text = "\n".join(status.lines_of(alive, 1000.0))
    assert "7, of which 7 died" in text and re.findall(r"run (\d) died", text) == ["4", "5", "6", "7"]


def test_a_fact_that_only_one_of_the_two_has_is_found() -> None:
    sample = Drains([Drained(3, "u3", "step.3", PUBLISHED)], {})
    assert differences([sample], lambda one: one.drained[0].name, lambda one: one.drained[0].number) == (
        {"drained[].name"}, {"drained[].number"})

