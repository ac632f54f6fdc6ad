"""Checkpoints that Cairn has not written: the first restart of a job that begins to use it comes from them."""

import shutil
import subprocess
from pathlib import Path
from typing import List, Tuple

import pytest

import scr3_prefix
from checkpointing import FULL, Job

BYPASS = {"SCR_CACHE_BYPASS": "1", "SCR_FETCH": "1"}
STEPS = [1, 2]


@pytest.fixture
def files(empty: Job) -> Job:
    """A job whose prefix directory has the files of two checkpoints and nothing else."""
    assert empty.launch(FULL, BYPASS, checkpoints=len(STEPS)).report["written"] == STEPS
    shutil.rmtree(empty.cluster.prefix / ".cairn")
    return empty


def names(step: int, rank: int) -> List[str]:
    return [f"step.{step}/{folder}/rank.{rank}" for folder in ("left", "right")]


def index(build: Path, job: Job, *words: str) -> Tuple[int, str]:
    done = subprocess.run([str(build / "src" / "tools" / "cairn"), "index", *words, "-p", str(job.cluster.prefix)],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.returncode, done.stdout


def write_scr(job: Job, current: str) -> None:
    scr3_prefix.write(job.cluster.prefix, [
        scr3_prefix.Dataset(step, f"step.{step}", [names(step, rank) for rank in range(len(FULL))])
        for step in STEPS], current)


def test_files_without_records_are_not_offered(files: Job) -> None:
    assert files.launch(FULL, BYPASS).restarted_from() == -1


def test_the_first_run_imports_what_scr_has_written(files: Job) -> None:
    write_scr(files, "step.2")
    outcome = files.launch(FULL, BYPASS)
    assert outcome.restarted_from() == 2 and outcome.said("is imported"), outcome.log


@pytest.mark.each_mpi
@pytest.mark.parametrize("current", STEPS)
def test_what_scr_has_written_is_restarted_from(build: Path, files: Job, current: int) -> None:
    write_scr(files, f"step.{current}")
    code, said = index(build, files, "import")
    assert code == 0 and f"step.{current} is current" in said, said
    outcome = files.launch(FULL, BYPASS, checkpoints=1)
    assert outcome.restarted_from() == current
    assert outcome.report["written"] == [current + 1]


def test_files_that_nobody_knows_are_restarted_from(build: Path, files: Job) -> None:
    patterns = [name.replace("rank.0", "rank.{rank}") for name in names(1, 0)]
    code, said = index(build, files, "add", "step.1", *patterns, "--ranks", str(len(FULL)))
    assert code == 0 and "16 files of 8 ranks" in said, said
    assert files.launch(FULL, BYPASS).restarted_from() == 1
    # With a cache too: read where it is, and the next one goes to the cache.
    outcome = files.launch(FULL, {"SCR_FETCH": "1"}, checkpoints=1)
    assert outcome.restarted_from() == 1 and outcome.report["written"] == [2]


@pytest.mark.parametrize("words", [["a", "b"], ["a", "b", "--ranks", "0"], ["a", "b", "--list", "c", "--ranks", "1"]])
def test_what_makes_no_sense_is_wrong_usage(build: Path, empty: Job, words: List[str]) -> None:
    assert index(build, empty, "add", *words)[0] == 2
    assert list(empty.cluster.prefix.iterdir()) == []
