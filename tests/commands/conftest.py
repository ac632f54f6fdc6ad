"""Where the command is that CMake has built."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cairn", type=Path, required=True, help="the command")
    parser.addoption("--crfs", type=Path, help="the command of that name, where libfuse3 is")


@pytest.fixture
def cairn(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--cairn").resolve()


@pytest.fixture
def crfs(request: pytest.FixtureRequest) -> Path:
    crfs = request.config.getoption("--crfs")
    if crfs is None:
        pytest.skip("crfs was not built, as libfuse3 is not here")
    return crfs.resolve()
