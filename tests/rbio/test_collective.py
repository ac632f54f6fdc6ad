"""Mode collective: MPI-IO does the writing, and its errors are those of the step on all ranks."""

import errno

import pytest

from steps import GOOD, IO, TWO_NODES, Steps, Written

OPTIONS = "mode=collective files=1"


@pytest.mark.parametrize("rank, call", [
    (0, "pwrite"), (0, "fsync"), (0, "ftruncate"), (0, "create"), (0, "open"), (0, "rename"), (2, "rename"),
    # The last three leave no marker.
    (2, "fsync"), (2, "open"), (3, "pwrite"), (1, "fsync"), (1, "open")])
def test_an_error_on_one_rank_reaches_all_ranks(steps: Steps, rank: int, call: str) -> None:
    settings = steps.interference(2, FAIL=f"{rank} {call} {errno.EIO}")
    results = steps.write(TWO_NODES, OPTIONS, [1, 2, 3], settings)
    assert results[1] == results[3] == [GOOD] * 4
    assert results[2] == [Written(0, 1, IO)] * 4
    assert steps.log.count("cairn: error:") == 1, steps.log
    assert 1 in steps.published() and 3 in steps.published()
    assert steps.restore(["n0", "n1"]) == 3
    assert steps.restore(["n0"], step=1) == 1
