"""Where the command is that CMake has built."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cairn", type=Path, required=True, help="the command")


@pytest.fixture
def cairn(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--cairn").resolve()
