"""What the tests of the cluster share. They run under alone.py (see CMakeLists.txt), in a network, process and mount
namespace that is theirs."""

import re
import sys
from pathlib import Path
from typing import Iterator, List

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from heat import LARGE, SMALL, Heat, Size, undisturbed  # noqa: E402
from nodes import Cluster  # noqa: E402

JOBS = Path("/run/jobs")
REPORT: List[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, required=True, help="the build's folder")
    parser.addoption("--flavour", action="append", default=[], help="an MPI that the examples were built for")
    parser.addoption("--long", action="store_true",
                     help="ranks of 64 MiB where times are printed; also what waits for the clock of Slurm")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes half a minute or more")


def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    if not config.getoption("--long"):
        items[:] = [item for item in items if "long" not in item.keywords]


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Times are printed, but not judged."""
    if REPORT:
        terminalreporter.write_line("\nFrom the death of a node to computing again:")
        for line in REPORT:
            terminalreporter.write_line("  " + line)


@pytest.fixture
def report() -> List[str]:
    return REPORT


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--build").resolve()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster(6) as made:
        yield made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" in metafunc.fixturenames:
        metafunc.parametrize("flavour", metafunc.config.getoption("--flavour"))


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path:
    """On all nodes the same."""
    path = JOBS / re.sub(r"\W+", "-", request.node.name)
    path.mkdir(parents=True)
    return path


@pytest.fixture
def heat(folder: Path, build: Path) -> Heat:
    return Heat(folder, build)


@pytest.fixture(scope="session")
def size(request: pytest.FixtureRequest) -> Size:
    """Where times are printed."""
    return LARGE if request.config.getoption("--long") else SMALL


@pytest.fixture(scope="session")
def reference(build: Path, size: Size) -> Path:
    """What the program gives if nothing happens."""
    folder = JOBS / "reference"
    folder.mkdir(parents=True)
    return undisturbed(Heat(folder, build, size))
