"""Fixtures of the API test: the MPIs that were built, and two simulated nodes for each test."""

import sys
from pathlib import Path

import pytest

for folder in ("python", "tests/nodes"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from flavours import add_build_option, build, cluster, pytest_configure, run_for_each_flavour  # noqa: E402, F401


def pytest_addoption(parser: pytest.Parser) -> None:
    add_build_option(parser)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    run_for_each_flavour(metafunc, "api", "api_program")
