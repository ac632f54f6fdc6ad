"""A prefix directory that stops answering while datasets are copied to it (SCR_FLUSH_ASYNC=1): SCR_Finalize returns in
its time, the process ends, and the next run has lost nothing.

The directory is on a FUSE file system whose daemon is stopped, so that every call hangs. A process whose thread is in
a call that no signal ends could not end itself: no such call is made here.
"""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "crfs"))

from checkpointing import FULL, NODES, SCHEMES, SETTINGS, Job  # noqa: E402
from cluster import Run, stop_process  # noqa: E402
from mounts import Mount, Workshop, keep_mounts_to_ourselves  # noqa: E402

ASYNC = {"SCR_FLUSH": "1", "SCR_FETCH": "1", "SCR_FLUSH_ASYNC": "1"}
SLOWLY = "20000"  # bytes per second of a node: a copy takes ten seconds and more
PATIENCE_S = 20
PATIENCE_WITH_COPIES_S = 120  # beside other programs they get little of a core


@pytest.fixture
def directory(empty: Job, build: Path) -> Iterator[Mount]:
    if not (build / "tests/crfs/slowfs").exists() or not Path("/dev/fuse").exists():
        pytest.skip("NOT TESTED: a directory that hangs, because there is no FUSE")
    keep_mounts_to_ourselves()
    workshop = Workshop(build)
    try:
        yield workshop.slowfs("--no-flush", path=empty.cluster.prefix)
    finally:
        workshop.close()


def wait_for(directory: Mount, pattern: str, log: Path) -> None:
    wait_until(lambda: any(directory.backing.glob(pattern)), log)


def wait_until(is_so: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + PATIENCE_WITH_COPIES_S
    while not is_so():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.01)


def stop(directory: Mount, run: Run) -> None:
    """Not amid a request: a process cannot end before the daemon has answered all that it has taken."""
    with run.standing_still():
        stop_process(directory.process.pid)


def program(job: Job, *options: str) -> List[str]:
    return [*job.program_with_note(), "--checkpoints", "1", *options]


def expect_nothing_lost(job: Job, directory: Mount) -> None:
    directory.process.send_signal(signal.SIGCONT)
    assert job.launch(FULL, ASYNC).restarted_from() == 1
    job.lose(*NODES)
    assert job.launch(FULL, ASYNC).restarted_from() == 1


@pytest.mark.each_mpi
def test_the_program_ends_though_the_directory_hangs(empty: Job, directory: Mount) -> None:
    ends_though_the_directory_hangs(empty, directory, CAIRN_FLUSH_AT_END_TIMEOUT="3")


def test_so_it_does_before_the_end_of_the_allocation(empty: Job, directory: Mount) -> None:
    ends_though_the_directory_hangs(empty, directory, SCR_END_TIME=str(int(time.time()) + 35))


def ends_though_the_directory_hangs(empty: Job, directory: Mount, **limit: str) -> None:
    settings = {**SETTINGS, **SCHEMES[empty.scheme], **ASYNC, "SCR_FLUSH_ASYNC_BW": SLOWLY, **limit}
    run = empty.cluster.start(FULL, program(empty), settings)
    wait_for(directory, ".cairn/epoch.*/dataset.*/dataset", run.log)
    stop(directory, run)
    begun = time.monotonic()
    output, _ = run.process.communicate(timeout=3 * PATIENCE_S)
    assert time.monotonic() - begun < 2 * PATIENCE_S
    assert run.process.returncode == 0, run.log.read_text()
    report = json.loads(output)
    assert report["written"] == [1] and report["agreed"]
    assert "does not answer. not finished: the copy of dataset 1 (step.1)" in run.log.read_text()
    expect_nothing_lost(empty, directory)


@pytest.mark.each_mpi
def test_a_directory_that_hangs_when_all_is_copied_holds_no_program_back(empty: Job, directory: Mount) -> None:
    """What the run writes there last is not worth an endless wait."""
    ready = empty.cluster.root / "ready"
    settings = {**SETTINGS, **SCHEMES[empty.scheme], **ASYNC, "CAIRN_FLUSH_AT_END_TIMEOUT": "3"}
    run = empty.cluster.start(FULL, program(empty, "--pause-at-end", str(ready)), settings)
    wait_for(directory, ".cairn/datasets/dataset.1.*", run.log)
    wait_until(lambda: ready.exists() and "while the program went on" in run.log.read_text(), run.log)
    stop(directory, run)
    ready.unlink()
    begun = time.monotonic()
    run.process.communicate(timeout=3 * PATIENCE_S)
    assert time.monotonic() - begun < 2 * PATIENCE_S
    assert "does not answer" in run.log.read_text()
    expect_nothing_lost(empty, directory)
