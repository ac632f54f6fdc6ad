"""A checkpoint is restarted with the number of ranks that wrote it, or not at all."""

import pytest

from checkpointing import FULL, NEWEST, WRONG_RANKS, Job


def assert_refused(job: Job, where: list, ranks_then: int, ranks_now: int) -> None:
    """Have_restart and Start fail, and both numbers are told."""
    outcome = job.launch(where, checkpoints=1)
    assert outcome.restarted_from() == -1
    assert outcome.report["have"] == WRONG_RANKS
    assert outcome.report["start"] == WRONG_RANKS
    assert outcome.report["written"] == []
    assert outcome.said(str(ranks_then), str(ranks_now)), outcome.log


@pytest.mark.each_mpi
@pytest.mark.parametrize("scheme", ["PARTNER", "XOR", "RS"])
def test_eight_then_six_then_eight(job: Job) -> None:
    assert_refused(job, FULL[:6], 8, 6)
    assert job.launch(FULL).restarted_from() == NEWEST


def test_six_then_eight_then_six(empty: Job) -> None:
    assert empty.launch(FULL[:6], checkpoints=2).report["written"] == [1, 2]
    assert_refused(empty, FULL, 6, 8)
    assert empty.launch(FULL[:6]).restarted_from() == 2


def test_fresh_start_on_request(job: Job) -> None:
    outcome = job.launch(FULL[:6], {"CAIRN_ON_MISMATCH": "fresh"}, checkpoints=1)
    assert outcome.restarted_from() == -1
    assert outcome.report["have"] == 0
    assert outcome.report["written"] == [1]
    assert job.launch(FULL[:6]).restarted_from() == 1
