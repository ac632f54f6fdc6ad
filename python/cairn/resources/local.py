"""Without a resource manager: this machine, or simulated nodes on it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Set, TextIO, Tuple

from cairn.account import size_text
from cairn.native import Trouble, WrongUsage
from cairn.on_node import started_at
from cairn.processes import ends_with_us, kill_recorded
from cairn.roles import Answer, Ask, Ended, RemoteExecution, ResourceManager, ask_here, per_node

MEMORY = Path("/dev/shm")
TEMPORARY = "cairn-nodes-"  # the prefix of the temporary directory of simulated nodes
OWNER = "owner"  # the file in it that its creator locks as long as it is alive
ON_NODE = Path(__file__).resolve().parents[1] / "on_node.py"


def run_all(commands: Mapping[str, "subprocess.Popen[str]"], timeout_s: float) -> Dict[str, Answer]:
    """Waits up to `timeout_s` for all of them together."""
    answers = {}
    end = time.monotonic() + timeout_s
    for node, process in commands.items():
        try:
            text, _ = process.communicate(timeout=max(0.0, end - time.monotonic()))
            answers[node] = Answer(process.returncode, text)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            answers[node] = Answer(124, f"has not answered for {timeout_s:g} s")
    return answers


def start_here(command: str, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Starts a shell command in a process group of its own."""
    return subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, env=dict(environment), start_new_session=True,
                            preexec_fn=ends_with_us())


def ask_shell(command: str, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    """The same for a short command."""
    return subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=dict(environment), text=True,
                            start_new_session=True)


class Here(RemoteExecution):
    """Commands on this node, the only one."""

    name = "the shell"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        return run_all({node: ask_shell(command, self._environment)
                        for node, command in commands.items()}, timeout_s)

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        return start_here(command, self._environment)


class ThisMachine(ResourceManager):
    """One node, which cannot be lost while this process is alive."""

    name = "local"

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return True

    def job_id(self) -> Optional[str]:
        return None

    def nodes(self) -> List[str]:
        return [self.environment.get("SCR_NODE_NAME") or socket.gethostname()]

    def seconds_left(self, now_s: float) -> Optional[float]:
        return None

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {}

    def remote(self) -> RemoteExecution:
        return Here(self.environment)

    def names_are_hosts(self) -> bool:
        return False


class NodesHere(ThisMachine):
    """Nodes of a run on this machine only, by their names (SCR_NODE_NAME): nodes that the user has simulated, or just the
    machine."""

    def __init__(self, environment: Mapping[str, str], names: Sequence[str], bases: Sequence[str]) -> None:
        """`bases`: the directories with the storage of the nodes; %n stands for the name of the node."""
        super().__init__(environment)
        self._names, self._bases = list(names), [base for base in bases if "%n" in base]

    def nodes(self) -> List[str]:
        return list(self._names)

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        """One text for all nodes, so that it is printed once."""
        gone = [node for node in nodes if self._bases and not any(
            os.path.isdir(base.replace("%n", node)) for base in self._bases)]
        return dict.fromkeys(gone, f"its storage is gone: {', '.join(self._bases)}")

    def remote(self) -> RemoteExecution:
        return _OnNodesHere(self.environment)


class _OnNodesHere(Here):
    """Commands that know the name of their node."""

    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        return run_all({node: ask_shell(command, self._of(node)) for node, command in commands.items()}, timeout_s)

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        return start_here(command, self._of(node))

    def _of(self, node: str) -> Dict[str, str]:
        return {**self._environment, "SCR_NODE_NAME": node}


class SimulatedNodes(ResourceManager):
    """Nodes and spares on this machine, without privileges. A node is a name (SCR_NODE_NAME of its ranks), a directory in
    memory (its storage), and its processes. The loss of a node is real: its processes get SIGKILL, and its directory is
    deleted. `down` does not report it, so cairn run must detect it. A context manager: leaving it ends all processes, and
    deletes the nodes unless a directory for them was given."""

    name = "local"

    def __init__(self, environment: Mapping[str, str], count: int, spares: int,
                 storage: Optional[Path] = None, ask: Ask = ask_here) -> None:
        super().__init__(environment, ask)
        self._count, self._names = count, [f"n{i}" for i in range(count + spares)]
        self._keep = storage is not None
        self._is_ours = True  # else their processes belong to another command or job
        self._root = storage.resolve() if storage else None
        self._folder = Path()
        self._lock: Optional[TextIO] = None
        self._groups: Dict[str, Set[Tuple[int, str]]] = {name: set() for name in self._names}

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return False  # only if the user asks for it

    @property
    def is_kept(self) -> bool:
        """True if the storage of the nodes stays after the end of the job."""
        return self._keep

    @classmethod
    def left_in(cls, environment: Mapping[str, str], storage: Path) -> "SimulatedNodes":
        """The nodes that an earlier job has left there, without the lost ones."""
        made = cls(environment, 0, 0, storage)
        made._is_ours = False
        made._names = sorted(path.name for path in (storage / "nodes").glob("*") if path.is_dir())
        made._groups = {name: set() for name in made._names}
        if not made._names:
            raise Trouble(f"{storage} holds no simulated nodes: name the directory that was given to cairn run --storage")
        return made

    def __enter__(self) -> "SimulatedNodes":
        try:
            if self._root is None:
                base = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
                made = Path(tempfile.mkdtemp(prefix=f".{TEMPORARY}", dir=base))
                self._lock = (made / OWNER).open("w", encoding="utf-8")
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                # Renamed when it is locked: other processes take an unlocked one for a leftover.
                self._folder = made.rename(made.with_name(made.name[1:]))
            else:
                self._folder = self._root
            if self._is_ours:
                shutil.rmtree(self._folder / "processes", ignore_errors=True)
                (self._folder / "processes").mkdir(parents=True)
                for name in self._names:
                    self.storage(name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Trouble(f"the simulated nodes cannot be created: {error.filename}: {error.strerror}; choose another "
                          "directory by --storage") from error
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            self._kill_processes(name)
        if self._lock:
            self._lock.close()
        if not self._keep:
            shutil.rmtree(self._folder, ignore_errors=True)

    def storage(self, node: str) -> Path:
        """The node-local storage; the node is on as long as it exists."""
        return self._folder / "nodes" / node

    def lose(self, node: str) -> str:
        """Kills the node: its processes, then its storage. Returns a description of what was lost."""
        killed = self._kill_processes(node)
        gone = self.storage(node).with_name(f"{node}.lost")
        with suppress(OSError):
            self.storage(node).rename(gone)  # at once, like a power failure
        killed += self._kill_processes(node)  # processes that were just being started
        held = sum(path.stat().st_size for path in gone.rglob("*") if path.is_file())
        shutil.rmtree(gone, ignore_errors=True)
        return f"{killed} of its ranks killed, {size_text(held)} of its storage deleted"

    def job_id(self) -> Optional[str]:
        return "local"

    def nodes(self) -> List[str]:
        return list(self._names)

    def wanted(self) -> Optional[int]:
        return self._count

    def seconds_left(self, now_s: float) -> Optional[float]:
        return None

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {}

    def remote(self) -> RemoteExecution:
        return OnSimulatedNodes(self)

    def names_are_hosts(self) -> bool:
        return False

    def settings(self) -> Dict[str, str]:
        """Settings for more ranks than cores on one machine, and the storage of each node."""
        storage = str(self.storage("%n"))
        return {"SCR_CACHE_BASE": storage, "SCR_CNTL_BASE": storage,
                "OMPI_MCA_rmaps_base_oversubscribe": "1",
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                "OMPI_MCA_hwloc_base_binding_policy": "none",
                "OMPI_MCA_mpi_yield_when_idle": "1",
                # Without /sys, MPICH's network layer prints a message to stdout, among the program's lines.
                "UCX_LOG_LEVEL": self.environment.get("UCX_LOG_LEVEL", "fatal")}

    def wrap(self, nodes: Sequence[str], ranks: Optional[int]) -> List[str]:
        if ranks is None:
            raise WrongUsage("simulated nodes need the number of ranks in the launcher's options "
                          "(-n, -np)")
        return [sys.executable, "-S", str(ON_NODE), str(self._folder),
                str(per_node(ranks, len(nodes))), ",".join(nodes)]

    def end_leftovers(self, run: Ended) -> str:
        for name in self._names:
            self._kill_ranks(name)
        return ""

    def environment_of(self, node: str) -> Dict[str, str]:
        """The environment of processes on a node."""
        return {**self.environment, "SCR_NODE_NAME": node}

    def is_on(self, node: str) -> bool:
        """True if the node has not been lost."""
        return self.storage(node).is_dir()

    def has_group(self, node: str, leader: int) -> None:
        """Records a process group on the node."""
        self._groups[node].add((leader, started_at(leader)))

    def _kill_processes(self, node: str) -> int:
        for leader, start in self._groups[node]:
            with suppress(ProcessLookupError, PermissionError):
                if start and started_at(leader) == start:
                    os.killpg(leader, signal.SIGKILL)
        self._groups[node].clear()
        return self._kill_ranks(node)

    def _kill_ranks(self, node: str) -> int:
        killed = 0
        for record in (self._folder / "processes").glob(f"{node}.*") if self._is_ours else ():
            with suppress(OSError, ValueError):
                pid, start = record.read_text().split()
                killed += kill_recorded(int(pid), start)
                record.unlink()
        return killed


def left_by_the_dead(bases: Sequence[Path]) -> List[Path]:
    """Directories of simulated nodes that a killed `cairn run` could not remove."""
    found = []
    for path in (path for base in bases for path in sorted(base.glob(TEMPORARY + "*"))):
        with suppress(OSError), (path / OWNER).open(encoding="utf-8") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append(path)
    return found


class OnSimulatedNodes(RemoteExecution):
    """Commands on simulated nodes that are on."""

    name = "the shell"

    def __init__(self, nodes: SimulatedNodes) -> None:
        self._nodes = nodes

    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        on = {node: command for node, command in commands.items() if self._nodes.is_on(node)}
        answers = run_all({node: ask_shell(command, self._nodes.environment_of(node))
                           for node, command in on.items()}, timeout_s)
        return {node: answers.get(node, Answer(255, "the node is off")) for node in commands}

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        process = start_here(command if self._nodes.is_on(node) else "exit 255",
                             self._nodes.environment_of(node))
        self._nodes.has_group(node, process.pid)
        return process
