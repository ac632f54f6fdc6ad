"""Checkpoints that are protected while the program computes: a written one survives the death of all processes, a
protected one also that of a node."""

import random
from pathlib import Path
from typing import Tuple

import pytest

from checkpointing import FULL, IN_PIECES, LARGE, NEWEST, RESTS, Job, with_spares

BEHIND = {"CAIRN_PROTECT": "behind"}
WRITTEN = 3


@pytest.mark.each_mpi
@pytest.mark.parametrize("scheme", ["XOR", "RS", "PARTNER"])
def test_all_is_protected_when_the_program_ends(job: Job) -> None:
    outcome = job.launch(FULL, BEHIND, checkpoints=WRITTEN)
    assert outcome.restarted_from() == NEWEST
    assert "CAIRN_PROTECT=behind has no effect" not in outcome.log, outcome.log
    assert "after it was written" in outcome.log, outcome.log
    job.lose("n1")
    assert job.launch(with_spares("n1"), BEHIND).restarted_from() == NEWEST + WRITTEN


@pytest.mark.each_mpi
def test_a_program_that_skips_scr_finalize_protects_the_last_one(job: Job) -> None:
    outcome = job.launch(FULL, BEHIND, checkpoints=1, finalizes=0)
    assert outcome.restarted_from() == NEWEST
    assert "is protected" in outcome.log and "cairn: warning" not in outcome.log, outcome.log
    job.lose("n1")
    assert job.launch(with_spares("n1"), BEHIND).restarted_from() == NEWEST + 1


@pytest.mark.each_mpi
def test_a_program_that_skips_scr_finalize_is_told_what_is_not_protected(job: Job) -> None:
    outcome = job.launch(FULL, BEHIND, checkpoints=1, finalizes=0, full_for="parity.")
    assert outcome.restarted_from() == NEWEST
    warnings = [line for line in outcome.log.splitlines() if line.startswith("cairn: warning:")]
    assert len(warnings) == 1, outcome.log
    assert "is written and cannot be protected; the next run tries again" in warnings[0], outcome.log
    assert job.launch(FULL, BEHIND).restarted_from() == NEWEST + 1, "it survives the death of processes"


@pytest.mark.parametrize("draw", range(2))  # test_sampled_behind draws too
@pytest.mark.parametrize("scheme", ["XOR"])
@pytest.mark.parametrize("lost", [(), ("n2",)])
def test_killed_while_a_checkpoint_is_exposed(job: Job, draw: int, lost: Tuple[str, ...]) -> None:
    """The striker kills all ranks some time after the beginning of Complete or of the next Start."""
    chance = random.Random(draw)
    call, step = chance.choice([("complete", NEWEST + 2), ("start", NEWEST + 3)])
    death = job.launch(FULL, BEHIND, checkpoints=WRITTEN, kill_striker=chance.randrange(8), kill_ranks="all", kill_at=call,
                       kill_step=step, kill_after_us=int(chance.random() * 3000)).killed()
    job.lose(*lost)
    outcome = job.launch(with_spares(*lost), BEHIND)
    # At Start the checkpoint before is written; before Complete returns, the one before that is protected.
    oldest = NEWEST + 2 if call == "start" and not lost else NEWEST + 1
    assert outcome.restarted_from() in range(oldest, NEWEST + WRITTEN + 1), (death, outcome)


def is_partly_written(parity: Path) -> bool:
    """It has its size from the beginning, and gets its bytes row by row."""
    known = parity.stat()
    return 0 < known.st_blocks * 512 < known.st_size * 9 // 10


@pytest.mark.parametrize("piece, lost", [(3, ()), (5, ("n2",))])
def test_killed_between_pieces_of_the_work(job: Job, piece: int, lost: Tuple[str, ...]) -> None:
    """The work on a checkpoint that is not the first of its run waits for an idle core before each piece."""
    striker = 5
    settings = {**BEHIND, **IN_PIECES, "SCR_CACHE_SIZE": "1"}
    death = job.launch(FULL, settings, checkpoints=2, kill_striker=striker, kill_ranks="all", kill_at="complete",
                       kill_step=NEWEST + 2, kill_operation="piece", kill_nth=piece, **LARGE, **RESTS).killed()
    [parity] = job.rank_folder(striker, NEWEST + 2).glob("parity.*")
    assert death.what == "piece" and is_partly_written(parity), (death, parity.stat())
    job.lose(*lost)
    restarted = job.launch(with_spares(*lost), BEHIND, **LARGE).restarted_from()
    assert restarted == (NEWEST + 1 if lost else NEWEST + 2), death
