"""Programs that nobody here wrote, on simulated nodes under `cairn wrap`: not a part of make test (make test-apps)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "nodes"), str(ROOT / "python")]

from cluster import OPENMPI_SETTINGS, Cluster, Run, launcher_of  # noqa: E402

NODES = ["n0", "n1", "n2", "n3"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", required=True, help="the build folder")


@dataclass
class Outcome:
    """What came of a launch."""

    code: int
    output: str
    log: str

    @property
    def restarted_from(self) -> str:
        """The step that the program found as its newest."""
        found = re.search(r"the program finds step\.(\S+) as its newest", self.log)
        return found[1] if found else ""


class Job:
    """Launches of a program with the prefix directory as its working directory."""

    def __init__(self, build: Path, flavour: str) -> None:
        self.flavour = flavour
        self.cluster = Cluster(flavour, "cairn-apps")
        self.cairn = (build / "src" / "tools" / "cairn").resolve()

    @property
    def prefix(self) -> Path:
        return self.cluster.prefix

    def wrapped(self, pattern: str, program: Sequence[str]) -> List[str]:
        return [str(self.cairn), "wrap", "--checkpoint", pattern, "--", *program]

    def ranks(self, per_node: int, nodes: Sequence[str] = NODES) -> List[str]:
        return [node for node in nodes for _ in range(per_node)]

    def run(self, where: Sequence[str], command: Sequence[str], **settings: str) -> Outcome:
        outcome = Outcome(*self.cluster.run(where, command, settings, timeout_s=300))
        assert outcome.code == 0, f"{outcome.output}\n{outcome.log}"
        return outcome

    def kill_when(self, where: Sequence[str], command: Sequence[str], is_time: Optional[Callable[[str], bool]],
                  in_checkpoint: str = "", **settings: str) -> None:
        """Starts it, and kills all ranks of node n1 once it has printed something, if it is to, and each rank has files whose
        names match `in_checkpoint` in a checkpoint."""
        run: Run = self.cluster.start(where, command, settings)
        output = ""
        assert run.process.stdout
        for line in run.process.stdout if is_time else ():
            output += line
            if is_time and is_time(output):
                break
        else:
            assert is_time is None, f"it ended before: {output[-2000:]}\n{run.log.read_text()}"
        end = time.monotonic() + 60
        while in_checkpoint and not self._have_all(len(where), in_checkpoint):
            assert time.monotonic() < end, f"no checkpoint has {in_checkpoint}\n{run.log.read_text()}"
            time.sleep(0.01)
        run.kill_ranks("n1")
        for _ in range(100):
            if run.process.poll() is not None:
                break
            time.sleep(0.1)
        run.end()

    def _have_all(self, ranks: int, pattern: str) -> bool:
        """A rank has its record last."""
        records = self.cluster.root.glob("nodes/*/*/*/dataset.*/rank.*/record")
        try:
            return len({record.parent.name for record in records if any((record.parent / "files").rglob(pattern))}) == ranks
        except FileNotFoundError:  # an older checkpoint goes
            return False

    def lose(self, node: str, per_node: int) -> List[str]:
        self.cluster.lose_storage(node)
        return self.ranks(per_node, ["spare" if name == node else name for name in NODES])

    def reference(self, folder: Path, ranks: int, command: Sequence[str]) -> str:
        """The same program without Cairn, in another directory."""
        environment = {**os.environ, **OPENMPI_SETTINGS}
        launcher = launcher_of(self.flavour)
        assert launcher
        done = subprocess.run([launcher, "-np", str(ranks), *command], cwd=folder, env=environment, text=True,
                              capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done
        return done.stdout

    def redirected(self) -> Dict[str, Path]:
        """The files in all caches, by their names in the prefix directory."""
        found: Dict[str, Path] = {}
        for files in self.cluster.root.glob("nodes/*/*/cairn-wrap.*/files"):
            for path in files.rglob("*"):
                if path.is_file():
                    found[path.relative_to(files).as_posix()] = path
        return found


def make_job(pytestconfig: pytest.Config, flavour: str) -> Iterator[Job]:
    if launcher_of(flavour) is None:
        pytest.fail(f"{flavour} is not installed: make test-apps installs it")
    job = Job(Path(pytestconfig.getoption("--build")), flavour)
    with job.cluster:
        yield job


@pytest.fixture
def job(pytestconfig: pytest.Config) -> Iterator[Job]:
    """Of Open MPI, for which Debian builds its programs."""
    yield from make_job(pytestconfig, "openmpi")


@pytest.fixture(params=["openmpi", "mpich"])
def any_job(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Job]:
    yield from make_job(pytestconfig, request.param)


def require(program: str) -> str:
    """Its path. A missing program is a failure: these tests are there to run it."""
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"{program} is not installed: make test-apps installs it")
    return path
