"""A series of steps that programs write and restore on a simulated cluster."""

import errno
import re
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster import HIDE_DEATH, Cluster

BAD_ARGUMENT, IO, NO_SPACE, CORRUPT, NOT_FOUND = 3, 5, 6, 7, 10
NEWEST = -1
TWO_NODES = ["n0", "n0", "n1", "n1"]


class Written(NamedTuple):
    """What one rank got for one step."""

    begin: int
    finished: int
    wait: int


class Death(NamedTuple):
    """SIGKILL as `rank` is about to make its change on disk with this number, from 0."""

    rank: int
    change: int
    of_all: bool


GOOD = Written(0, 1, 0)


class Steps:
    """The directory of the series, and runs of the test program on it."""

    def __init__(self, cluster: Cluster, build: Path, flavour: str, name: str = "series") -> None:
        self.cluster = cluster
        self.build = build
        self.flavour = flavour
        self.programs = build / "tests" / "rbio" / flavour
        self.interfere = build / "tests" / "rbio" / "interfere.so"
        self.directory = cluster.root / name
        self.log = ""

    def run(self, placement: Sequence[str], program: str, *arguments: object,
            settings: Optional[Mapping[str, str]] = None) -> str:
        """The output of a run that succeeds; `log` is what it wrote to stderr."""
        code, output, self.log = self.cluster.run(
            placement, [str(self.programs / program), *map(str, arguments)], settings)
        assert code == 0, f"exit code {code}\n{output}\n{self.log}"
        return output

    def write(self, placement: Sequence[str], options: str, steps: Sequence[int],
              settings: Optional[Mapping[str, str]] = None, command: str = "write") -> Dict[int, List[Written]]:
        """By step, what each rank got."""
        output = self.run(placement, "program", command, self.directory, options, *steps, settings=settings)
        found: Dict[int, Dict[int, Written]] = {step: {} for step in steps}
        for rank, step, *results in re.findall(r"^rank (\d+) step (\d+): begin (\d+) finished (\d+) wait (\d+)$",
                                               output, re.MULTILINE):
            found[int(step)][int(rank)] = Written(*map(int, results))
        assert all(sorted(of_step) == list(range(len(placement))) for of_step in found.values()), output
        return {step: [of_step[rank] for rank in sorted(of_step)] for step, of_step in found.items()}

    def write_with_failures(self, placement: Sequence[str], options: str,
                            failures: Sequence[Tuple[int, str]]) -> Dict[int, List[Written]]:
        """Writes steps 1, 2 and so on. In each even one the next of these calls of a rank fails with EIO."""
        settings = {f"FAIL_IN_STEP_{2 * (at + 1)}": f"{rank} {call} {errno.EIO}"
                    for at, (rank, call) in enumerate(failures)}
        return self.write(placement, options, range(1, 2 * len(failures) + 2), self.interference(0, **settings))

    def restore(self, placement: Sequence[str], *wanted: int, options: str = "") -> List[int]:
        """The steps that all ranks have restored one after the other, with the right bytes; NEWEST is the newest."""
        output = self.run(placement, "program", "restore", self.directory, options, *wanted)
        restored = [[int(step) for step in re.findall(rf"^rank {rank} restored (\d+): 0$", output, re.MULTILINE)]
                    for rank in range(len(placement))]
        assert all(len(of_rank) == len(wanted) and of_rank == restored[0] for of_rank in restored), \
            f"{output}\n{self.log}"
        return restored[0]

    def another(self, name: str) -> "Steps":
        """A series of its own on the same cluster."""
        return Steps(self.cluster, self.build, self.flavour, name)

    def is_killed(self, placement: Sequence[str], options: str, steps: Sequence[int], death: Death,
                  launcher_notices: bool = True) -> bool:
        """Whether a run ends while it writes the last of these steps: the rank may make fewer changes this time."""
        settings = self.interference(steps[-1], KILL_AT=f"{death.rank} {death.change}",
                                     **({"KILL_ALL": "1"} if death.of_all else {}))
        command = self.command("write", options, steps, launcher_notices)
        code, _, self.log = self.cluster.run(placement, command, settings)
        return code != 0

    def command(self, name: str, options: str, numbers: Sequence[int], launcher_notices: bool) -> List[str]:
        program = [str(self.programs / "program"), name, str(self.directory), options, *map(str, numbers)]
        return program if launcher_notices else [*HIDE_DEATH, *program]

    def interference(self, step: int, **settings: str) -> Dict[str, str]:
        """The environment in which the preloaded library acts between begin and wait of the step."""
        return {"LD_PRELOAD": str(self.interfere), "WATCH": str(self.directory), "ARM_STEP": str(step),
                "ARMED": "0", "FAIL": "", **settings}

    def interference_always(self, attempt: str, **settings: str) -> Dict[str, str]:
        """The environment in which the preloaded library acts on one attempt ("1-2": run 1, step 2 of it)."""
        return {"LD_PRELOAD": str(self.interfere), "WATCH": f"{self.directory}/.rbio/attempt.{attempt}.",
                "ARMED": "1", **settings}

    def parts(self, step: int) -> Dict[str, bytes]:
        """The files of a published step."""
        return {path.name: path.read_bytes() for path in (self.directory / f"step.{step}").iterdir()}

    def published(self) -> List[int]:
        """The steps whose directories have their final names."""
        return sorted(int(path.name[5:]) for path in self.directory.glob("step.*"))

    def has_all_markers(self, step: int, writers: int) -> bool:
        """The step is complete, and not published."""
        return any(all((attempt / f"done.{writer}").exists() for writer in range(writers))
                   for attempt in (self.directory / ".rbio").glob(f"attempt.*.{step}"))
