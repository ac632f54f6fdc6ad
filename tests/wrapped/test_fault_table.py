"""The fault table for a program that knows nothing of Cairn: from which step it goes on after each loss of nodes and each damage
to a file, under each protection. The program compares every byte that it reads.

A protection has one run, which is killed, and whose nodes and prefix directory are copied. Each row begins with that copy.
With --all: every row, with both MPIs. Otherwise those that differ most, with the first MPI that is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import pytest

from conftest import NODES, Job, Outcome, launcher_of, make_job

sys.path.append(str(Path(__file__).resolve().parents[1] / "faults"))

import damage  # noqa: E402

LAST = 4  # the last step that was written as a whole; in the caches with the one before
FLUSHED = 3  # where steps are copied to the prefix directory
VICTIM = 2  # the rank whose files are damaged, and its node
BESIDE = 1  # a node that is lost at the same time
ATTEMPTS = 5  # to be killed just when step LAST is a checkpoint, and the next one is not
# Records have the name of a dataset, and there may be none; its number is that of the step.
REFUSED = re.compile(rf"dataset {LAST}( \(step\.{LAST}\))? cannot be restored")
Lost = Tuple[int, ...]
Damage = Callable[[Path], object]


@dataclass(frozen=True)
class Protection:
    """A scheme, and how many members of a set it can lose."""

    scheme: str
    failures: int = 0
    hop: int = 1

    def settings(self) -> Dict[str, str]:
        number = str(max(self.failures, 1))
        return {"SCR_COPY_TYPE": self.scheme, "SCR_SET_FAILURES": number, "CAIRN_PARTNER_COPIES": number,
                "CAIRN_PARTNER_HOP": str(self.hop)}

    def holds(self, lost: Sequence[int]) -> bool:
        """What it promises with a member on each of four nodes. Not by the arithmetic of the library."""
        if self.scheme != "PARTNER":
            return len(set(lost)) <= self.failures
        return all(any((node + copy * self.hop) % 4 not in lost for copy in range(1, self.failures + 1)) for node in lost)

    def __str__(self) -> str:
        return f"{self.scheme}{self.failures}hop{self.hop}"


SINGLE, PARTNER, XOR, RS = Protection("SINGLE"), Protection("PARTNER", 1), Protection("XOR", 1), Protection("RS", 2)
EVERY_PROTECTION = [SINGLE, PARTNER, Protection("PARTNER", 1, 2), Protection("PARTNER", 2), XOR, Protection("RS", 1), RS,
                    Protection("RS", 3)]
EVERY_LOSS: List[Lost] = [lost for number in range(5) for lost in combinations(range(4), number)]
SOME_LOSSES: Dict[Protection, List[Lost]] = {
    SINGLE: [(), (1,)], PARTNER: [(0, 2), (1, 2)], XOR: [(1,), (0, 3)], RS: [(0, 3), (0, 1, 2)]}


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def write_other_bytes(path: Path) -> None:
    """As a new file: the checkpoint keeps its own."""
    length = path.stat().st_size
    path.unlink()
    path.write_bytes(b"\x55" * length)


DAMAGES: Dict[str, Damage] = {
    "middle byte flipped": damage.flip_byte, "first byte flipped": partial(damage.flip_byte, position=0),
    "last byte flipped": partial(damage.flip_byte, position=1), "truncated": damage.truncate,
    "emptied": lambda path: path.write_bytes(b""), "longer": append, "removed": damage.delete,
    "replaced by a directory": damage.replace_by_folder}
SOME_DAMAGES = [("file", "middle byte flipped"), ("file", "truncated"), ("parity", "middle byte flipped"), ("record", "removed")]


class Table:
    """What a killed run has left, and restarts from it."""

    def __init__(self, job: Job, protection: Protection, *, is_flushed: bool) -> None:
        self.job = job
        self.protection = protection
        self.is_flushed = is_flushed
        self.settings = {**protection.settings(), "SCR_FLUSH": str(FLUSHED) if is_flushed else "0"}
        self._saved = job.cluster.root / f"saved.{protection}.{is_flushed}"
        for _ in range(ATTEMPTS):
            if self._write():
                return
        pytest.fail(f"no run of {ATTEMPTS} was killed between its steps {LAST} and {LAST + 1}")

    def _places(self) -> List[Path]:
        return [self.job.cluster.root / "nodes", self.job.cluster.prefix]

    def _empty(self) -> None:
        for place in self._places():
            shutil.rmtree(place)

    def _write(self) -> bool:
        """Whether the run has left what the rows begin with."""
        self._empty()
        for place in self._places():
            place.mkdir()
        killed = self.job.run(LAST + 1, f"die_all={LAST + 1}", "pause=150", **self.settings)
        assert killed.code != 0 and killed.started_from == 0, killed
        shutil.rmtree(self._saved, ignore_errors=True)
        self._saved.mkdir()
        self._copy(self._places(), self._saved)
        caches = [self.file_of("file", step) for step in (LAST - 1, LAST)]
        if None in caches or self.restart(()).started_from != LAST:
            return False
        assert not self.is_flushed or (self._saved / "prefix/out" / f"state.{FLUSHED}.{VICTIM}").exists()
        return True

    @staticmethod
    def _copy(places: Sequence[Path], to: Path) -> None:
        """With the second names that files of the cache have in checkpoints."""
        subprocess.run(["cp", "-a", *map(str, places), str(to)], check=True)

    def begin(self) -> None:
        self._empty()
        self._copy(list(self._saved.iterdir()), self.job.cluster.root)

    def lose(self, lost: Lost, names: Sequence[str] = NODES) -> None:
        for node in lost:
            self.job.cluster.lose_storage(names[node])

    def restart(self, lost: Lost) -> Outcome:
        """With spares in place of lost nodes. The program writes steps that are missing up to LAST."""
        outcome = self.job.run(LAST, nodes=self.nodes(lost), **self.settings)
        assert outcome.code == 0, outcome
        return outcome

    @staticmethod
    def nodes(lost: Lost) -> List[str]:
        return [f"m{node}" if node in lost else NODES[node] for node in range(4)]

    def file_of(self, what: str, step: int) -> Optional[Path]:
        """A file of the victim's part of a checkpoint, or the one that the program knows."""
        storage = self.job.cluster.storage(NODES[VICTIM])
        name = f"out/state.{step}.{VICTIM}"
        if what == "redirected":
            return storage / "wrapped/files" / name
        file = next(storage.glob(f"*/cairn.*/dataset.*/rank.{VICTIM}/files/{name}"), None)
        part = file.parents[2] if file else None
        if part is None or what == "file":
            return file
        return part / "record" if what == "record" else next(part.glob("parity.*"), None)

    def check_loss(self, lost: Lost) -> None:
        self.begin()
        self.lose(lost)
        outcome = self.restart(lost)
        if self.protection.holds(lost):
            assert outcome.started_from == LAST, (lost, outcome)
            assert bool(lost) == bool(re.search(rf"\(step\.{LAST}\): rebuilt rank", outcome.log)), (lost, outcome)
            return
        assert outcome.started_from == (FLUSHED if self.is_flushed else 0), (lost, outcome)
        self.check_reason(lost, outcome)
        if not self.is_flushed:  # what it wrote then is a checkpoint as good as any
            assert self.restart(lost).started_from == LAST, lost

    def check_reason(self, lost: Lost, outcome: Outcome) -> None:
        """Nothing is left to know of, where all nodes are lost."""
        if len(lost) == 4:
            return
        assert REFUSED.search(outcome.log), (lost, outcome)
        is_named = any(f"(written on {NODES[node]})" in outcome.log for node in lost)
        assert is_named or self.protection == SINGLE, (lost, outcome)

    def check_damage(self, what: str, how: str, lost: Lost = ()) -> int:
        """The step with which the program goes on."""
        row = (str(self.protection), what, how, lost)
        self.begin()
        self.lose(lost)
        path = self.file_of(what, LAST)
        assert path is not None and path.exists(), row
        DAMAGES[how](path)
        outcome = self.restart(lost)
        if self.protection.holds([*lost, VICTIM]):
            assert outcome.started_from == LAST, (row, outcome)
        # Damage may be in stripes in which nothing else is missing.
        assert outcome.started_from in (LAST - 1, LAST), (row, outcome)
        if outcome.started_from != LAST:
            assert REFUSED.search(outcome.log), (row, outcome)
        return outcome.started_from

    def check_repaired(self, what: str, how: str, lost: Lost = ()) -> None:
        """A row that the protection holds; then the node beside the victim's is lost too."""
        assert self.check_damage(what, how, lost) == LAST
        self.lose((3,), self.nodes(lost))
        after = [*self.nodes(lost)[:3], "spare"]
        outcome = self.job.run(LAST, nodes=after, **self.settings)
        assert (outcome.code, outcome.started_from) == (0, LAST), (what, how, lost, outcome)


Chosen = Tuple[List[Protection], List[Protection]]


def protections(*, some: List[Protection], every: List[Protection]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """With which ones a test runs, without --all and with it."""
    def choose(test: Callable[..., None]) -> Callable[..., None]:
        test.protections = (some, every)  # type: ignore[attr-defined]
        return test
    return choose


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wants_all = metafunc.config.getoption("--all")
    flavours = [flavour for flavour in ("openmpi", "mpich") if launcher_of(flavour)]
    metafunc.parametrize("flavour", flavours if wants_all else flavours[:1], scope="module")
    some, every = metafunc.function.protections
    metafunc.parametrize("protection", every if wants_all else some, ids=str)


@pytest.fixture
def wants_all(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--all"))


MakeTable = Callable[..., Table]


@pytest.fixture(scope="module")
def make_table(flavour: str, pytestconfig: pytest.Config) -> Iterator[MakeTable]:
    """One run for each protection, with copies in the prefix directory and without; for all tests."""
    made: Dict[Tuple[Protection, bool], Table] = {}
    for job in make_job(pytestconfig, flavour):
        def make(protection: Protection, *, is_flushed: bool, job: Job = job) -> Table:
            kind = (protection, is_flushed)
            if kind not in made:
                made[kind] = Table(job, protection, is_flushed=is_flushed)
            return made[kind]
        yield make


@protections(some=list(SOME_LOSSES), every=EVERY_PROTECTION)
def test_lost_nodes_are_rebuilt_or_the_step_in_the_prefix_directory_is_taken(
        make_table: MakeTable, protection: Protection, wants_all: bool) -> None:
    table = make_table(protection, is_flushed=True)
    for lost in EVERY_LOSS if wants_all else SOME_LOSSES[protection]:
        table.check_loss(lost)


@protections(some=[XOR], every=EVERY_PROTECTION)
def test_without_a_copy_in_the_prefix_directory_a_program_that_lost_too_much_starts_from_scratch(
        make_table: MakeTable, protection: Protection, wants_all: bool) -> None:
    table = make_table(protection, is_flushed=False)
    for lost in EVERY_LOSS if wants_all else [(1, 2), (0, 1, 2, 3)]:
        if not protection.holds(lost):
            table.check_loss(lost)


def rows_of_damage(protection: Protection, wants_all: bool) -> Iterator[Tuple[str, str]]:
    rows = [(what, how) for what in ("file", "parity", "record") for how in DAMAGES] if wants_all else SOME_DAMAGES
    for what, how in rows:
        if (what, protection) != ("parity", SINGLE):
            yield what, how


@protections(some=[SINGLE, XOR], every=[SINGLE, PARTNER, XOR, RS])
def test_a_damaged_file_is_repaired_or_the_step_before_is_taken(make_table: MakeTable, protection: Protection,
                                                                wants_all: bool) -> None:
    """Alone, and with a node lost beside."""
    table = make_table(protection, is_flushed=False)
    found = []
    for what, how in rows_of_damage(protection, wants_all):
        found.append(table.check_damage(what, how))
        if protection.holds([BESIDE]) and (wants_all or how == "truncated"):
            found.append(table.check_damage(what, how, (BESIDE,)))
        if wants_all and protection.holds([VICTIM]):
            table.check_repaired(what, how)
    assert protection == RS or LAST - 1 in found, "nothing was beyond repair"
    assert protection == SINGLE or LAST in found, "nothing was repaired"


@protections(some=[XOR], every=[XOR])
def test_the_file_of_the_program_is_made_anew_from_the_checkpoint(make_table: MakeTable, protection: Protection,
                                                                  wants_all: bool) -> None:
    """Not the checkpoint is damaged, but the second name under which the program opens its file."""
    table = make_table(protection, is_flushed=False)
    for change in (write_other_bytes, damage.delete) if wants_all else (write_other_bytes,):
        table.begin()
        path = table.file_of("redirected", LAST)
        assert path is not None and path.stat().st_nlink == 2, "it is a name of the checkpoint's file"
        change(path)
        assert table.restart(()).started_from == LAST
