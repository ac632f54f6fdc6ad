"""Where the package and the command are."""

import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cairn", type=Path, required=True, help="the command")


@pytest.fixture
def cairn(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--cairn").resolve()
