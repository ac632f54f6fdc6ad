"""Checkpoints in the prefix directory outlive all nodes, damage to them is found, and processes that
are killed while they are copied there, or from there, cost nothing that was committed."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Dict

import pytest

from checkpointing import FULL, NEWEST, NODES, Job, Kept

COPIED = {"SCR_FLUSH": "1", "SCR_FETCH": "1"}
OLDER = NEWEST + 1  # the first that is copied
NEWER = NEWEST + 2
STRIKERS = {"the keeper": 0, "another": 2}
# The keeper's renames: of a spare, of its own record (which commits in the cache), of the dataset's
# record, of all of it to where it is published, of its two files, and those that tell it is done.
# Another rank has a spare, its record and its two files.
COMMITS = 2
RENAMES = [("the keeper", nth) for nth in range(COMMITS, 10)] + [("another", nth) for nth in (3, 4)]


def write_copied(job: Job) -> None:
    assert job.launch(FULL, COPIED, checkpoints=1).report["written"] == [OLDER]


@pytest.fixture
def copied(empty: Job, kept: Kept, flavour: str, scheme: str) -> Job:
    """A job with a checkpoint in the prefix directory, and the one that was in the caches before: it was due at the
    beginning."""
    return empty.copy(kept(flavour, scheme, write_copied))


def prefix_file(job: Job, step: int, rank: int) -> Path:
    return job.cluster.prefix / f"step.{step}" / "left" / f"rank.{rank}"


@pytest.mark.each_mpi
@pytest.mark.parametrize("scheme", ["SINGLE", "XOR"])
def test_all_nodes_are_lost(copied: Job) -> None:
    copied.lose(*NODES)
    assert copied.launch(FULL, COPIED).restarted_from() == OLDER
    copied.lose("n1")  # what was fetched is protected again
    if copied.scheme != "SINGLE":
        assert copied.launch(FULL).restarted_from() == OLDER


def test_files_have_their_own_names(copied: Job) -> None:
    copied.lose(*NODES)
    files = [path for path in copied.cluster.prefix.rglob("*") if path.is_file()]
    own = [path for path in files if ".cairn" not in path.parts]
    assert {path.parts[len(copied.cluster.prefix.parts)] for path in own} == {f"step.{NEWEST}", f"step.{OLDER}"}
    assert len(own) == 2 * 2 * len(FULL)
    assert not [path for path in own if path.name.startswith(".cairn.")]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


def put_another(path: Path) -> None:
    """The file of the same name in the older dataset."""
    shutil.copy(str(path).replace(f"step.{NEWER}", f"step.{OLDER}"), path)


DAMAGE: Dict[str, Callable[[Path], None]] = {
    what.__name__: what for what in (flip, remove, put_another)}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found_and_the_next_older_taken(copied: Job, what: str) -> None:
    assert copied.launch(FULL, COPIED, checkpoints=1).report["written"] == [NEWER]
    DAMAGE[what](prefix_file(copied, NEWER, 5))
    copied.lose(*NODES)
    outcome = copied.launch(FULL, COPIED)
    assert outcome.restarted_from() == OLDER
    assert outcome.said("cannot be used") and "rank.5" in outcome.log, outcome.log


@pytest.mark.parametrize("striker, nth", RENAMES)
def test_killed_in_a_flush(copied: Job, striker: str, nth: int) -> None:
    """Before the n-th rename; then, every other time, all nodes go as well. Once it is committed in
    the cache, or every rank has done its part while the nodes are lost, the newer one is restarted
    from: the next run ends the flush."""
    death = copied.launch(FULL, COPIED, checkpoints=1, kill_at="complete", kill_step=NEWER,
                          kill_striker=STRIKERS[striker], kill_ranks="all", kill_nth=nth,
                          kill_operation="rename").killed()
    assert (death.call, death.step) == ("complete", NEWER)
    lost = nth % 2 == 0
    published = any(copied.cluster.prefix.glob(f".cairn/datasets/dataset.{NEWER}.*"))
    done = list(copied.cluster.prefix.glob(f".cairn/epoch.*/dataset.{NEWER}.*/done/0.*"))
    if lost:
        copied.lose(*NODES)
    outcome = copied.launch(FULL, COPIED)
    there = published or len(done) == len(FULL) if lost else nth > COMMITS
    assert outcome.restarted_from() == (NEWER if there else OLDER), death
    assert not list(copied.cluster.prefix.glob(".cairn/closed.*"))
    staged = list(copied.cluster.prefix.glob("step.*/*/.cairn.*"))
    assert not staged, staged


@pytest.mark.parametrize("striker, nth", [("the keeper", 1), ("the keeper", 7), ("another", 3)])
def test_killed_in_a_fetch(copied: Job, striker: str, nth: int) -> None:
    copied.lose(*NODES)
    death = copied.launch(FULL, COPIED, kill_at="have", kill_striker=STRIKERS[striker],
                          kill_ranks="all", kill_nth=nth).killed()
    assert death.call == "have"
    assert copied.launch(FULL, COPIED).restarted_from() == OLDER


def move_all(source: Path, target: Path) -> None:
    for path in source.iterdir():
        path.rename(target / path.name)


def remove(path: Path) -> None:
    """A file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def nothing_is_mounted(_: Path) -> None:
    pass


def it_cannot_be_used(prefix: Path) -> None:
    """Rather than by its mode, which means nothing to root."""
    (prefix / ".cairn").write_text("no folder")


AWAY: Dict[str, Callable[[Path], None]] = {
    what.__name__: what for what in (nothing_is_mounted, it_cannot_be_used)}


@pytest.mark.parametrize("how", AWAY)
def test_away_when_the_run_begins(copied: Job, how: str) -> None:
    """It comes back after SCR_Init: the run restarts from it, and copies its next checkpoint there.
    The folder itself stays, since the program is in it."""
    copied.lose(*NODES)
    prefix, away, pause = (copied.cluster.root / name for name in ("prefix", "away", "pause"))
    away.mkdir()
    move_all(prefix, away)
    AWAY[how](prefix)
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(copied.launch, FULL, COPIED, checkpoints=1, pause=pause)
        while not pause.exists() and not run.done():
            time.sleep(0.01)
        remove(prefix / ".cairn")  # SCR_Init may have given the empty directory an id
        move_all(away, prefix)
        pause.unlink(missing_ok=True)
        outcome = run.result()
    assert outcome.restarted_from() == OLDER
    assert "FROM SCRATCH" not in outcome.log, outcome.log
    assert any(prefix.glob(f".cairn/datasets/dataset.{NEWER}.*")), outcome.log
