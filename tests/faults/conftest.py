"""Fixtures of the fault table.

Each test gets a cluster of its own whose nodes already hold two committed checkpoints (steps 2 and
3, see checkpointing.py), damages it, starts the program again and judges what it says.
"""

import shutil
import sys
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "demo"))

from checkpointing import FULL, NEWEST, Job  # noqa: E402
from cluster import LAUNCHERS, launcher_of  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, default=Path("build"), help="the build folder")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each_mpi: run with every MPI that was built")


def built_flavours(build: Path) -> List[str]:
    """The MPIs for which there is a program and a launcher, Open MPI first."""
    return [name for name in LAUNCHERS
            if Job.program_of(build, name).exists() and launcher_of(name)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" not in metafunc.fixturenames:
        return
    build = metafunc.config.getoption("build")
    flavours = built_flavours(build)
    if not flavours:
        pytest.exit(f"no checkpointer in {build} with a launcher for its MPI: build first", 2)
    every = metafunc.definition.get_closest_marker("each_mpi")
    metafunc.parametrize("flavour", flavours if every else flavours[:1], scope="session")


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("build").resolve()


@pytest.fixture
def empty(build: Path, flavour: str) -> Iterator[Job]:
    """A cluster whose nodes hold nothing."""
    with Job(build, flavour) as job:
        yield job


@pytest.fixture(scope="session")
def written(build: Path, flavour: str) -> Iterator[Job]:
    """The cluster that `job` copies. Not to be changed."""
    with Job(build, flavour) as job:
        job.calm = job.launch(FULL, checkpoints=NEWEST).report
        assert job.calm["written"] == list(range(1, NEWEST + 1))
        yield job


@pytest.fixture
def job(empty: Job, written: Job) -> Job:
    """A cluster on which a run ended after its checkpoint NEWEST; the one before is there too."""
    for folder in ("nodes", "prefix"):
        shutil.rmtree(empty.cluster.root / folder)
        shutil.copytree(written.cluster.root / folder, empty.cluster.root / folder, symlinks=True)
    empty.calm = written.calm
    return empty


@pytest.fixture(scope="session")
def calm_rebuild(build: Path, flavour: str, written: Job) -> Dict[str, float]:
    """The report of a restart that rebuilds a node and is left alone."""
    with Job(build, flavour) as job:
        shutil.rmtree(job.cluster.root / "nodes")
        shutil.copytree(written.cluster.root / "nodes", job.cluster.root / "nodes", symlinks=True)
        job.cluster.lose_storage("n1")
        return job.launch(["n4" if node == "n1" else node for node in FULL]).report
