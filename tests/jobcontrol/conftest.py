"""Where the package is, the command that CMake has built, and the program that real jobs run."""

import sys
from functools import lru_cache
from pathlib import Path
from typing import Callable, Dict, Iterator, List

import pytest

from jobs import LAUNCHER, NODES, Job, fields, heat

# undisturbed(flavour): what the heat solver computes in 100 steps when nothing disturbs it.
Undisturbed = Callable[[str], List[bytes]]

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


@pytest.fixture(autouse=True)
def no_job_outlives_its_test() -> Iterator[None]:
    yield
    Job.end_all()


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


@pytest.fixture(scope="session")
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    @lru_cache(maxsize=None)
    def of(flavour: str) -> List[bytes]:
        folder = tmp_path_factory.mktemp("undisturbed")
        done = heat(request.config.getoption("--cairn").resolve(), folder, flavour, programs(request.config), NODES, 100,
                    settings={"SCR_ENABLE": "0"}).wait()
        assert done.code == 0, done
        return fields(folder / "result")

    return of


@pytest.fixture
def mpirun(tmp_path: Path) -> str:
    """A launcher that starts one process."""
    path = tmp_path / "mpirun"
    path.write_text(LAUNCHER)
    path.chmod(0o755)
    return str(path)
