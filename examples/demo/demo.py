#!/usr/bin/env python3
"""The demo: a node dies in the middle of a run, and the result is the same to the last bit.

Runs the heat solver (examples/2_heat.c) under `cairn run` on simulated nodes twice: first without checkpoints and
without a loss, then with checkpoints, and with one node killed and its storage deleted. The exit code is 0 only if
the job continued from a checkpoint on a spare, and both results are identical.
"""

import argparse
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Tuple

MEMORY = Path("/dev/shm")
MIB = 1 << 20
LAUNCHERS = {"openmpi": ("mpirun.openmpi", "mpirun"), "mpich": ("mpiexec.mpich", "mpiexec.hydra"),
             "system": ("mpirun", "mpiexec")}
NODES, RANKS, VICTIM = 4, 8, "n2"
STEPS, EVERY, KILL_AFTER_CHECKPOINTS = 24, 4, 2
# The prefix directory is in memory here as well, where a second copy of it all would not fit.
SETTINGS = {"SCR_COPY_TYPE": "XOR", "SCR_SET_SIZE": "4", "SCR_FLUSH": "0"}

Event = Tuple[str, Dict[str, str]]


class Failure(Exception):
    """Why the demo failed."""


def say(text: str) -> None:
    """Prints one line of the demo."""
    print(text, flush=True)


def find_program(build: Path) -> Tuple[str, str, Path]:
    """The MPI to use, Open MPI first, its launcher, and the solver built with it."""
    for flavour, names in LAUNCHERS.items():
        program = build / "examples" / flavour / "2_heat"
        launcher = next(filter(None, map(shutil.which, names)), None)
        if program.exists() and launcher:
            return flavour, launcher, program.resolve()
    raise Failure(f"no {build}/examples/*/2_heat with a launcher for its MPI: build first")


def require_memory(size_mib: int) -> None:
    """Fails if memory is short: files need up to 6 times the state, processes twice the state."""
    files = RANKS * size_mib * 6
    free = shutil.disk_usage(MEMORY).free // MIB
    meminfo = Path("/proc/meminfo").read_text()
    available = int(re.search(r"MemAvailable:\s+(\d+)", meminfo)[1]) // 1024
    if free < files or available < files + RANKS * size_mib * 2:
        raise Failure(f"{RANKS} ranks of {size_mib} MiB need {files} MiB free in {MEMORY} and "
                      f"{files + RANKS * size_mib * 2} MiB of memory; there are {free} and "
                      f"{available}. Choose a smaller --size.")


class Run:
    """One `cairn run`, and what it and the solver print."""

    def __init__(self, command: Sequence[str], directory: Path, settings: Dict[str, str],
                 in_full: bool = True) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCR_", "CAIRN_"))}
        self._log: List[str] = []
        self._in_full = in_full
        self._process = subprocess.Popen(
            command, cwd=directory, env={**kept, "SCR_PREFIX": str(directory), **settings}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def events(self) -> Iterator[Event]:
        """The events of the solver with their values. Prints the lines of `cairn run`."""
        for line in self._process.stdout:
            self._log.append(line)
            words = line.split()
            if line.startswith("cairn run: ") and self._in_full:
                say("   " + line.rstrip())
            elif len(words) > 1 and words[0] == "heat":
                yield words[1], dict(word.split("=", 1) for word in words[2:])
        if self._process.wait() != 0:
            raise Failure("the run failed:\n" + "".join(self._log))

    def end(self) -> None:
        """Ends the run, if it is still alive, with all its processes."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGHUP)  # `cairn run` then ends at once
            self._process.wait(30)
        self._process.stdout.close()


def print_checkpoint(values: Dict[str, str]) -> None:
    """Prints how much was written, and how fast."""
    if values["ok"] != "1":
        raise Failure(f"the checkpoint of step {values['step']} failed")
    mib, write, protect = (float(values[key]) for key in ("mib", "write_s", "protect_s"))
    speed = mib / 1024 / max(write + protect, 1e-3)
    say(f"   step {values['step']:>3}: {mib:.0f} MiB written in {write:.2f} s, "
        f"protected in {protect:.2f} s ({speed:.2f} GiB/s)")


def follow(run: Run) -> List[Event]:
    """Prints what happens until the end of the run. Returns its events."""
    events: List[Event] = []
    try:
        for event, values in run.events():
            events.append((event, values))
            if event == "checkpoint":
                print_checkpoint(values)
            elif event == "start" and values["restarted"] == "1":
                say(f"   rebuilt in {float(values['init_s']):.2f} s, read back in "
                    f"{float(values['load_s']):.2f} s; continuing from step {values['step']}")
    finally:
        run.end()
    if not events or events[-1][0] != "end" or events[-1][1]["ok"] != "1":
        raise Failure("the solver did not reach its end")
    return events


def judge(events: List[Event]) -> None:
    """Fails unless the job died once and continued from a checkpoint."""
    starts = [values for event, values in events if event == "start"]
    if len(starts) != 2 or starts[1]["restarted"] != "1" or int(starts[1]["step"]) < EVERY * KILL_AFTER_CHECKPOINTS:
        raise Failure(f"no restart from step {EVERY * KILL_AFTER_CHECKPOINTS}: {starts}")


def compare(root: Path, size_mib: int) -> None:
    """Fails unless the final fields of both runs are identical."""
    names = [f"field.{rank}" for rank in range(RANKS)]
    same, different, missing = filecmp.cmpfiles(root / "reference", root / "result", names, shallow=False)
    say(f"3. Final field, {RANKS * size_mib} MiB compared byte by byte: "
        f"identical: {'yes' if len(same) == RANKS else 'NO'}")
    if len(same) != RANKS:
        raise Failure(f"different: {different}, missing: {missing}")


def demo(build: Path, size_mib: int, root: Path) -> None:
    """Both runs and the comparison."""
    flavour, launcher, program = find_program(build)
    require_memory(size_mib)
    run = [str((build / "src" / "tools" / "cairn").resolve()), "run", "--nodes", str(NODES)]
    solve = [launcher, "-np", str(RANKS), str(program), "--size", str(size_mib), "--steps", str(STEPS),
             "--every", str(EVERY), "--output"]
    say(f"Cairn demo ({flavour}): 2-D heat equation, {RANKS} ranks on {NODES} simulated nodes and 1 spare,")
    say(f"{size_mib} MiB of state per rank, XOR in sets of {SETTINGS['SCR_SET_SIZE']}")
    say(f"1. Without checkpoints, no node is lost: {STEPS} steps")
    events = follow(Run([*run, *solve, str(root / "reference")], root, {"SCR_ENABLE": "0"}, in_full=False))
    say(f"   done in {float(events[-1][1]['run_s']):.1f} s")
    say(f"2. With a checkpoint every {EVERY} steps; after "
        f"{KILL_AFTER_CHECKPOINTS} of them, {VICTIM} dies with its ranks and its storage")
    judge(follow(Run([*run, "--spares", "1", "--runs", "2", "--kill-node",
                      f"{VICTIM}@checkpoint:{KILL_AFTER_CHECKPOINTS}", *solve, str(root / "result")],
                     root, SETTINGS)))
    compare(root, size_mib)


def main() -> int:
    """Returns 0 if the demo succeeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"), help="the build directory")
    parser.add_argument("--size", type=int, default=64, help="MiB of state per rank")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="cairn-demo-", dir=MEMORY) as root:
            demo(options.build, options.size, Path(root))
    except Failure as failure:
        print(f"The demo failed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. All files are deleted.", file=sys.stderr)
        return 130
    say(f"The demo took {time.monotonic() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
