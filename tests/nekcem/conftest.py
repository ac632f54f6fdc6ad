"""What CMake gives these tests: the build directory, and the MPIs that it is built for."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List, NamedTuple, Optional

import pytest

for directory in ("python", "tests/nodes"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / directory))

from cluster import MPICH_SETTINGS, OPENMPI_SETTINGS, launcher_of  # noqa: E402

PATIENCE_S = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, required=True, help="the build directory")
    parser.addoption("--flavours", required=True, help="the MPIs, with commas between")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" in metafunc.fixturenames:
        metafunc.parametrize("flavour", metafunc.config.getoption("--flavours").split(","))


class Result(NamedTuple):
    """What a run of the solver has printed."""
    status: int
    output: str
    log: str

    def _value(self, pattern: str) -> str:
        found = re.search(pattern, self.output, re.MULTILINE)
        assert found, f"no {pattern} in:\n{self.output}\n{self.log}"
        return found.group(1)

    @property
    def digest(self) -> str:
        return self._value(r"^digest ([0-9a-f]{16})$")

    @property
    def error(self) -> float:
        return float(self._value(r"error (\S+) \(L2\)"))

    @property
    def largest_error(self) -> float:
        return float(self._value(r"(\S+) \(largest\)"))

    @property
    def energy(self) -> float:
        return float(self._value(r"energy (\S+),"))

    @property
    def restored_step(self) -> Optional[int]:
        found = re.search(r"^restored step (\d+)$", self.output, re.MULTILINE)
        return int(found.group(1)) if found else None

    def seconds(self, phase: str) -> List[float]:
        """Least, mean and most over the ranks."""
        return [float(word) for word in self._value(rf"^{phase} +(.*)$").split()]


class Solver:
    """nekcem of one MPI, in a directory of its own."""

    def __init__(self, build: Path, flavour: str, directory: Path) -> None:
        self.program = str(build / "examples" / flavour / "nekcem")
        self.directory = directory
        self._launcher = launcher_of(flavour)
        self._environment = {**os.environ, **OPENMPI_SETTINGS, **MPICH_SETTINGS}

    def start(self, ranks: int, *options: object) -> "subprocess.Popen[str]":
        return subprocess.Popen([self._launcher, "-np", str(ranks), self.program, *map(str, options)],
                                cwd=self.directory, env=self._environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, ranks: int, *options: object) -> Result:
        process = self.start(ranks, *options)
        output, log = process.communicate(timeout=PATIENCE_S)
        return Result(process.returncode, output, log)

    def run_well(self, ranks: int, *options: object) -> Result:
        result = self.run(ranks, *options)
        assert result.status == 0, f"{result.output}\n{result.log}"
        return result


@pytest.fixture
def solver(request: pytest.FixtureRequest, flavour: str, tmp_path: Path) -> Solver:
    return Solver(request.config.getoption("--build").resolve(), flavour, tmp_path)
