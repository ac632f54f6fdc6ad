"""Where the package is, the command that CMake has built, and the program that real jobs run."""

import sys
from pathlib import Path
from typing import Dict

import pytest

from jobs import LAUNCHER

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cairn", type=Path, required=True, help="the command")
    parser.addoption("--program", action="append", default=[], metavar="MPI=PATH",
                     help="the heat solver, built for that MPI")


def programs(config: pytest.Config) -> Dict[str, str]:
    return dict(one.split("=", 1) for one in config.getoption("--program"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" in metafunc.fixturenames:
        metafunc.parametrize("flavour", sorted(programs(metafunc.config)))


@pytest.fixture
def cairn(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--cairn").resolve()


@pytest.fixture
def first_flavour(request: pytest.FixtureRequest) -> str:
    """Open MPI's where it was built."""
    found = programs(request.config)
    if not found:
        pytest.skip("no MPI was built for")
    return "openmpi" if "openmpi" in found else sorted(found)[0]


@pytest.fixture
def program_of(request: pytest.FixtureRequest) -> Dict[str, str]:
    return programs(request.config)


@pytest.fixture
def mpirun(tmp_path: Path) -> str:
    """A launcher that starts one process."""
    path = tmp_path / "mpirun"
    path.write_text(LAUNCHER)
    path.chmod(0o755)
    return str(path)
