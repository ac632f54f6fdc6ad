"""Fixtures of the fault table.

Each test gets a cluster of its own whose nodes already hold two committed checkpoints (steps 2 and
3, see checkpointing.py), damages it, starts the program again and judges what it says.
"""

import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

import pytest

for folder in ("python", "tests/nodes"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from checkpointing import FULL, NEWEST, SCHEMES, Job, Kept  # noqa: E402
from cluster import LAUNCHERS  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, default=Path("build"), help="the build folder")
    parser.addoption("--seeds", type=seeds_of, metavar="FROM:TO",
                     help="what test_sampled_*.py draw from, the last one excluded")


def seeds_of(text: str) -> range:
    """"3:5" are 3 and 4."""
    first, _, end = text.partition(":")
    return range(int(first), int(end))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each_mpi: run with every MPI that was built")


def built_flavours(build: Path) -> List[str]:
    """The MPIs for which there is a program, Open MPI first; one without a launcher fails its tests."""
    return [name for name in LAUNCHERS if Job.program_of(build, name).exists()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" not in metafunc.fixturenames:
        return
    build = metafunc.config.getoption("build")
    flavours = built_flavours(build)
    if not flavours:
        pytest.exit(f"no checkpointer in {build}: build first", 2)
    if "seed" in metafunc.fixturenames:
        # The schemes take turns, and of five rounds the last goes to the next MPI.
        metafunc.parametrize("flavour, scheme, seed", [
            (flavours[1 % len(flavours) if seed % 5 == 4 else 0],
             list(SCHEMES)[seed % len(SCHEMES)], seed)
            for seed in metafunc.config.getoption("seeds") or metafunc.module.EVERY_DAY])
        return
    every = metafunc.definition.get_closest_marker("each_mpi")
    metafunc.parametrize("flavour", flavours if every else flavours[:1], scope="session")


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("build").resolve()


@pytest.fixture(scope="session")
def written(build: Path) -> Iterator[Callable[[str, str], Job]]:
    """written(flavour, scheme): the cluster that tests copy. Not to be changed."""
    jobs: Dict[Tuple[str, str], Job] = {}

    def of(flavour: str, scheme: str) -> Job:
        if (flavour, scheme) not in jobs:
            job = jobs[flavour, scheme] = Job(build, flavour, scheme)
            outcome = job.launch(FULL, checkpoints=NEWEST)
            assert outcome.report.get("written") == list(range(1, NEWEST + 1)), outcome
        return jobs[flavour, scheme]

    yield of
    for job in jobs.values():
        job.cluster.__exit__()


@pytest.fixture(scope="session")
def kept(build: Path, written: Callable[[str, str], Job]) -> Iterator[Kept]:
    jobs: Dict[Tuple[str, str, Callable[[Job], None]], Job] = {}

    def of(flavour: str, scheme: str, write: Callable[[Job], None]) -> Job:
        key = flavour, scheme, write
        if key not in jobs:
            jobs[key] = Job(build, flavour, scheme).copy(written(flavour, scheme))
            write(jobs[key])
        return jobs[key]

    yield of
    for job in jobs.values():
        job.cluster.__exit__()


@pytest.fixture
def empty(build: Path, flavour: str, scheme: str) -> Iterator[Job]:
    """A cluster whose nodes hold nothing."""
    with Job(build, flavour, scheme) as job:
        yield job


@pytest.fixture
def job(empty: Job, flavour: str, scheme: str, written: Callable[[str, str], Job]) -> Job:
    """A cluster on which a run ended after its checkpoint NEWEST; the one before is there too."""
    return empty.copy(written(flavour, scheme))


@pytest.fixture
def scheme() -> str:
    """Of the jobs of a test; tests of another one override it."""
    return "XOR"
