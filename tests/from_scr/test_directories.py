"""Prefix directories that a real SCR wrote: imported, listed, restarted from, read back by checksum."""

import json
from typing import Dict, List

import pytest

from conftest import Job

RANKS = {"cached": 4, "bypass": 8, "shared": 4}
NEWEST = {"cached": "ckpt.4", "bypass": "timestep.3", "shared": "ckpt.2"}
RESTART = ["init", "have", "start_restart"]


def files_of(checksums: Dict[str, str], dataset: str) -> Dict[str, str]:
    return {name: checksum for name, checksum in checksums.items() if name.startswith(dataset + "/")}


def owner_of(name: str) -> str:
    """The rank that wrote a file, by its name; rank 0 wrote the shared one."""
    last = name.rpartition("rank_")[2].partition(".")[0]
    return "0" if last == "shared" else last


@pytest.mark.parametrize("name", sorted(RANKS))
def test_import_takes_over_every_dataset_with_its_files_and_the_current_one(job: Job, name: str) -> None:
    checksums = job.unpack(name)
    done = job.cairn("index", "import")
    assert done.returncode == 0, done.stdout
    listed = json.loads(job.cairn("index", "list", "--json").stdout)
    datasets = {one["name"]: one for one in listed["datasets"]}
    assert set(datasets) == {path.partition("/")[0] for path in checksums}
    assert listed["current"] == NEWEST[name]
    for dataset, one in datasets.items():
        assert one["ranks"] == RANKS[name] and one["files"] == len(files_of(checksums, dataset))
        assert job.cairn("index", "show", dataset, "--check").returncode == 0


@pytest.mark.each_mpi
@pytest.mark.parametrize("name", sorted(RANKS))
def test_each_rank_reads_back_its_files_of_the_current_checkpoint(job: Job, name: str) -> None:
    checksums = files_of(job.unpack(name), NEWEST[name])
    assert job.cairn("index", "import").returncode == 0
    reads = [f"{owner_of(path)}/read={path}" for path in checksums]
    outcome = job.run(RANKS[name], [*RESTART, *reads, "complete_restart", "finalize"])
    assert outcome.code == 0 and outcome.answer("have") == f"1 {NEWEST[name]}", outcome.log
    found = outcome.checksums()
    assert {f"{owner_of(path)}.{path.replace('/', '_')}": checksum for path, checksum in checksums.items()} == found


@pytest.mark.parametrize("name", sorted(RANKS))
def test_any_rank_reads_any_imported_file(job: Job, name: str) -> None:
    checksums = files_of(job.unpack(name), NEWEST[name])
    assert job.cairn("index", "import").returncode == 0
    reads: List[str] = [f"read={path}" for path in checksums]
    outcome = job.run(RANKS[name], [*RESTART, *reads, "complete_restart", "finalize"])
    assert set(outcome.codes("read")) == {0}, outcome.log
    found = outcome.checksums()
    for rank in range(RANKS[name]):
        for path, checksum in checksums.items():
            assert found[f"{rank}.{path.replace('/', '_')}"] == checksum


def snapshot(job: Job) -> Dict[str, bytes]:
    """All that SCR left."""
    return {str(path.relative_to(job.prefix)): path.read_bytes() for path in job.prefix.rglob("*")
            if path.is_file() and ".cairn" not in path.parts}


@pytest.mark.each_mpi
@pytest.mark.parametrize("name", sorted(RANKS))
def test_a_run_imports_what_scr_left_and_each_rank_reads_it_back(job: Job, name: str) -> None:
    checksums = files_of(job.unpack(name), NEWEST[name])
    before = snapshot(job)
    reads = [f"{owner_of(path)}/read={path}" for path in checksums]
    outcome = job.run(RANKS[name], [*RESTART, *reads, "complete_restart", "finalize"])
    assert outcome.code == 0 and outcome.answer("have") == f"1 {NEWEST[name]}", outcome.log
    assert f"({NEWEST[name]})" in outcome.log and "is imported" in outcome.log
    found = outcome.checksums()
    assert {f"{owner_of(path)}.{path.replace('/', '_')}": checksum for path, checksum in checksums.items()} == found
    assert snapshot(job) == before


def test_what_a_run_writes_after_the_import_leaves_the_files_of_scr(job: Job) -> None:
    job.unpack("cached")
    before = snapshot(job)
    settings = {"SCR_FLUSH": "1", "SCR_PREFIX_SIZE": "1"}
    writes = [word for number in (5, 6, 7)
              for word in (f"checkpoint=ckpt.{number}", f"write=ckpt.{number}/rank_%r.ckpt", "complete")]
    outcome = job.run(4, [*RESTART, "complete_restart", *writes, "finalize"], settings)
    assert set(outcome.codes("complete")) == {0}, outcome.log
    after = snapshot(job)
    assert {name: after.get(name) for name in before} == before
    assert not (job.prefix / "ckpt.5").exists() and (job.prefix / "ckpt.7").exists()
    again = job.run(4, ["init", "have", "finalize"], {**settings, "SCR_PREFIX_PURGE": "1", "SCR_CACHE_PURGE": "1"})
    assert again.answer("have") == "0", again.log
    after = snapshot(job)
    assert {name: after.get(name) for name in before} == before and not (job.prefix / "ckpt.7").exists()


def test_explain_says_what_a_run_would_import(job: Job) -> None:
    job.unpack("cached")
    shown = job.cairn("explain").stdout
    assert shown.startswith("a restart with 4 ranks would take dataset 4 (ckpt.4)"), shown
    (job.prefix / "ckpt.4" / "rank_2.ckpt").unlink()
    shown = job.cairn("explain").stdout
    assert shown.startswith("a restart with 4 ranks would take dataset 3 (ckpt.3)"), shown
    outcome = job.run(4, ["init", "have", "finalize"])
    assert outcome.answer("have") == "1 ckpt.3" and "ckpt.4/rank_2.ckpt" in outcome.log, outcome.log


def test_a_directory_without_whole_checkpoints_is_no_silent_start_from_scratch(job: Job) -> None:
    job.unpack("shared")
    for number in (1, 2):
        (job.prefix / f"ckpt.{number}" / "rank_shared.ckpt").unlink()
    outcome = job.run(4, ["init", "have", "finalize"])
    assert outcome.answer("have") == "0"
    assert "STARTS FROM SCRATCH" in outcome.log and "ckpt.2/rank_shared.ckpt" in outcome.log, outcome.log


def test_two_jobs_do_not_import_at_a_time(job: Job) -> None:
    job.unpack("cached")
    outcome = job.run(4, ["init", "have", "finalize"], {"SCR_JOB_ID": "first"})
    again = job.run(4, ["init", "have", "finalize"], {"SCR_JOB_ID": "second"})
    assert outcome.answer("have") == again.answer("have") == "1 ckpt.4"
    assert "is imported" in outcome.log and "is imported" not in again.log


def test_the_build_command_names_the_command_of_scr_for_what_scr_left(job: Job) -> None:
    job.unpack("cached")
    done = job.cairn("scr_index", "--build", "3")
    assert done.returncode == 1 and "scr_index --build 3" in done.stdout, done.stdout
    assert not (job.prefix / ".cairn").exists()
