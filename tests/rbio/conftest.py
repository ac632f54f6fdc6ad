"""Fixtures of the rbIO tests: the MPIs that were built, and simulated nodes for each test."""

import sys
from pathlib import Path

import pytest

for folder in ("python", "tests/nodes"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from cluster import Cluster  # noqa: E402
from flavours import add_build_option, build, cluster, pytest_configure, run_for_each_flavour  # noqa: E402, F401
from steps import Steps  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    add_build_option(parser)
    parser.addoption("--all-moments", action="store_true", help="kill at each moment, not only at some, and test what takes much memory")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    run_for_each_flavour(metafunc, "rbio", "program")


@pytest.fixture
def steps(cluster: Cluster, build: Path, flavour: str) -> Steps:  # noqa: F811
    return Steps(cluster, build, flavour)
