"""Fixtures of the API test: the MPIs that were built, and two simulated nodes for each test."""

import sys
from pathlib import Path
from typing import Iterator

import pytest

for folder in ("python", "tests/nodes"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from cluster import LAUNCHERS, Cluster  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, default=Path("build"), help="the build folder")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" not in metafunc.fixturenames:
        return
    build = metafunc.config.getoption("build")
    flavours = [name for name in LAUNCHERS
                if (build / "tests" / "api" / name / "api_program").exists()]
    if not flavours:
        pytest.exit(f"no api_program in {build}: build first", 2)
    metafunc.parametrize("flavour", flavours)


@pytest.fixture
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("build").resolve()


@pytest.fixture
def cluster(flavour: str) -> Iterator[Cluster]:
    with Cluster(flavour, "cairn-api") as nodes:
        yield nodes
