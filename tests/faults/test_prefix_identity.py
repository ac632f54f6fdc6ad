"""A program restarts from the caches of its own prefix directory, and never from those of another one."""

import shutil
import subprocess
from pathlib import Path
from typing import List

import pytest

from checkpointing import FULL, Job

UNNAMED = {"SCR_JOB_ID": ""}
CACHE_ONLY = {**UNNAMED, "SCR_FLUSH": "0"}


def other_prefix(job: Job, name: str = "other") -> Path:
    """The job's next runs are in this prefix directory."""
    job.cluster.prefix = job.cluster.root / name
    job.cluster.prefix.mkdir(exist_ok=True)
    return job.cluster.prefix


@pytest.mark.each_mpi
def test_programs_in_two_directories_without_a_job_id_keep_their_own_checkpoints(empty: Job) -> None:
    first = empty.cluster.prefix
    assert empty.launch(FULL, CACHE_ONLY, checkpoints=2).restarted_from() == -1
    other_prefix(empty)
    fresh = empty.launch(FULL, CACHE_ONLY, checkpoints=1)
    assert fresh.restarted_from() == -1 and fresh.report["written"] == [1]
    empty.cluster.prefix = first
    again = empty.launch(FULL, CACHE_ONLY, checkpoints=1)
    assert again.restarted_from() == 2 and again.report["written"] == [3]
    other_prefix(empty)
    assert empty.launch(FULL, CACHE_ONLY).restarted_from() == 1


def test_a_directory_moved_to_another_file_system_gets_its_caches_by_the_named_command(build: Path, empty: Job) -> None:
    assert empty.launch(FULL, CACHE_ONLY, checkpoints=3).restarted_from() == -1
    [first, *_] = index_id(build, empty)
    moved = empty.cluster.root / "moved"
    shutil.copytree(empty.cluster.prefix, moved)
    shutil.rmtree(empty.cluster.prefix)
    empty.cluster.prefix = moved
    assert f"cairn index id {first} -p {moved}" in empty.launch(FULL, CACHE_ONLY).log
    index_id(build, empty, first)
    assert empty.launch(FULL, CACHE_ONLY).restarted_from() == 3


def index_id(build: Path, job: Job, *words: str) -> List[str]:
    done = subprocess.run([str(build / "src" / "tools" / "cairn"), "index", "id", *words],
                          env=job.cluster.environment(UNNAMED), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()
