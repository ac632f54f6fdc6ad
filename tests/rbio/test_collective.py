"""Mode collective: MPI-IO does the writing, and its errors are those of the step on all ranks."""

import errno

import pytest

from steps import GOOD, IO, NEWEST, TWO_NODES, Steps, Written

OPTIONS = "mode=collective files=1"
FAILURES = [
    (0, "pwrite"), (0, "fsync"), (0, "ftruncate"), (0, "create"), (0, "open"), (0, "rename"), (2, "rename"),
    # The last three leave no marker.
    (2, "fsync"), (2, "open"), (3, "pwrite"), (1, "fsync"), (1, "open")]


def test_an_error_on_one_rank_reaches_all_ranks(steps: Steps) -> None:
    results = steps.write_with_failures(TWO_NODES, OPTIONS, FAILURES)
    good = [step for step in results if step % 2 == 1]
    expected = {step: [GOOD if step in good else Written(0, 1, IO)] * 4 for step in results}
    assert results == expected
    assert steps.log.count("cairn: error:") == len(FAILURES), steps.log
    assert set(good) <= set(steps.published())
    assert steps.restore(["n0", "n1"], NEWEST, *good) == [good[-1], *good]


@pytest.fixture
def romio(flavour: str) -> "dict[str, str]":
    """The MPI-IO whose open returns on all ranks if it fails on some: rbio.h says what OMPIO does."""
    return {"OMPI_MCA_io": "romio321"} if flavour == "openmpi" else {}


def test_an_open_that_fails_only_inside_mpi_io_is_an_error_on_all_ranks(
        steps: Steps, romio: "dict[str, str]") -> None:
    """The first two opens of a step try whether the file can be opened."""
    failure = steps.interference(2, FAIL=f"2 open {errno.EMFILE} 2")
    results = steps.write(TWO_NODES, OPTIONS, [1, 2, 3], {**failure, **romio})
    assert results == {1: [GOOD] * 4, 2: [Written(0, 1, IO)] * 4, 3: [GOOD] * 4}
    assert steps.log.count("by MPI-IO") == 1, steps.log
    assert steps.restore(["n0"], NEWEST, 1) == [3, 1]
