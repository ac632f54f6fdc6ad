"""A program restarts from the caches of its own prefix directory, and never from those of another one."""

import json
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


def test_programs_in_two_directories_run_at_the_same_time(empty: Job) -> None:
    first = empty.cluster.prefix
    settings = {**CACHE_ONLY, "SCR_COPY_TYPE": "XOR", "SCR_SET_SIZE": "4"}
    program = [empty._program, "--kill-note", str(empty.cluster.root / "none"), "--checkpoints", "4"]
    one = empty.cluster.start(FULL, program, settings)
    other_prefix(empty)
    two = empty.cluster.start(FULL, program, settings)
    for run in (one, two):
        output, _ = run.process.communicate(timeout=120)
        assert run.process.returncode == 0, run.log.read_text()
        assert json.loads(output)["restart"] == -1
    empty.cluster.prefix = first
    assert empty.launch(FULL, CACHE_ONLY).restarted_from() == 4


def test_a_directory_that_was_moved_keeps_its_cache(empty: Job) -> None:
    assert empty.launch(FULL, CACHE_ONLY, checkpoints=1).restarted_from() == -1
    moved = empty.cluster.root / "moved"
    empty.cluster.prefix.rename(moved)
    empty.cluster.prefix = moved
    assert empty.launch(FULL, CACHE_ONLY, checkpoints=1).restarted_from() == 1


@pytest.mark.parametrize("is_absent", [False, True])
def test_a_copy_of_a_directory_never_takes_its_caches(empty: Job, is_absent: bool) -> None:
    assert empty.launch(FULL, CACHE_ONLY, checkpoints=3).restarted_from() == -1
    original = empty.cluster.prefix
    copy, aside = empty.cluster.root / "copy", empty.cluster.root / "aside"
    shutil.copytree(original, copy)
    if is_absent:
        original.rename(aside)
    empty.cluster.prefix = copy
    outcome = empty.launch(FULL, CACHE_ONLY, checkpoints=1)
    assert outcome.restarted_from() == -1 and outcome.said("cairn index id") and f"{original}," in outcome.log
    if is_absent:
        aside.rename(original)
    empty.cluster.prefix = original
    assert empty.launch(FULL, CACHE_ONLY).restarted_from() == 3


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


def test_a_damaged_id_is_named_and_costs_no_checkpoint(empty: Job) -> None:
    assert empty.launch(FULL, CACHE_ONLY, checkpoints=1).restarted_from() == -1
    damaged = empty.cluster.prefix / ".cairn" / "id"
    damaged.write_bytes(b"not an id")
    outcome = empty.launch(FULL, CACHE_ONLY)
    assert outcome.restarted_from() == 1 and str(damaged) in outcome.log
    assert str(damaged) not in empty.launch(FULL, CACHE_ONLY).log, "it is written anew"


def index_id(build: Path, job: Job, *words: str) -> List[str]:
    done = subprocess.run([str(build / "src" / "tools" / "cairn"), "index", "id", *words],
                          env=job.cluster.environment(UNNAMED), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_a_directory_that_lost_its_id_takes_its_caches_up_by_command(build: Path, empty: Job) -> None:
    assert empty.launch(FULL, CACHE_ONLY, checkpoints=1).restarted_from() == -1
    [first, *caches] = index_id(build, empty)
    assert len(caches) == len(set(FULL)) and all(first in cache for cache in caches)
    shutil.rmtree(empty.cluster.prefix / ".cairn")
    fresh = empty.launch(FULL, CACHE_ONLY)
    assert fresh.restarted_from() == -1 and fresh.said("id", first)
    index_id(build, empty, first)
    assert empty.launch(FULL, CACHE_ONLY).restarted_from() == 1
