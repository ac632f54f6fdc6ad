"""A real job: the heat solver under `cairn run`, on simulated nodes of this machine."""

import os
import pty
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

# A launcher that starts one process and no more: does for what concerns the loop alone.
LAUNCHER = """#!/bin/sh
[ "$1" = --version ] && exit
shift 2
exec "$@"
"""
LAUNCHERS = {"openmpi": ("mpirun.openmpi", "mpirun"), "mpich": ("mpiexec.mpich", "mpiexec.hydra"),
             "system": ("mpirun", "mpiexec")}
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
HEAT = ["--size", "1", "--every", "4"]
NODES = ["--nodes", "4", "--spares", "1"]
SETTINGS = {"SCR_SET_SIZE": "4", "SCR_FLUSH": "0", "SCR_COPY_TYPE": "XOR"}


class Outcome(NamedTuple):
    """What came of it; `printed` is what cairn run says, `output` what the program prints."""

    code: int
    output: str
    printed: str

    def steps(self, event: str) -> List[int]:
        return [int(step) for step in re.findall(rf"^heat {event} step=(\d+)", self.output, re.MULTILINE)]


def launcher_of(flavour: str) -> str:
    import shutil
    return next(name for name in LAUNCHERS[flavour] if shutil.which(name))


def environment_of(settings: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """Ours, less any setting of the user's, and no resource manager."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("SCR_", "CAIRN_", "SLURM_", "FLUX_", "PBS_", "LSB_"))}
    return {**kept, **ROOT, **SETTINGS, **(settings or {})}


def said_on_terminal(command: Sequence[str], environment: Dict[str, str]) -> str:
    """All that a command that ends well shows there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, suppress(OSError):  # the end, to a terminal, is an error
        while True:
            said += terminal.read(65536)
    assert process.wait(60) == 0, said
    return said.decode()


class Job:
    """One `cairn run` that has been started."""

    _all: "List[Job]" = []

    def __init__(self, cairn: Path, folder: Path, options: Sequence[str], command: Sequence[str],
                 settings: Optional[Dict[str, str]] = None, stdin: int = subprocess.DEVNULL) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [str(cairn), "run", *options, *command], cwd=folder, env=environment_of(settings), text=True,
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        Job._all.append(self)

    @classmethod
    def end_all(cls) -> None:
        """Those that a failed test has left would take the processors from the tests after it."""
        for job in cls._all:
            if job._process.poll() is None:
                job._end()
        cls._all.clear()

    def _end(self) -> Tuple[str, str]:
        self._process.send_signal(signal.SIGHUP)  # so that it ends what it has started
        return self._process.communicate(timeout=20)

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, timeout_s: float = 60) -> Outcome:
        try:
            output, printed = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            output, printed = self._end()
            raise AssertionError(f"not done in {timeout_s} s\n{output}\n{printed}") from None
        return Outcome(self._process.returncode, output, printed)

    def until(self, happens: Callable[[], bool], timeout_s: float = 20) -> None:
        """Waits for it while the job lives."""
        end = time.monotonic() + timeout_s
        while not happens():
            assert time.monotonic() < end and self._process.poll() is None
            time.sleep(0.02)

    def until_halted(self, event: str, count: int = 1, timeout_s: float = 30) -> None:
        """Waits until the job's log tells an event so many times."""
        log = self.folder / ".cairn" / "log.json"
        end = time.monotonic() + timeout_s
        while not log.exists() or log.read_text().count(f'"{event}"') < count:
            assert time.monotonic() < end and self._process.poll() is None, f"no {event} came"
            time.sleep(0.02)


def heat(cairn: Path, folder: Path, flavour: str, programs: Dict[str, str], options: List[str], steps: int,
         output: str = "result", settings: "Dict[str, str] | None" = None, ranks: int = 4) -> Job:
    command = [launcher_of(flavour), "-n", str(ranks), programs[flavour], *HEAT, "--steps", str(steps),
               "--output", str(folder / output)]
    return Job(cairn, folder, options, command, settings)


def fields(folder: Path) -> List[bytes]:
    """What the four ranks of the heat solver have computed."""
    return [(folder / f"field.{rank}").read_bytes() for rank in range(4)]


def shell_job(cairn: Path, folder: Path, mpirun: str, script: str, *options: str,
              settings: Optional[Dict[str, str]] = None) -> Outcome:
    return Job(cairn, folder, ["--nodes", "2", *options], [mpirun, "-n", "2", "sh", "-c", script], settings).wait()
