"""Fixtures: the MPIs that were built, prefix directories of a real SCR, and a program that makes the calls a test names."""

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
for folder in ("python", "tests/nodes"):
    sys.path.insert(0, str(REPOSITORY / folder))

from cluster import LAUNCHERS, Cluster  # noqa: E402

GOLDEN = REPOSITORY / "tests" / "golden" / "scr3"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, default=Path("build"), help="the build directory")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" not in metafunc.fixturenames:
        return
    build = metafunc.config.getoption("build")
    flavours = [name for name in LAUNCHERS if (build / "tests" / "from_scr" / name / "calls").exists()]
    if not flavours:
        pytest.exit(f"no calls program in {build}: build first", 2)
    if metafunc.definition.get_closest_marker("each_mpi") is None:
        flavours = flavours[:1]
    metafunc.parametrize("flavour", flavours)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each_mpi: run under each MPI, not the first only")


class Call(NamedTuple):
    """One call of one rank."""

    name: str
    code: int
    answer: str


class Outcome:
    """What the ranks of one run have answered."""

    def __init__(self, out: Path, ranks: int, code: int, log: str) -> None:
        self.code = code
        self.log = log
        self._out = out
        self._calls: List[List[Call]] = []
        for rank in range(ranks):
            lines = (out / f"calls.{rank}").read_text().splitlines() if (out / f"calls.{rank}").exists() else []
            self._calls.append([Call(*self._parts(line)) for line in lines])

    @staticmethod
    def _parts(line: str) -> Any:
        name, code, answer = (line + "  ").split(" ", 2)
        return name, int(code), answer.strip()

    def of(self, call: str, rank: int = 0) -> List[Call]:
        """All calls of this name that a rank made."""
        return [one for one in self._calls[rank] if one.name == call]

    def answer(self, call: str, rank: int = 0) -> str:
        """Of the only call of this name."""
        [one] = self.of(call, rank)
        return one.answer

    def codes(self, call: str) -> List[int]:
        """Of all calls of this name, rank by rank."""
        return [one.code for rank in range(len(self._calls)) for one in self.of(call, rank)]

    def checksums(self) -> Dict[str, str]:
        """SHA-256 of each copy that `read` made: by RANK.NAME, with _ for each / in it."""
        return {path.name[len("read."):]: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in self._out.glob("read.*")}


class Job:
    """A prefix directory on simulated nodes, two ranks on each."""

    def __init__(self, cluster: Cluster, build: Path, flavour: str) -> None:
        self.cluster = cluster
        self.prefix = cluster.prefix
        self.cairn_path = build / "src" / "tools" / "cairn"
        self._program = str(build / "tests" / "from_scr" / flavour / "calls")
        self._runs = 0

    def unpack(self, name: str) -> Dict[str, str]:
        """A directory that a real SCR wrote becomes the prefix directory. The checksums of its files."""
        with tarfile.open(GOLDEN / f"{name}.tar.gz") as archive:
            archive.extractall(self.cluster.root)
        self.prefix.rmdir()
        (self.cluster.root / name).rename(self.prefix)
        lines = (GOLDEN / f"{name}.sha256").read_text().splitlines()
        return {path[len("./"):]: checksum for checksum, path in (line.split("  ") for line in lines)}

    def run(self, ranks: int, calls: Sequence[str], settings: Optional[Mapping[str, str]] = None,
            nodes: int = 0) -> Outcome:
        """Makes these calls on all ranks (see calls.c), on as many nodes, or with two ranks on each."""
        self._runs += 1
        out = self.cluster.root / f"out.{self._runs}"
        out.mkdir()
        placement = [f"n{rank % nodes if nodes else rank // 2}" for rank in range(ranks)]
        code, output, log = self.cluster.run(placement, [self._program, *calls],
                                             {"OUT": str(out), **(settings or {})})
        return Outcome(out, ranks, code, output + log)

    def cairn(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command, in the environment of the job."""
        return subprocess.run([str(self.cairn_path), *words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False, cwd=self.prefix,
                              env=self.cluster.environment({}))


@pytest.fixture
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("build").resolve()


@pytest.fixture
def job(flavour: str, build: Path) -> Iterator[Job]:
    with Cluster(flavour, "cairn-from-scr") as cluster:
        yield Job(cluster, build, flavour)
