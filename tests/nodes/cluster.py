"""Nodes simulated on one machine without privileges, and MPI programs run on them.

A node is a name (SCR_NODE_NAME of its ranks) and a folder in memory (its node-local storage).
Losing one is real: its processes get SIGKILL and its folder is deleted. Used by tests/faults and
tests/api, which choose where each rank runs and when which process dies; `cairn run` decides that itself.
"""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from cairn.processes import kill_recorded

MEMORY = Path("/dev/shm")
ON_NODE = Path(__file__).resolve().parent / "on_node.sh"
LAUNCHERS = {
    "openmpi": ("mpirun.openmpi", "mpirun"),
    "mpich": ("mpiexec.mpich", "mpiexec.hydra"),
    "system": ("mpirun", "mpiexec"),
}
# More ranks than cores, on one machine, by root too in containers.
OPENMPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # All ranks share the machine's memory; looking for networks takes a fifth of a short run.
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^tcp,openib,ofi,usnic",
}
# Where there is no /sys, as in a chroot, its network layer says so on stdout, amid the program's lines.
MPICH_SETTINGS = {"UCX_LOG_LEVEL": "fatal"}
SETTINGS = ("SCR_", "CAIRN_")


def launcher_of(flavour: str) -> Optional[str]:
    """The path of an MPI's launcher ("openmpi", "mpich", "system"), None if it is not installed."""
    return next(filter(None, map(shutil.which, LAUNCHERS[flavour])), None)


def tree_bytes(folder: Path) -> int:
    """The bytes of all files below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def stop_process(*pids: int, patience_s: float = 60) -> None:
    """SIGSTOP; returns when no thread of these processes runs, or is in a call of the system that has not ended."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + patience_s
    for pid in pids:
        while not is_stopped(pid):
            assert time.monotonic() < end, f"process {pid} does not stop"
            time.sleep(0.001)


def is_stopped(pid: int) -> bool:
    """All threads that it has."""
    states = []
    for status in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            states.append(status.read_text().rsplit(")", 1)[1].split()[0])
    return set(states) == {"T"}

# The beginning of a command whose death the launcher does not notice: the shell stays in the place of its dead child, longer
# than any test waits, until the launcher ends it with the job.
HIDE_DEATH = ["sh", "-c", '"$@"; code=$?; [ $code -le 128 ] || exec sleep 60; exit $code', "sh"]
OWN_IDS = ["unshare", "--pid", "--fork", "--kill-child"]
# Else the MPIs look for the memory of such a rank by its process id, or use sockets, and themselves notice its death.
FOR_OWN_IDS = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "UCX_TLS": "sysv,self"}


def alone_on_machine(rank: int) -> List[str]:
    """The beginning of a command in which the process ids of this rank are valid for no other, as on another machine."""
    return ["sh", "-c", f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" != {rank} ] || exec {shlex.join(OWN_IDS)} "$@"; exec "$@"',
            "sh"]


def why_no_other_machine() -> str:
    """Why a rank cannot be as on another machine here; empty if it can."""
    if subprocess.run([*OWN_IDS, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return "the system allows no namespace of process ids"
    if not subprocess.run(["hostname", "-I"], stdout=subprocess.PIPE, check=True).stdout.strip():
        return "this machine has no address but that of loopback"
    return ""


class Run:
    """One launch of a program; `process.stdout` is what its ranks print, `log` their stderr."""

    def __init__(self, process: "subprocess.Popen[str]", placement: Sequence[str], pids: Path,
                 log: Path) -> None:
        self.process = process
        self.placement = list(placement)
        self.log = log
        self._pids = pids

    def kill_ranks(self, node: Optional[str] = None) -> List[int]:
        """SIGKILL to the ranks on `node` (to all when None); those that it reached."""
        return [rank for rank, name in enumerate(self.placement)
                if node in (None, name) and self._kill_rank(rank)]

    def _kill_rank(self, rank: int) -> bool:
        words = self._process_of(rank)
        if not words:  # the rank is only starting
            return False
        pid, start = words
        return kill_recorded(int(pid), start)

    def _process_of(self, rank: int) -> List[str]:
        record = self._pids / str(rank)
        return record.read_text().split() if record.exists() else []

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """All ranks, which must run, are stopped meanwhile, and none of them is in a call of the system."""
        pids = [int(self._process_of(rank)[0]) for rank in range(len(self.placement))]
        try:
            stop_process(*pids)
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def end(self, patience_s: float = 5) -> None:
        """Ends what still runs: the launcher is asked, then it and its ranks are killed."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.kill_ranks()
        if self.process.stdout:
            self.process.stdout.close()


class Cluster:
    """Simulated nodes under one new folder in memory, and the runs started on them.

    A context manager: leaving it ends every run and deletes the folder.
    """

    def __init__(self, flavour: str, name: str = "cairn") -> None:
        launcher = launcher_of(flavour)
        if launcher is None:
            raise FileNotFoundError(f"no launcher of {flavour}: {' or '.join(LAUNCHERS[flavour])}")
        self._launcher = launcher
        self._runs: List[Run] = []
        self.root = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=MEMORY))
        self.prefix = self.root / "prefix"
        for folder in (self.prefix, self.root / "nodes", self.root / "tmp"):
            folder.mkdir()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.end()
        shutil.rmtree(self.root, ignore_errors=True)

    def storage(self, node: str) -> Path:
        """The node-local storage of `node`."""
        return self.root / "nodes" / node

    def start(self, placement: Sequence[str], program: Sequence[str],
              settings: Optional[Mapping[str, str]] = None) -> Run:
        """Starts `program` with rank i on node placement[i]."""
        for node in set(placement):
            self.storage(node).mkdir(exist_ok=True)
        number = len(self._runs)
        pids = self.root / f"pids.{number}"
        pids.mkdir()
        log = self.root / f"log.{number}"
        environment = self.environment(settings or {})
        environment.update(CLUSTER_PLACEMENT=",".join(placement), CLUSTER_PIDS=str(pids))
        command = [self._launcher, "-np", str(len(placement)), str(ON_NODE), *program]
        with log.open("w") as errors:
            process = subprocess.Popen(command, env=environment, cwd=self.prefix,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=errors, text=True, start_new_session=True)
        self._runs.append(Run(process, placement, pids, log))
        return self._runs[-1]

    def run(self, placement: Sequence[str], program: Sequence[str],
            settings: Optional[Mapping[str, str]] = None,
            timeout_s: float = 60) -> Tuple[int, str, str]:
        """Starts a program and waits for it: exit code, output, log."""
        run = self.start(placement, program, settings)
        try:
            output, _ = run.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            run.end()
            raise
        return run.process.returncode, output, run.log.read_text(errors="replace")

    def lose_storage(self, node: str) -> int:
        """Deletes all that the node holds; the bytes lost."""
        lost = tree_bytes(self.storage(node))
        with suppress(FileNotFoundError):
            shutil.rmtree(self.storage(node))
        return lost

    def environment(self, settings: Mapping[str, str]) -> Dict[str, str]:
        """Of a process of the job: ours, less any Cairn settings of the user's, plus the cluster's and these."""
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(SETTINGS)}
        environment.update(OPENMPI_SETTINGS)
        environment.update(MPICH_SETTINGS)
        environment.update(
            TMPDIR=str(self.root / "tmp"),
            OMPI_MCA_btl_vader_backing_directory=str(self.root / "tmp"),
            SCR_PREFIX=str(self.prefix),
            SCR_JOB_ID="simulated",
            SCR_CACHE_BASE=str(self.storage("%n")),
            SCR_CNTL_BASE=str(self.storage("%n")),
            SCR_CACHE_BYPASS="0",
        )
        environment.update(settings)
        return environment
