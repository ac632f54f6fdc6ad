"""A checkpoint is restarted with the number of ranks that wrote it, or not at all; with CAIRN_ELASTIC=1 by
any number, each rank of which reads what all have written."""

import pytest

from checkpointing import FULL, NEWEST, NODES, WRONG_RANKS, Job


def assert_refused(job: Job, where: list, ranks_then: int, ranks_now: int) -> None:
    """Have_restart and Start fail, and both numbers are printed."""
    outcome = job.launch(where, checkpoints=1)
    assert outcome.restarted_from() == -1
    assert outcome.report["have"] == WRONG_RANKS
    assert outcome.report["start"] == WRONG_RANKS
    assert outcome.report["written"] == []
    assert outcome.said(str(ranks_then), str(ranks_now)), outcome.log


@pytest.mark.each_mpi
def test_eight_then_six_then_eight(job: Job) -> None:
    assert_refused(job, FULL[:6], 8, 6)
    assert job.launch(FULL).restarted_from() == NEWEST


ELASTIC = {"CAIRN_ELASTIC": "1", "SCR_FETCH": "1"}
SIX = ["n0", "n1", "n2", "n3", "n0", "n1"]
ONE = ["n0"]


@pytest.mark.each_mpi
def test_any_number_from_the_prefix_directory(empty: Job) -> None:
    copied = {**ELASTIC, "SCR_FLUSH": "1"}
    assert empty.launch(FULL, copied, checkpoints=1).report["written"] == [1]
    for writers, where in ((8, SIX), (6, FULL), (8, ONE)):
        empty.lose(*NODES)
        outcome = empty.launch(where, copied, writers=writers, checkpoints=1)
        step = outcome.restarted_from()
        assert outcome.report["written"] == [step + 1]
    assert step == 3


def test_any_number_from_the_caches(job: Job) -> None:
    outcome = job.launch(SIX, ELASTIC, writers=len(FULL), checkpoints=1)
    assert outcome.restarted_from() == NEWEST
    assert outcome.report["written"] == [NEWEST + 1]


@pytest.mark.parametrize("call, nth", [("init", 5), ("restart", 21)])
def test_killed_before_and_while_it_is_copied_from_the_caches(job: Job, call: str, nth: int) -> None:
    job.launch(SIX, ELASTIC, writers=8, kill_at=call, kill_striker=0, kill_ranks="all",
               kill_nth=nth).killed()
    assert job.launch(SIX, ELASTIC, writers=8).restarted_from() == NEWEST
