"""Single files are damaged: repaired where the scheme's strength allows, never wrong bytes.

Rank 2, on node n1, is damaged; ranks 0, 4 and 6, on the other nodes, are in its set. Rank 6, on n3,
has most data, so that it has a block in every stripe.
"""

from typing import Callable, Tuple

import pytest

from checkpointing import FULL, NEWEST, Job, with_spares
from damage import POSITIONS, delete, flip_byte, replace_by_folder, truncate

KINDS = ("left", "right", "parity.1", "record")
BLOCKS = KINDS[:3]
# Rank 2's data are copied to n2 by PARTNER, and it keeps the copy of n0's.
FLIPS = ([("PARTNER", kind, (), NEWEST) for kind in KINDS] +
         [("PARTNER", kind, ("n2",), NEWEST - 1) for kind in ("left", "right")] +
         [("PARTNER", kind, ("n0",), NEWEST) for kind in ("left", "record")] +
         [("PARTNER", "parity.1", ("n0",), NEWEST - 1), ("PARTNER", "parity.1", ("n2",), NEWEST)] +
         [("RS", kind, (), NEWEST) for kind in KINDS] +
         [("RS", kind, ("n3",), NEWEST) for kind in ("left", "parity.1")] +
         [("RS", kind, ("n2", "n3"), NEWEST - 1) for kind in BLOCKS] +
         [("RS", "record", ("n2", "n3"), NEWEST)] +
         [("SINGLE", kind, (), NEWEST - 1) for kind in ("left", "right", "record")])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_byte_flipped(job: Job, kind: str, position: str) -> None:
    flip_byte(job.file(kind, 2), POSITIONS[position])
    assert job.launch(FULL).restarted_from() == NEWEST


@pytest.mark.each_mpi
def test_byte_flipped_is_repaired_for_good(job: Job) -> None:
    flip_byte(job.file("left", 2))
    assert job.launch(FULL).restarted_from() == NEWEST
    job.lose("n2")
    assert job.launch(with_spares("n2")).restarted_from() == NEWEST


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", BLOCKS)
def test_byte_flipped_and_other_node_lost(job: Job, kind: str, position: str) -> None:
    """More than XOR holds: each of these bytes is needed to rebuild the lost node."""
    flip_byte(job.file(kind, 2), POSITIONS[position])
    job.lose("n3")
    assert job.launch(with_spares("n3")).restarted_from() == NEWEST - 1


@pytest.mark.parametrize("position", POSITIONS)
def test_record_flipped_and_other_node_lost(job: Job, position: str) -> None:
    flip_byte(job.file("record", 2), POSITIONS[position])
    job.lose("n2")
    assert job.launch(with_spares("n2")).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme, kind, lost, step", FLIPS)
def test_byte_flipped_other_schemes(job: Job, kind: str, lost: Tuple[str, ...], step: int) -> None:
    """Repaired as long as no more is missing of a stripe than the scheme holds, else refused."""
    flip_byte(job.file(kind, 2))
    job.lose(*lost)
    assert job.launch(with_spares(*lost)).restarted_from() == step


def test_byte_flipped_on_lost_node_does_not_matter(job: Job) -> None:
    flip_byte(job.file("left", 2))
    job.lose("n1")
    assert job.launch(with_spares("n1")).restarted_from() == NEWEST


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


@pytest.mark.parametrize("scheme", ["PARTNER", "XOR", "RS"])
@pytest.mark.parametrize("damage", [truncate, delete, replace_by_folder])
@pytest.mark.parametrize("kind", KINDS)
def test_file_damaged(job: Job, kind: str, damage: Callable) -> None:
    damage(job.file(kind, 2))
    assert job.launch(FULL).restarted_from() == NEWEST


@pytest.mark.parametrize("damage", [truncate, delete, replace_by_folder])
@pytest.mark.parametrize("kind, step", [("left", NEWEST - 1), ("parity.1", NEWEST - 1),
                                        ("record", NEWEST)])
def test_file_damaged_and_other_node_lost(job: Job, kind: str, step: int,
                                          damage: Callable) -> None:
    """More than XOR holds, except for the record, of which another node keeps a copy."""
    damage(job.file(kind, 2))
    job.lose("n3")
    assert job.launch(with_spares("n3")).restarted_from() == step
