"""Programs that nobody here wrote, on simulated nodes under `cairn wrap`: not a part of make test (make test-apps)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "nodes"), str(ROOT / "python")]

from cluster import OPENMPI_SETTINGS, SETTINGS, Cluster, Run, launcher_of  # noqa: E402

NODES = ["n0", "n1", "n2", "n3"]
IN_CACHES = {"SCR_COPY_TYPE": "XOR", "SCR_SET_SIZE": "4", "SCR_FLUSH": "1000"}


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


@dataclass
class Restart:
    """The second run of a job that `cairn run` has kept alive."""

    log: str
    checkpoint: str


class KeptJob:
    """A program under `cairn run` on four simulated nodes and a spare. Its working directory is the prefix directory."""

    def __init__(self, build: Path, folder: Path, ranks: int) -> None:
        self.folder = folder
        self._cairn = str((build / "src" / "tools" / "cairn").resolve())
        self._mpirun = [launcher_of("openmpi") or "", "-np", str(ranks)]

    def wrapped(self, pattern: str, program: Sequence[str]) -> str:
        return shlex.join([self._cairn, "wrap", "--checkpoint", pattern, "--", *program])

    def lose(self, node: str, checkpoint: int, first: str, again: str) -> Restart:
        """Loses a node when so many checkpoints are made. The second run must begin from the newest one."""
        log = run_in(self.folder, [self._cairn, "run", "--nodes", "4", "--spares", "1", "--runs", "2",
                                   "--kill-node", f"{node}@checkpoint:{checkpoint}",
                                   "--run-cmd", first, "--restart-cmd", again, *self._mpirun])
        made = self._made_in_first_run()
        assert len(made) >= checkpoint, f"the first run ended before checkpoint {checkpoint}, and lost no node\n{log}"
        restored = re.search(r"the program finds (step\.\d+) as its newest checkpoint", log)
        assert restored and re.search(rf"rebuilt rank \d+ \({node}\)", log), log
        assert restored[1] == made[-1], (made, log)
        return Restart(log, restored[1])

    def _made_in_first_run(self) -> List[str]:
        made: List[str] = []
        runs = 0
        for entry in map(json.loads, (self.folder / ".cairn" / "log.json").read_text().splitlines()):
            event = entry.get("event")
            runs += event == "RUN_START"
            if runs == 1 and event == "CHECKPOINT_END":
                made.append(entry["name"])
        return made

    def reference(self, folder: Path, program: Sequence[str]) -> None:
        """The same program without Cairn, in another directory."""
        run_in(folder, [*self._mpirun, *program])


def run_in(folder: Path, command: Sequence[str]) -> str:
    """Its standard error output."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    done = subprocess.run(command, cwd=folder, env={**ours, **OPENMPI_SETTINGS, **IN_CACHES}, text=True, capture_output=True,
                          timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr}"
    return done.stderr


class Output:
    """What a launch has printed so far. Unread, it could fill the pipe and stop the program."""

    def __init__(self, run: Run) -> None:
        assert run.process.stdout
        self._log = run.log
        self._pipe = run.process.stdout.fileno()
        self._bytes = b""
        os.set_blocking(self._pipe, False)

    def read(self) -> None:
        with suppress(BlockingIOError):
            self._bytes += os.read(self._pipe, 1 << 20)

    def __str__(self) -> str:
        return f"{self._bytes[-2000:].decode(errors='replace')}\n{self._log.read_text(errors='replace')}"


class Job:
    """Launches of a program with the prefix directory as its working directory."""

    def __init__(self, build: Path, flavour: str) -> None:
        self.flavour = flavour
        self.build = build.resolve()
        self.cluster = Cluster(flavour, "cairn-apps")
        self.cairn = self.build / "src" / "tools" / "cairn"

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

    def kill_when(self, where: Sequence[str], command: Sequence[str], in_checkpoint: str, **settings: str) -> None:
        """Starts it, and kills all ranks of node n1 while they run, once each rank has files whose names match `in_checkpoint`
        in a checkpoint."""
        run: Run = self.cluster.start(where, command, settings)
        output = Output(run)
        end = time.monotonic() + 120
        while not self._have_all(len(where), in_checkpoint):
            output.read()
            assert run.process.poll() is None, f"it ended before each rank had {in_checkpoint} in a checkpoint\n{output}"
            assert time.monotonic() < end, f"no checkpoint has {in_checkpoint}\n{output}"
            time.sleep(0.01)
        on_node = [rank for rank, node in enumerate(where) if node == "n1"]
        assert run.kill_ranks("n1") == on_node, f"ranks of n1 had ended\n{output}"
        for _ in range(100):
            if run.process.poll() is not None:
                break
            output.read()
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
