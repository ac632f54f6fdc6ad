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
