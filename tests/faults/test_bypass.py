"""Checkpoints that the program writes straight into the prefix directory: damage to them is found,
and processes that are killed on the way cost nothing that was complete."""

from pathlib import Path

import pytest

from checkpointing import FULL, NEWEST, NODES, Job, Kept
from test_prefix import DAMAGE

BYPASS = {"SCR_CACHE_BYPASS": "1", "SCR_FETCH": "1"}
OLDER = NEWEST + 1  # the first that is not cached
NEWER = NEWEST + 2
# The keeper's renames: of the manifest, of the dataset's record, of all of it to where it is
# published, of the current name, of the record that says so, of the listing.
PUBLISHED = 3
RENAMES = 6


def write_bypassed(job: Job) -> None:
    assert job.launch(FULL, BYPASS, checkpoints=1).report["written"] == [OLDER]


@pytest.fixture
def bypassed(empty: Job, kept: Kept, flavour: str, scheme: str) -> Job:
    """A job with one checkpoint that bypassed the cache; the nodes hold none."""
    job = empty.copy(kept(flavour, scheme, write_bypassed))
    job.lose(*NODES)
    return job


def in_prefix(job: Job, step: int, rank: int) -> Path:
    return job.cluster.prefix / f"step.{step}" / "left" / f"rank.{rank}"


@pytest.mark.each_mpi
@pytest.mark.parametrize("scheme", ["XOR"])
def test_it_is_read_where_it_is(bypassed: Job) -> None:
    outcome = bypassed.launch(FULL, BYPASS, checkpoints=1)
    assert outcome.restarted_from() == OLDER
    assert outcome.report["written"] == [NEWER]
    assert outcome.said("is read directly"), outcome.log
    assert bypassed.launch(FULL, BYPASS).restarted_from() == NEWER
    assert not [path for node in NODES for path in bypassed.storage(node).glob("*/cairn.*/dataset.*")]


@pytest.mark.parametrize("what", ["flip", "remove"])
def test_damage_is_found_and_the_next_older_taken(bypassed: Job, what: str) -> None:
    assert bypassed.launch(FULL, BYPASS, checkpoints=1).report["written"] == [NEWER]
    DAMAGE[what](in_prefix(bypassed, NEWER, 5))
    outcome = bypassed.launch(FULL, BYPASS)
    assert outcome.restarted_from() == OLDER
    assert outcome.said("cannot be used") and "rank.5" in outcome.log, outcome.log


@pytest.mark.parametrize("nth", [1, PUBLISHED, PUBLISHED + 1, RENAMES])
def test_killed_while_it_is_published(bypassed: Job, nth: int) -> None:
    death = bypassed.launch(FULL, BYPASS, checkpoints=1, kill_at="complete", kill_step=NEWER,
                            kill_striker=0, kill_ranks="all", kill_nth=nth,
                            kill_operation="rename").killed()
    there = any(bypassed.cluster.prefix.glob(f".cairn/datasets/dataset.{NEWER}.*"))
    assert there == (nth > PUBLISHED), death
    assert bypassed.launch(FULL, BYPASS).restarted_from() == (NEWER if there else OLDER), death
    assert not list(bypassed.cluster.prefix.glob(".cairn/closed.*"))


def test_killed_while_it_is_written(bypassed: Job) -> None:
    bypassed.launch(FULL, BYPASS, checkpoints=1, kill_at="between-writes", kill_step=NEWER,
                    kill_striker=2, kill_ranks="all").killed()
    assert bypassed.launch(FULL, BYPASS).restarted_from() == OLDER


def test_what_only_the_cache_has_is_copied_for_a_global_restart(job: Job) -> None:
    outcome = job.launch(FULL, {"SCR_GLOBAL_RESTART": "1"})
    assert outcome.restarted_from() == NEWEST
    assert outcome.said("is read directly"), outcome.log
    assert in_prefix(job, NEWEST, 0).is_file()


def test_a_purge_leaves_nothing_to_restart_from(bypassed: Job) -> None:
    outcome = bypassed.launch(FULL, {**BYPASS, "SCR_PREFIX_PURGE": "1"})
    assert outcome.restarted_from() == -1
    assert outcome.said("1 dataset is deleted"), outcome.log
    assert not in_prefix(bypassed, OLDER, 0).exists()
