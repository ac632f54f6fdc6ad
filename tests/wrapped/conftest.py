"""Jobs of a program that knows nothing of Cairn, on simulated nodes."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "nodes"), str(ROOT / "python")]

from cluster import Cluster, launcher_of  # noqa: E402

FLAVOURS = ["openmpi", "mpich"]
NODES = ["n0", "n1", "n2", "n3"]
PATTERN = r"out/(state|field)\.(?<step>\d+)\.\d+$"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", required=True, help="the build folder")
    parser.addoption("--all", action="store_true", help="every test, and every row of the fault table, with every MPI")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "any_mpi: run with one MPI only, without --all: the test is not about what MPI does")


@dataclass
class Outcome:
    """What came of one launch."""

    code: int
    output: str
    log: str

    @property
    def started_from(self) -> Optional[int]:
        """The step; None if the program did not come so far."""
        found = re.search(r"started from (\d+)", self.output)
        return int(found[1]) if found else None


class Job:
    """Launches of the program on one cluster."""

    def __init__(self, build: Path, flavour: str) -> None:
        self.cluster = Cluster(flavour, "cairn-wrapped")
        self.flavour = flavour
        self.library = (build / "lib" / "libcairn-interpose.so").resolve()
        self.programs = (build / "tests" / "wrapped" / flavour).resolve()
        self.program = self.programs / "program"
        self.surviving_mpi = (build / "tests" / "wrapped" / "surviving_mpi.so").resolve()
        self.other_library = (build / "tests" / "interpose" / "other_library.so").resolve()
        self.cairn = (build / "src" / "tools" / "cairn").resolve()

    def run(self, steps: int, *options: str, nodes: Sequence[str] = NODES, preload: Sequence[str] = (),
            preload_before: Sequence[str] = (), **settings: str) -> Outcome:
        """Runs it, a rank on each of these nodes, until it has written so many steps."""
        return self.run_other([str(self.program), str(steps), *options], PATTERN, nodes, preload, preload_before,
                              **settings)

    def run_other(self, program: Sequence[str], pattern: str, nodes: Sequence[str] = NODES, preload: Sequence[str] = (),
                  preload_before: Sequence[str] = (), **settings: str) -> Outcome:
        """Runs another program in the same way."""
        libraries = ":".join([*preload_before, str(self.library), *preload])
        wrap: Dict[str, str] = {
            "CAIRN_WRAP_PREFIX": str(self.cluster.prefix), "CAIRN_WRAP_PATTERNS": pattern,
            "CAIRN_WRAP_CACHE": str(self.cluster.storage("%n") / "wrapped"), "CAIRN_WRAP_FREE_PERCENT": "0"}
        return self._checked(nodes, ["env", f"LD_PRELOAD={libraries}", *program], {**wrap, **settings})

    def run_beside_a_death(self, steps: int, *options: str, **settings: str) -> Outcome:
        """As run(), but the launcher does not see that a rank has died, as a shell has started it, which lives on."""
        shell = ["sh", "-c", '"$@"; sleep 4', "sh"]
        return self.run_other([*shell, str(self.program), str(steps), *options], PATTERN, preload=[str(self.surviving_mpi)], **settings)

    def run_by_command(self, steps: int, *options: str, nodes: Sequence[str] = NODES) -> Outcome:
        """The same under `cairn wrap`, which each rank calls."""
        command = [str(self.cairn), "wrap", "--checkpoint", PATTERN, "--", str(self.program), str(steps), *options]
        return self._checked(nodes, command, {})

    def _checked(self, nodes: Sequence[str], command: Sequence[str], settings: Dict[str, str]) -> Outcome:
        outcome = Outcome(*self.cluster.run(nodes, command, settings))
        assert "WRONG BYTES" not in outcome.output, outcome
        assert "CANNOT" not in outcome.output, outcome
        return outcome

    def lose(self, node: str, nodes: Sequence[str] = NODES) -> List[str]:
        """A node dies with its storage; where the ranks run next."""
        self.cluster.lose_storage(node)
        return ["spare" if name == node else name for name in nodes]

    def has_unfinished_job(self, node: str) -> bool:
        """Whether the program has ended there without MPI_Finalize."""
        return (self.cluster.storage(node) / "wrapped" / "job.unfinished").exists()

    def has_had_job(self, node: str) -> bool:
        """Whether a job of Cairn was started there for the program."""
        return (self.cluster.storage(node) / "wrapped" / "job").exists()

    def cached(self, node: str) -> List[str]:
        """The redirected files on a node."""
        files = self.cluster.storage(node) / "wrapped" / "files"
        return sorted(path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file())

    def plain(self) -> List[str]:
        """What lies in the prefix directory under the program's names."""
        return sorted(path.name for path in (self.cluster.prefix / "out").glob("*"))


def make_job(pytestconfig: pytest.Config, flavour: str) -> Iterator[Job]:
    if launcher_of(flavour) is None:
        pytest.skip(f"{flavour} is not installed")
    made = Job(Path(pytestconfig.getoption("--build")), flavour)
    with made.cluster:
        yield made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per MPI. Of two that are installed the last one, MPICH, starts processes fastest."""
    if "job" not in metafunc.fixturenames:
        return
    installed = [flavour for flavour in FLAVOURS if launcher_of(flavour)]
    is_for_one = metafunc.definition.get_closest_marker("any_mpi") and not metafunc.config.getoption("--all")
    metafunc.parametrize("job", installed[-1:] if is_for_one and installed else FLAVOURS, indirect=True)


@pytest.fixture
def job(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Job]:
    yield from make_job(pytestconfig, request.param)
