"""Single files are damaged: repaired where the scheme's strength allows, never wrong bytes. Each kind of damage once;
src/session/session_faults_test.cpp has them all, to each file under each scheme.

Rank 2, on node n1, is damaged; ranks 0, 4 and 6, on the other nodes, are in its set. Rank 6, on n3,
has most data, so that it has a block in every stripe.
"""

from typing import Callable, Tuple

import pytest

from checkpointing import FULL, NEWEST, Job, in_turn, with_spares
from damage import POSITIONS, delete, flip_byte, replace_by_folder, truncate

KINDS = ("left", "right", "parity.1", "record")
# Rank 2's data are copied to n2 by PARTNER, and it keeps the copy of n0's. With n3 lost too, XOR needs each of the
# bytes at these places.
FLIPS = [("PARTNER", "left", ("n2",), NEWEST - 1), ("PARTNER", "left", ("n0",), NEWEST),
         ("RS", "left", ("n3",), NEWEST), ("RS", "right", ("n2", "n3"), NEWEST - 1), ("RS", "record", ("n2", "n3"), NEWEST),
         ("SINGLE", "left", (), NEWEST - 1), ("XOR", "record", ("n2",), NEWEST),
         *[("XOR", kind, ("n3",), NEWEST - 1) for kind in KINDS[:3]]]


@pytest.mark.parametrize("scheme, kind", in_turn(KINDS))
def test_byte_flipped(job: Job, kind: str) -> None:
    flip_byte(job.file(kind, 2), POSITIONS["last"])
    assert job.launch(FULL).restarted_from() == NEWEST


@pytest.mark.each_mpi
def test_byte_flipped_is_repaired_for_good(job: Job) -> None:
    flip_byte(job.file("left", 2))
    assert job.launch(FULL).restarted_from() == NEWEST
    job.lose("n2")
    assert job.launch(with_spares("n2")).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme, kind, lost, step", FLIPS)
def test_byte_flipped_and_nodes_lost(job: Job, kind: str, lost: Tuple[str, ...], step: int) -> None:
    """Repaired as long as no more is missing of a stripe than the scheme holds, else refused."""
    flip_byte(job.file(kind, 2))
    job.lose(*lost)
    assert job.launch(with_spares(*lost)).restarted_from() == step


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


@pytest.mark.parametrize("scheme, kind, damage", in_turn(["left", "record"], [truncate, delete, replace_by_folder]))
def test_file_damaged(job: Job, kind: str, damage: Callable) -> None:
    damage(job.file(kind, 2))
    assert job.launch(FULL).restarted_from() == NEWEST
