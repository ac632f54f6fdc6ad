"""What the caches alone know of copies that were not made: the log is off, or the copy had not begun."""

import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Set

import pytest

from cairn.account import Account
from cairn.commands import run
from cairn.event_log import Events
from cairn.holdings import Dataset, left_in_caches
from cairn.job_log import Entry, Progress
from cairn.loop import Stop
from cairn.scavenge import Result, Saved, Verdict
from cairn.unflushed import Unflushed
from jobs import HEAT, Job, Outcome, heat, launcher_of, rank_of

COPIES = {"SCR_FLUSH": "1", "SCR_FLUSH_ASYNC": "1", "SCR_FLUSH_ASYNC_BW": "1000"}
MISSING = r"not in the prefix directory: \S+ \(dataset {}\)"


def held(number: int, **facts: Any) -> Dataset:
    kind = {"checkpoint": True, "output": False, **facts}
    return Dataset(number, f"{number:02}", f"d.{number}", ranks=4, **{"in_prefix": False, **kind})


@pytest.mark.parametrize("datasets, at_end, left", [
    ([held(1, due=True), held(2, due=True)], False, {2}),
    ([held(1, due=True), held(2)], False, set()),
    ([held(1, due=True), held(2)], True, {2}),
    ([held(1, due=True), held(2, due=True, committed=False)], False, {1}),
    ([held(1, due=True), held(2, in_prefix=True)], True, set()),
    ([held(1, checkpoint=False, output=True, due=True), held(2, due=True)], False, {1, 2}),
    ([held(1, output=True, due=True), held(2, in_prefix=True)], True, {1}),
    ([held(1, checkpoint=False, output=True)], True, set())])
def test_outputs_and_the_newest_checkpoint_were_to_be_copied(datasets: List[Dataset], at_end: bool, left: Set[int]) -> None:
    assert {one.number for one in left_in_caches(datasets, at_end)} == left


def test_what_was_saved_is_not_left() -> None:
    unflushed = Unflushed()
    unflushed.note_left({1: "d.1 (dataset 1)", 2: "d.2 (dataset 2)"})
    unflushed.note_in_prefix([1])
    assert unflushed.left() == {2: "d.2 (dataset 2)"}


def test_the_checkpoint_before_one_that_is_lost_was_to_be_copied() -> None:
    """The caches have what is left of a lost dataset still."""
    unflushed = Unflushed()
    unflushed.add(Entry("LOST", 1.0, 3, "d.3"))
    work: Any = SimpleNamespace(unflushed=unflushed, progress=Progress(finalized=True))
    native: Any = SimpleNamespace(settings={"SCR_FLUSH": "1"})
    run.note_left(work, native, [held(1, checkpoint=False, output=True, due=True), held(2), held(3, due=True)])
    assert unflushed.left() == {1: "d.1 (dataset 1)", 2: "d.2 (dataset 2)"}


class Saves:
    """In place of a scavenge: it saves what has these numbers."""

    def __init__(self, found: List[Dataset], saved: Set[int]) -> None:
        self._found, self._saved = found, saved

    def __call__(self, *_: Any) -> "Saves":
        return self

    def run(self, nodes: List[str], down: Dict[str, str]) -> Result:
        made = [Saved(one, Verdict.SAVED if one.number in self._saved else Verdict.FAILED, "", "", {}) for one in self._found]
        return Result(down, nodes, saved=made, held=self._found, listed=len(made))


@pytest.mark.parametrize("saved, left", [({1, 2}, ""), ({1}, "; not in the prefix directory: d.2 (dataset 2); cairn ")])
def test_what_a_scavenge_could_not_save_is_named(monkeypatch: pytest.MonkeyPatch, saved: Set[int], left: str) -> None:
    monkeypatch.setattr(run, "Scavenge", Saves([held(1, checkpoint=False, output=True, due=True), held(2, due=True)], saved))
    work: Any = SimpleNamespace(unflushed=Unflushed(), account=Account(nodes=["n0"]), progress=Progress())
    native: Any = SimpleNamespace(settings={"SCR_ENABLE": "1", "SCR_FLUSH": "1"}, for_nodes=lambda: {})
    manager: Any = SimpleNamespace(name="slurm", down=lambda nodes: {}, settings=lambda: {}, remote=lambda: None)
    plan: Any = SimpleNamespace(end_time=lambda: None)
    text = run.scavenge_at_end(work, native, manager, plan, Stop(), True, lambda: None, Events())
    assert left in text and ("not in the prefix directory" in text) == bool(left), text


def ends_well(cairn: Path, folder: Path, flavour: str, programs: Dict[str, str], **settings: str) -> Outcome:
    """A program without a log leaves its copy, and the copy never begins."""
    forgets = '"$@"; code=$?; sleep 1; rm -rf .cairn/epoch.*/dataset.*; exit $code'
    command = [launcher_of(flavour), "-n", "4", "sh", "-c", forgets, "sh", programs[flavour], *HEAT, "--steps", "4",
               "--output", str(folder / "result")]
    return Job(cairn, folder, ["--nodes", "4", "--no-scavenge"], command, {
        **COPIES, "CAIRN_FLUSH_AT_END": "leave", "CAIRN_LOG_JSON": "0", **settings}).wait()


@pytest.mark.parametrize("interval, code", [("1", 1), ("1000", 1), ("0", 0)])
def test_a_job_without_a_log_that_left_its_copy_has_not_succeeded(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], interval: str, code: int) -> None:
    """SCR_Finalize is to copy the newest checkpoint, unless SCR_FLUSH=0."""
    done = ends_well(cairn, tmp_path, first_flavour, program_of, SCR_FLUSH=interval)
    assert done.code == code, done
    assert bool(re.search(rf"^cairn run: scavenge     {MISSING.format(1)}", done.printed, re.MULTILINE)) == (code == 1), done


def numbers_in(storage: Path) -> List[int]:
    """Of the datasets that the caches of simulated nodes hold."""
    return [int(path.name.split(".")[1]) for path in storage.glob("nodes/*/*/cairn.*/dataset.*")]


@pytest.mark.parametrize("interval", ["1", "1000"])
def test_a_copy_that_had_not_begun_is_named_where_a_program_is_killed(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], interval: str) -> None:
    """The copy of the first checkpoint is under way, and the nodes finish it. No checkpoint has its turn where SCR_FLUSH=1000."""
    storage = tmp_path / "storage"
    job = heat(cairn, tmp_path, first_flavour, program_of,
               ["--nodes", "4", "--storage", str(storage), "--runs", "1", "--no-scavenge"], 100000,
               settings={**COPIES, "SCR_FLUSH": interval, "CAIRN_LOG_JSON": "0"})
    job.until(lambda: max(numbers_in(storage), default=0) >= 4, timeout_s=60)
    os.kill(rank_of(tmp_path), signal.SIGKILL)
    done = job.wait()
    named = re.findall(rf"^cairn run: scavenge     {MISSING.format(r'([0-9]+)')}", done.printed, re.MULTILINE)
    assert done.code == 4 and len(named) == (1 if interval == "1" else 0), done
    assert all(int(number) >= 3 for number in named), "the newest one"
