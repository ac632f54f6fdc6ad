"""What tests of programs that are built for each MPI share: the option --build, a run of each test per MPI, and
simulated nodes for each of them."""

from pathlib import Path
from typing import Iterator

import pytest

from cluster import LAUNCHERS, Cluster


def add_build_option(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, default=Path("build"), help="the build folder")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "any_mpi: run with one MPI only: the test is not about what MPI does")


def run_for_each_flavour(metafunc: pytest.Metafunc, kind: str, program: str) -> None:
    """One test per MPI for which `program` is in tests/KIND/FLAVOUR of the build folder."""
    if "flavour" not in metafunc.fixturenames:
        return
    folder = metafunc.config.getoption("build") / "tests" / kind
    flavours = [name for name in LAUNCHERS if (folder / name / program).exists()]
    if not flavours:
        pytest.exit(f"no {program} in {folder}: build first", 2)
    # The last one, MPICH, starts processes fastest.
    any_mpi = metafunc.definition.get_closest_marker("any_mpi")
    metafunc.parametrize("flavour", flavours[-1:] if any_mpi else flavours)


@pytest.fixture
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("build").resolve()


@pytest.fixture
def cluster(flavour: str) -> Iterator[Cluster]:
    with Cluster(flavour, "cairn-test") as nodes:
        yield nodes
