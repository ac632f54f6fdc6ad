"""Fixtures of the rbIO tests: the MPIs that were built, and simulated nodes for each test."""

import sys
from pathlib import Path
from typing import Iterator

import pytest

for folder in ("python", "tests/nodes"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from cluster import LAUNCHERS, Cluster  # noqa: E402
from steps import Steps  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, default=Path("build"), help="the build folder")
    parser.addoption("--all-moments", action="store_true", help="kill at each moment, and not only at some")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" not in metafunc.fixturenames:
        return
    build = metafunc.config.getoption("build")
    flavours = [name for name in LAUNCHERS
                if (build / "tests" / "rbio" / name / "program").exists()]
    if not flavours:
        pytest.exit(f"no program in {build}/tests/rbio: build first", 2)
    metafunc.parametrize("flavour", flavours)


@pytest.fixture
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("build").resolve()


@pytest.fixture
def cluster(flavour: str) -> Iterator[Cluster]:
    with Cluster(flavour, "cairn-rbio") as nodes:
        yield nodes


@pytest.fixture
def steps(cluster: Cluster, build: Path, flavour: str) -> Steps:
    return Steps(cluster, build, flavour)
