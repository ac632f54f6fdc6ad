"""The program under test (tests/mpi/checkpointer.cpp) on simulated nodes, and what lies there.

On a node: USER/cairn.JOB/dataset.ID.UUID/rank.R/ with the files `record` and `parity.1` and the
folder `files`, which holds the rank's files under their names in the prefix directory.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from itertools import cycle, product
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster import FOR_OWN_IDS, HIDE_DEATH, Cluster, alone_on_machine

NODES = ["n0", "n1", "n2", "n3"]
NEWEST = 3
WRONG_RANKS = 9
# Blocks are small, so that a file has many. What is tested is the cache, so nothing is copied to the
# prefix directory, or from there.
SETTINGS = {"SCR_SET_SIZE": "4", "SCR_CACHE_SIZE": "2", "CAIRN_BLOCK_SIZE": "16KB",
            "SCR_FLUSH": "0", "SCR_FETCH": "0"}
SCHEMES = {
    "SINGLE": {"SCR_COPY_TYPE": "SINGLE"},
    "PARTNER": {"SCR_COPY_TYPE": "PARTNER"},
    "XOR": {"SCR_COPY_TYPE": "XOR"},
    "RS": {"SCR_COPY_TYPE": "RS", "SCR_SET_FAILURES": "2"},
}
# What a checkpoint needs so that the work on it behind the program goes in several pieces: large files in the smallest
# blocks, and ranks that leave cores idle for so long that the work is not late on a busy machine either.
IN_PIECES = {"CAIRN_BLOCK_SIZE": "4KB"}
LARGE: Dict[str, object] = {"large_from": NEWEST + 1}
RESTS: Dict[str, object] = {"rests_ms": 3000}
REBUILDING = [scheme for scheme in SCHEMES if scheme != "SINGLE"]
# The spare that takes the place of each node.
SPARES = {"n0": "m0", "n1": "m1", "n2": "m2", "n3": "m3"}


def placement(nodes: Sequence[str]) -> List[str]:
    """The node of each rank: two consecutive ranks share one."""
    return [node for node in nodes for _ in range(2)]


FULL = placement(NODES)


def in_turn(*axes: Iterable[Any]) -> List[Tuple[Any, ...]]:
    """(scheme, value, ...) for each combination of the values. The schemes that rebuild take turns: seeds draw all
    combinations with them, here (test_sampled_*.py) and in the simulation."""
    return [(scheme, *values) for scheme, values in zip(cycle(REBUILDING), product(*axes))]


def with_spares(*lost: str) -> List[str]:
    """The full placement with spares where the lost nodes were."""
    return [SPARES[node] if node in lost else node for node in FULL]


def ranks_on(node: str) -> List[int]:
    """The ranks that the full placement puts on `node`."""
    return [rank for rank, name in enumerate(FULL) if name == node]


class Death(NamedTuple):
    """Where the striker was when it killed: in `call` of `step`, making the change `what` to
    `where`; or at a point ("point", "outside"), or by time ("time", and "inside" the call or
    "outside" if it was over)."""

    call: str
    step: int
    what: str
    where: str


@dataclass
class Outcome:
    """What came of one launch; `report` is empty when the program did not live to print it."""

    code: int
    log: str
    report: Dict[str, Any] = field(default_factory=dict)
    death: Optional[Death] = None

    def killed(self) -> Death:
        """The run was killed as it was asked to be; where."""
        assert self.death, f"the run ended before the kill: {self.report}\n{self.log}"
        assert self.code != 0 and not self.report, (self.code, self.death, self.report, self.log)
        return self.death

    def restarted_from(self) -> int:
        """The step it restarted from, -1 for none. Whatever else happened, the codes were the same
        on all ranks and no wrong byte was handed out."""
        assert self.code == 0 and self.report, self.log
        assert self.report["agreed"], self.report
        assert self.report["wrong"] == 0, f"wrong bytes were handed out: {self.report}"
        return self.report["restart"]

    def said(self, *words: str) -> bool:
        """Whether Cairn's lines in the log hold all these words."""
        lines = "\n".join(line for line in self.log.splitlines() if line.startswith("cairn: "))
        return all(re.search(rf"\b{re.escape(word)}\b", lines) for word in words)


class Job:
    """A simulated cluster and the launches on it, all with one redundancy scheme."""

    def __init__(self, build: Path, flavour: str, scheme: str = "XOR") -> None:
        self.cluster = Cluster(flavour, "cairn-faults")
        self.scheme = scheme
        self._program = str(self.program_of(build, flavour).resolve())
        self._cairn = str((build / "src" / "tools" / "cairn").resolve())
        self._note = self.cluster.root / "death"
        self.launcher_notices_deaths = True
        self.alone_on_machine: Optional[int] = None

    @staticmethod
    def program_of(build: Path, flavour: str) -> Path:
        """Where the build leaves the program."""
        return build / "tests" / "faults" / flavour / "checkpointer"

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.__exit__()

    def program_with_note(self) -> List[str]:
        """The beginning of a command line."""
        return [self._program, "--kill-note", str(self._note)]

    def launch(self, where: Sequence[str], settings: Optional[Mapping[str, str]] = None,
               **options: object) -> Outcome:
        """Runs the program: launch(FULL, checkpoints=2, kill_at="start", ...)."""
        self._note.unlink(missing_ok=True)
        command = self.program_with_note()
        for key, value in options.items():
            command += ["--" + key.replace("_", "-"), str(value)]
        if not self.launcher_notices_deaths:
            command = [*HIDE_DEATH, *command]
        own_ids: Mapping[str, str] = {}
        if self.alone_on_machine is not None:
            command = [*alone_on_machine(self.alone_on_machine), *command]
            own_ids = FOR_OWN_IDS
        code, output, log = self.cluster.run(
            where, command, {**SETTINGS, **SCHEMES[self.scheme], **own_ids, **(settings or {})})
        lines = [line for line in output.splitlines() if line.startswith("{")]
        return Outcome(code, log, json.loads(lines[0]) if lines else {}, self._death())

    def _death(self) -> Optional[Death]:
        if not self._note.exists():
            return None
        call, step, what, where = self._note.read_text().split(" ", 3)
        return Death(call, int(step), what, where)

    def copy(self, other: "Job") -> "Job":
        """Makes all nodes and the prefix directory as they are in `other`."""
        for folder in ("nodes", "prefix"):
            shutil.rmtree(self.cluster.root / folder)
            shutil.copytree(other.cluster.root / folder, self.cluster.root / folder, symlinks=True)
        self._become_the_original()
        return self

    def _become_the_original(self) -> None:
        """Else Cairn sees that the prefix directory is a copy, and keeps it from the caches."""
        notes = list(self.cluster.root.glob("nodes/*/*/cairn.*/prefix"))
        for note in notes:
            note.write_text(str(self.cluster.prefix))
        [prefix_id] = {note.parent.name.rsplit(".", 1)[1] for note in notes}
        subprocess.run([self._cairn, "index", "id", prefix_id, "-p", str(self.cluster.prefix)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def lose(self, *nodes: str) -> None:
        """Deletes what these nodes hold."""
        for node in nodes:
            self.cluster.lose_storage(node)

    def storage(self, node: str) -> Path:
        """The node's folder."""
        return self.cluster.storage(node)

    def rank_folder(self, rank: int, step: int = NEWEST) -> Path:
        """Where the full placement's rank keeps its part of the checkpoint of `step`. A cluster
        begins with dataset 1, step 1, so the two numbers are the same."""
        [folder] = self.storage(FULL[rank]).glob(f"*/cairn.*/dataset.{step}.*/rank.{rank}")
        return folder

    def file(self, kind: str, rank: int, step: int = NEWEST) -> Path:
        """A file of that rank's: "record", "parity.1", or one of its data files, "left", "right"."""
        folder = self.rank_folder(rank, step)
        if kind in ("record", "parity.1"):
            return folder / kind
        return folder / "files" / f"step.{step}" / kind / f"rank.{rank}"


# kept(flavour, scheme, write): the cluster that tests copy, to which `write` has added a run. Not to be changed.
Kept = Callable[[str, str, Callable[[Job], None]], Job]
