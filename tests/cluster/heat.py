"""The heat solver as a job of `cairn run`, and what became of it."""

import filecmp
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from nodes import LOCAL

RANKS = 4


class Size(NamedTuple):
    """MiB of a rank, steps, and after how many of them there is a checkpoint."""

    mib: int
    steps: int
    every: int


SMALL, LARGE = Size(1, 400, 20), Size(64, 24, 4)  # both take some seconds
OURS = ("SCR_", "CAIRN_", "SLURM_", "SRUN_", "PBS_", "FLUX_", "LSB_", "OMPI_", "PMIX_", "HYDRA_")
# Slurm 22.05 leads a fence with data round a ring and one without up a tree. With both in one program Open MPI 4.1.4 now and
# then hears from a rank that is through MPI_Init before it has got ready itself, and dies or hangs: 4 of 420 launches. With
# rings alone none of 250. (With trees alone none comes through MPI_Init when the allocation has lost a node.)
MPI = {
    "SLURM_PMIX_FENCE": "ring",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "eth0", "UCX_NET_DEVICES": "eth0", "UCX_TLS": "tcp,self", "UCX_LOG_LEVEL": "fatal"}


class Heat:
    """One prefix directory, `folder`, and the runs in it."""

    def __init__(self, folder: Path, build: Path, size: Size = SMALL) -> None:
        self.folder, self.size = folder, size
        self._tools, self._examples = build / "src" / "tools", build / "examples"

    def program(self, steps: Optional[int] = None, flavour: str = "openmpi") -> List[str]:
        """The command line."""
        return [str(self._examples / flavour / "2_heat"), "--size", str(self.size.mib), "--every",
                str(self.size.every), "--steps", str(self.size.steps if steps is None else steps), "--output",
                str(self.folder / "result")]

    def environment(self, **settings: str) -> Dict[str, str]:
        """Nobody's settings but ours."""
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(OURS) or key == "SLURM_CONF"}
        kept["PATH"] = f"{self._tools}:{kept['PATH']}"
        return {**kept, **MPI, "TMPDIR": str(LOCAL), "OMPI_MCA_orte_tmpdir_base": str(LOCAL),
                "SCR_PREFIX": str(self.folder), "SCR_FLUSH": "0", "SCR_COPY_TYPE": "XOR",
                "SCR_SET_SIZE": "4", **settings}

    def log(self) -> List[Dict[str, Any]]:
        """What the library has printed so far."""
        path = self.folder / ".cairn" / "log.json"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def count(self, event: str) -> int:
        return sum(one.get("event") == event for one in self.log())

    def until_halted(self, event: str, count: int, fails: Callable[[], Optional[str]],
                     said: Callable[[], str], timeout_s: float = 40) -> None:
        """Waits until the log tells the event so many times; `fails` says why it never will, `said` what was said."""
        end = time.monotonic() + timeout_s
        while self.count(event) < count:
            failure = fails() or ("" if time.monotonic() < end else f"no {event} came\n{said()}")
            assert not failure, failure
            time.sleep(0.02)

    def runs(self) -> List[Dict[str, Any]]:
        """The account of the last `cairn run`."""
        return list(json.loads((self.folder / ".cairn" / "run.json").read_text())["runs"])

    def is_same_result(self, other: Path) -> bool:
        names = [f"field.{rank}" for rank in range(RANKS)]
        same, _, _ = filecmp.cmpfiles(self.folder / "result", other, names, shallow=False)
        return same == names


def undisturbed(heat: Heat) -> Path:
    """The result of a run on this machine without checkpoints or failures."""
    command = ["mpirun.openmpi", "--oversubscribe", "-n", str(RANKS), *heat.program()]
    settings = heat.environment(SCR_ENABLE="0", OMPI_MCA_btl="vader,self")
    done = subprocess.run(command, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    return heat.folder / "result"


def steps_of(event: str, output: str) -> List[int]:
    return [int(step) for step in re.findall(rf"^heat {event} step=(\d+)", output, re.MULTILINE)]


def is_gone_on(heat: Heat, output: str) -> bool:
    """The first run began anew, the second with a checkpoint, and came to the end."""
    starts, size = steps_of("start", output), heat.size
    return (len(starts) == 2 and starts[0] == 0 and 2 * size.every <= starts[1] < size.steps
            and steps_of("end", output) == [size.steps])


def recovery_text(name: str, killed_s: float, runs: List[Dict[str, Any]]) -> str:
    """How the time between a death and computing again was spent. Restarting is all that the program does until it
    computes, less the rebuilding."""
    died = next(run for run in runs if run["nodes_lost"])
    following = next(run for run in runs[died["number"]:] if run["computing_s"])
    noticed, begun = died["noticed_s"] - killed_s, following["begun_s"] - died["noticed_s"]
    rebuilt, total = following["rebuilt_s"], following["computing_s"] - killed_s
    return (f"{name}: noticed {noticed:.2f} s, relaunched {begun:.2f} s, rebuilt {rebuilt:.2f} s, restarted "
            f"{total - noticed - begun - rebuilt:.2f} s; in all {total:.2f} s")
