"""A step that cannot be written: all ranks get the error, the steps before stay, and computing goes on."""

import errno
import os
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from steps import GOOD, IO, NEWEST, NO_SPACE, TWO_NODES, Steps, Written

DISK = 4 << 20
FAILED_IO = Written(0, 1, IO)
FAILED_SPACE = Written(0, 1, NO_SPACE)


def test_an_error_on_one_writer_reaches_all_ranks(steps: Steps) -> None:
    failures = [(rank, call) for rank in (0, 2) for call in ("pwrite", "fdatasync", "rename", "create")]
    results = steps.write_with_failures(TWO_NODES, "files=1", failures)
    good = [step for step in results if step % 2 == 1]
    assert all(results[step] == [GOOD] * 4 for step in good), results
    failed = [step for step in results if results[step] == [FAILED_IO] * 4]
    for at, (_, call) in enumerate(failures):
        # Of the writers, the one that comes last renames the directory.
        assert 2 * (at + 1) in failed or (call == "rename" and results[2 * (at + 1)] == [GOOD] * 4), (call, results)
    assert steps.log.count("cairn: error:") == len(failed), steps.log
    assert set(good) <= set(steps.published())
    assert steps.restore(["n0", "n1"], NEWEST, *good) == [good[-1], *good]


def test_a_file_system_that_hangs_fails_steps_and_neither_close_nor_the_end_waits_for_it(steps: Steps) -> None:
    """The thread of rank 0 never comes back from step 2, and still holds step 3."""
    hang = steps.interference(2, HANG="0 fdatasync")
    results = steps.write(TWO_NODES, "files=1 timeout=1", [1, 2, 3], hang)
    assert results == {1: [GOOD] * 4, 2: [FAILED_IO] * 4, 3: [FAILED_IO] * 4}
    assert steps.published() == [1]
    assert steps.restore(["n0", "n1"], NEWEST) == [1]


@pytest.fixture
def small_disk(steps: Steps) -> Iterator[Path]:
    """A file system of 4 MiB in the series' directory."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: a full file system, because only root can mount one")
    steps.directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(steps.directory)], check=True)
    yield steps.directory
    subprocess.run(["umount", str(steps.directory)], check=True)


@pytest.mark.any_mpi
def test_a_full_disk_fails_one_step_and_not_the_next(steps: Steps, small_disk: Path) -> None:
    assert steps.write(TWO_NODES, "files=1 keep=1", [1])[1] == [GOOD] * 4
    size = sum(map(len, steps.parts(1).values()))
    filler = small_disk / "filler"
    filler.write_bytes(bytes(DISK - size - size // 2))
    assert steps.write(TWO_NODES, "files=1 keep=1", [2])[2] == [FAILED_SPACE] * 4
    assert "free" in steps.log and steps.log.count("cairn: error:") == 1, steps.log
    assert steps.restore(["n0"], NEWEST) == [1]
    filler.unlink()
    assert steps.write(TWO_NODES, "files=1 keep=1", [3])[3] == [GOOD] * 4
    assert steps.restore(["n0", "n1"], NEWEST) == [3]


@pytest.mark.any_mpi
def test_an_unreported_error_comes_from_the_next_begin_once(steps: Steps) -> None:
    """The next begin returns the error and begins nothing, the one after it begins. Tests return it before, unprinted."""
    settings = steps.interference_always("1-1", FAIL=f"0 pwrite {errno.EIO}")
    output = steps.run(TWO_NODES, "program", "poll", steps.directory, "files=1", 1, 2, 3, settings=settings)
    for rank in range(4):
        for step, result in ((1, 0), (2, IO), (3, 0)):
            assert f"rank {rank} step {step}: begin {result}\n" in output
            tested = IO if step == 1 and rank < 2 else 0  # the writer of ranks 0 and 1 has failed
            assert f"rank {rank} step {step}: test {tested}\n" in output
        assert f"rank {rank} close: 0\n" in output
    assert steps.log.count("cairn: error:") == 1, steps.log
    assert steps.published() == [3]


@pytest.mark.any_mpi
def test_close_returns_an_error_that_no_call_has_returned(steps: Steps) -> None:
    settings = steps.interference_always("1-2", FAIL=f"2 pwrite {errno.EIO}")
    output = steps.run(TWO_NODES, "program", "overlap", steps.directory, "files=1", 1, 2, settings=settings)
    assert output.count(f"close: {IO}\n") == 4
    assert steps.published() == [1]
