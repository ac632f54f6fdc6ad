"""A prefix directory that stops answering while datasets are copied to it (SCR_FLUSH_ASYNC=1): SCR_Finalize returns in
its time, the process ends, and the next run has lost nothing.

The directory is on a FUSE file system whose daemon is stopped, so that every call hangs.
"""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Iterator, List

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "crfs"))

from checkpointing import FULL, NODES, SCHEMES, SETTINGS, Job  # noqa: E402
from mounts import Mount, Workshop, keep_mounts_to_ourselves  # noqa: E402

ASYNC = {"SCR_FLUSH": "1", "SCR_FETCH": "1", "SCR_FLUSH_ASYNC": "1"}
SLOWLY = "20000"  # bytes per second of a node: a copy takes ten seconds and more
PATIENCE_S = 20


@pytest.fixture
def directory(empty: Job, build: Path) -> Iterator[Mount]:
    if not (build / "tests/crfs/slowfs").exists() or not Path("/dev/fuse").exists():
        pytest.skip("NOT TESTED: a directory that hangs, because there is no FUSE")
    keep_mounts_to_ourselves()
    workshop = Workshop(build)
    try:
        yield workshop.slowfs(path=empty.cluster.prefix)
    finally:
        workshop.close()


def wait_for(directory: Mount, pattern: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while not list(directory.backing.glob(pattern)):
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.01)


def stop(directory: Mount) -> None:
    """Not amid the requests of a moment: a process cannot end before one is answered that the daemon has taken."""
    time.sleep(0.5)
    directory.process.send_signal(signal.SIGSTOP)


def program(job: Job, *options: str) -> List[str]:
    return [*job.program_with_note(), "--checkpoints", "1", *options]


def expect_nothing_lost(job: Job, directory: Mount) -> None:
    directory.process.send_signal(signal.SIGCONT)
    assert job.launch(FULL, ASYNC).restarted_from() == 1
    job.lose(*NODES)
    assert job.launch(FULL, ASYNC).restarted_from() == 1


@pytest.mark.each_mpi
@pytest.mark.parametrize("limit", ["CAIRN_FLUSH_AT_END_TIMEOUT", "SCR_END_TIME"])
def test_the_program_ends_though_the_directory_hangs(empty: Job, directory: Mount, limit: str) -> None:
    time_left = "3" if limit == "CAIRN_FLUSH_AT_END_TIMEOUT" else str(int(time.time()) + 35)
    settings = {**SETTINGS, **SCHEMES[empty.scheme], **ASYNC, "SCR_FLUSH_ASYNC_BW": SLOWLY, limit: time_left}
    run = empty.cluster.start(FULL, program(empty), settings)
    wait_for(directory, ".cairn/epoch.*/dataset.*/dataset", run.log)
    stop(directory)
    begun = time.monotonic()
    output, _ = run.process.communicate(timeout=3 * PATIENCE_S)
    assert time.monotonic() - begun < 2 * PATIENCE_S
    assert run.process.returncode == 0, run.log.read_text()
    report = json.loads(output)
    assert report["written"] == [1] and report["agreed"]
    assert "does not answer. not finished: the copy of dataset 1 (step.1)" in run.log.read_text()
    expect_nothing_lost(empty, directory)


def test_a_directory_that_hangs_when_all_is_copied_holds_no_program_back(empty: Job, directory: Mount) -> None:
    """What the run writes there last is not worth an endless wait."""
    ready = empty.cluster.root / "ready"
    settings = {**SETTINGS, **SCHEMES[empty.scheme], **ASYNC, "CAIRN_FLUSH_AT_END_TIMEOUT": "3"}
    run = empty.cluster.start(FULL, program(empty, "--pause-at-end", str(ready)), settings)
    wait_for(directory, ".cairn/datasets/dataset.1.*", run.log)
    while not ready.exists() or "while the program went on" not in run.log.read_text():
        time.sleep(0.01)
    stop(directory)
    ready.unlink()
    begun = time.monotonic()
    run.process.communicate(timeout=3 * PATIENCE_S)
    assert time.monotonic() - begun < 2 * PATIENCE_S
    assert "does not answer" in run.log.read_text()
    expect_nothing_lost(empty, directory)
