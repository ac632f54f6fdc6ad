"""Single files are damaged: repaired where the scheme's strength allows, never wrong bytes.

Rank 2, on node n1, is damaged; rank 4, on n2, is in its XOR set.
"""

from typing import Callable

import pytest

from checkpointing import FULL, NEWEST, Job, with_spare
from damage import POSITIONS, delete, flip_byte, replace_by_folder, truncate

KINDS = ("left", "right", "parity.1", "record")


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_byte_flipped(job: Job, kind: str, position: str) -> None:
    flip_byte(job.file(kind, 2), POSITIONS[position])
    assert job.launch(FULL).restarted_from() == NEWEST


@pytest.mark.each_mpi
def test_byte_flipped_is_repaired_for_good(job: Job) -> None:
    flip_byte(job.file("left", 2))
    assert job.launch(FULL).restarted_from() == NEWEST
    job.cluster.lose_storage("n2")
    assert job.launch(with_spare("n2")).restarted_from() == NEWEST


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", ["left", "parity.1"])
def test_byte_flipped_and_other_node_lost(job: Job, kind: str, position: str) -> None:
    """More than XOR holds: each of these bytes is needed to rebuild the lost node."""
    flip_byte(job.file(kind, 2), POSITIONS[position])
    job.cluster.lose_storage("n2")
    assert job.launch(with_spare("n2")).restarted_from() == NEWEST - 1


def test_record_flipped_and_other_node_lost(job: Job) -> None:
    flip_byte(job.file("record", 2))
    job.cluster.lose_storage("n2")
    assert job.launch(with_spare("n2")).restarted_from() == NEWEST


def test_byte_flipped_on_lost_node_does_not_matter(job: Job) -> None:
    flip_byte(job.file("left", 2))
    job.cluster.lose_storage("n1")
    assert job.launch(with_spare("n1")).restarted_from() == NEWEST


def test_bytes_flipped_in_every_file_of_a_node(job: Job) -> None:
    for rank in (2, 3):
        for kind in ("left", "right", "parity.1"):
            flip_byte(job.file(kind, rank))
    assert job.launch(FULL).restarted_from() == NEWEST


def test_both_checkpoints_beyond_repair(job: Job) -> None:
    """The records of three members of one set are gone in each dataset, with the copies of one of them."""
    for step in (NEWEST - 1, NEWEST):
        for rank in (2, 4, 6):
            delete(job.file("record", rank, step))
    outcome = job.launch(FULL)
    assert outcome.restarted_from() == -1
    assert outcome.report["have"] == 0


@pytest.mark.parametrize("damage", [truncate, delete, replace_by_folder])
@pytest.mark.parametrize("kind", KINDS)
def test_file_damaged(job: Job, kind: str, damage: Callable) -> None:
    damage(job.file(kind, 2))
    assert job.launch(FULL).restarted_from() == NEWEST
