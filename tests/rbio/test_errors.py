"""A step that cannot be written: all ranks get the error, the steps before stay, and computing goes on."""

import errno
import os
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from steps import GOOD, IO, NO_SPACE, TWO_NODES, Steps, Written

DISK = 4 << 20
FAILED_IO = Written(0, 1, IO)
FAILED_SPACE = Written(0, 1, NO_SPACE)


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "rename", "create"])
@pytest.mark.parametrize("rank", [0, 2])
def test_an_error_on_one_writer_reaches_all_ranks(steps: Steps, call: str, rank: int) -> None:
    settings = steps.interference(2, FAIL=f"{rank} {call} {errno.EIO}")
    results = steps.write(TWO_NODES, "files=1", [1, 2, 3], settings)
    assert results[1] == results[3] == [GOOD] * 4
    # Of the writers, the one that comes last renames the directory.
    expected = [FAILED_IO] * 4
    assert results[2] in ([expected, [GOOD] * 4] if call == "rename" else [expected])
    assert steps.log.count("cairn: error:") == (results[2] == expected)
    assert 3 in steps.published() and 1 in steps.published()
    assert steps.restore(["n0", "n1"]) == 3
    assert steps.restore(["n0"], step=1) == 1


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
    assert steps.restore(["n0"]) == 1
    filler.unlink()
    assert steps.write(TWO_NODES, "files=1 keep=1", [3])[3] == [GOOD] * 4
    assert steps.restore(["n0", "n1"]) == 3


@pytest.mark.any_mpi
def test_an_unreported_error_comes_from_the_next_begin_once(steps: Steps) -> None:
    """Without a ticket: the next begin returns the error and begins nothing, the one after it begins."""
    settings = steps.interference_always("1-1", FAIL=f"0 pwrite {errno.EIO}")
    output = steps.run(TWO_NODES, "program", "poll", steps.directory, "files=1", 1, 2, 3, settings=settings)
    for rank in range(4):
        for step, result in ((1, 0), (2, IO), (3, 0)):
            assert f"rank {rank} step {step}: begin {result}\n" in output
        assert f"rank {rank} close: 0\n" in output
    assert steps.published() == [3]


@pytest.mark.any_mpi
def test_close_returns_an_error_that_no_call_has_returned(steps: Steps) -> None:
    settings = steps.interference_always("1-2", FAIL=f"2 pwrite {errno.EIO}")
    output = steps.run(TWO_NODES, "program", "overlap", steps.directory, "files=1", 1, 2, settings=settings)
    assert output.count(f"close: {IO}\n") == 4
    assert steps.published() == [1]
