#!/usr/bin/env python3
"""The demo: a node dies in the middle of a run, and the result is the same to the last bit.

Runs the heat solver (examples/2_heat.c) on simulated nodes twice: undisturbed and without Cairn,
then with checkpoints, with one node killed and its storage deleted, and a spare in its place.
Exits non-zero unless the second run restarted from a checkpoint and both results are identical.
"""

import argparse
import filecmp
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from cluster import LAUNCHERS, MEMORY, Cluster, Run, launcher_of

NODES = ["n0", "n1", "n2", "n3"]
VICTIM, SPARE = "n2", "n4"
RANKS_PER_NODE = 2
RANKS = RANKS_PER_NODE * len(NODES)
STEPS, EVERY = 24, 4
KILL_AFTER_CHECKPOINTS = 2
# The prefix directory is in memory here as well, where a second copy of it all would not fit.
SETTINGS = {"SCR_COPY_TYPE": "XOR", "SCR_SET_SIZE": "4", "SCR_FLUSH": "0"}
MIB = 1 << 20

Event = Tuple[str, Dict[str, str]]


class Failure(Exception):
    """Why the demo could not show what it is there to show."""


def say(text: str) -> None:
    """One line of the account."""
    print(text, flush=True)


def placement(nodes: Sequence[str]) -> List[str]:
    """The node of each rank: consecutive ranks share one."""
    return [node for node in nodes for _ in range(RANKS_PER_NODE)]


def find_program(build: Path) -> Tuple[str, Path]:
    """The MPI to use and the solver built with it, Open MPI first."""
    for flavour in LAUNCHERS:
        program = build / "examples" / flavour / "2_heat"
        if program.exists() and launcher_of(flavour):
            return flavour, program.resolve()
    raise Failure(f"no {build}/examples/*/2_heat with a launcher for its MPI: build first")


def require_memory(size_mib: int) -> None:
    """Refuses to start what cannot fit: up to 6 times the state in files, twice in processes."""
    files = RANKS * size_mib * 6
    free = shutil.disk_usage(MEMORY).free // MIB
    meminfo = Path("/proc/meminfo").read_text()
    available = int(re.search(r"MemAvailable:\s+(\d+)", meminfo)[1]) // 1024
    if free < files or available < files + RANKS * size_mib * 2:
        raise Failure(f"{RANKS} ranks of {size_mib} MiB need {files} MiB free in {MEMORY} and "
                      f"{files + RANKS * size_mib * 2} MiB of memory; there are {free} and "
                      f"{available}. Choose a smaller --size.")


def events(run: Run) -> Iterator[Event]:
    """What the solver reports, as it happens: the event and its values."""
    for line in run.process.stdout:
        words = line.split()
        if len(words) > 1 and words[0] == "heat":
            yield words[1], dict(word.split("=", 1) for word in words[2:])


def tell_checkpoint(values: Dict[str, str]) -> None:
    """How much was written and how fast."""
    if values["ok"] != "1":
        raise Failure(f"the checkpoint of step {values['step']} failed")
    mib, write, protect = (float(values[key]) for key in ("mib", "write_s", "protect_s"))
    speed = mib / 1024 / max(write + protect, 1e-3)
    say(f"   step {values['step']:>3}: {mib:.0f} MiB written in {write:.2f} s, "
        f"protected in {protect:.2f} s ({speed:.2f} GiB/s)")


def end_of(run: Run, values: Optional[Dict[str, str]]) -> float:
    """Waits for a run that should end well; its seconds."""
    if run.process.wait() != 0 or values is None or values["ok"] != "1":
        raise Failure("the run failed:\n" + run.log.read_text(errors="replace"))
    return float(values["run_s"])


def reference_run(cluster: Cluster, command: List[str]) -> None:
    """The undisturbed run."""
    say(f"1. Undisturbed, without Cairn: {STEPS} steps")
    command = [*command, "--output", str(cluster.root / "reference")]
    run = cluster.start(placement(NODES), command, {"SCR_ENABLE": "0"})
    last = dict(events(run)).get("end")
    say(f"   done in {end_of(run, last):.1f} s")


def run_until_loss(cluster: Cluster, command: List[str]) -> int:
    """Runs until enough checkpoints are committed, then takes a node away; the last one's step."""
    say(f"2. With a checkpoint every {EVERY} steps, on {' '.join(NODES)}")
    run = cluster.start(placement(NODES), command, SETTINGS)
    committed: List[int] = []
    for event, values in events(run):
        if event == "checkpoint":
            tell_checkpoint(values)
            committed.append(int(values["step"]))
            if len(committed) == KILL_AFTER_CHECKPOINTS:
                lose_node(cluster, run)
    if len(committed) < KILL_AFTER_CHECKPOINTS:
        raise Failure("the run ended early:\n" + run.log.read_text(errors="replace"))
    return committed[-1]


def lose_node(cluster: Cluster, run: Run) -> None:
    """Kills the victim's ranks, deletes its storage, waits for the launcher to end the rest."""
    start = time.monotonic()
    killed = run.kill_ranks(VICTIM)
    if len(killed) != RANKS_PER_NODE:
        raise Failure(f"only the ranks {killed} of {VICTIM} could be killed")
    lost = cluster.lose_storage(VICTIM)
    say(f"   {VICTIM} is lost: ranks {', '.join(map(str, killed))} killed, {lost / MIB:.0f} MiB of "
        f"its storage deleted")
    if run.process.wait() == 0:
        raise Failure(f"the run survived the loss of {VICTIM}")
    say(f"   the launcher ended the run after {time.monotonic() - start:.1f} s")


def run_again(cluster: Cluster, command: List[str], committed: int) -> None:
    """Starts again with the spare in the lost node's place; must restart from a checkpoint."""
    nodes = [SPARE if node == VICTIM else node for node in NODES]
    say(f"3. Started again on {' '.join(nodes)}: {SPARE} is the spare, its storage is empty")
    run = cluster.start(placement(nodes), [*command, "--output", str(cluster.root / "result")],
                        SETTINGS)
    last: Optional[Dict[str, str]] = None
    for event, values in events(run):
        if event == "start":
            tell_restart(cluster, run, values, committed)
        elif event == "checkpoint":
            tell_checkpoint(values)
        elif event == "end":
            last = values
    say(f"   done in {end_of(run, last):.1f} s")


def tell_restart(cluster: Cluster, run: Run, values: Dict[str, str], committed: int) -> None:
    """Where the run restarted, and what it cost."""
    if values["restarted"] != "1" or int(values["step"]) < committed:
        raise Failure(f"no restart from step {committed}:\n"
                      + run.log.read_text(errors="replace"))
    say(f"   rebuilt in {float(values['init_s']):.2f} s, read back in "
        f"{float(values['load_s']):.2f} s; going on from step {values['step']}")


def compare(cluster: Cluster, size_mib: int) -> None:
    """The final field of both runs, byte by byte."""
    names = [f"field.{rank}" for rank in range(RANKS)]
    folders = (cluster.root / "reference", cluster.root / "result")
    same, different, missing = filecmp.cmpfiles(*folders, names, shallow=False)
    say(f"4. Final field, {RANKS * size_mib} MiB compared byte by byte: "
        f"identical: {'yes' if len(same) == RANKS else 'NO'}")
    if len(same) != RANKS:
        raise Failure(f"different: {different}, missing: {missing}")


def demo(build: Path, size_mib: int) -> None:
    """The whole story."""
    flavour, program = find_program(build)
    require_memory(size_mib)
    command = [str(program), "--size", str(size_mib), "--steps", str(STEPS), "--every", str(EVERY)]
    say(f"Cairn demo ({flavour}): 2-D heat equation, {RANKS} ranks on {len(NODES)} simulated nodes "
        f"and 1 spare,")
    say(f"{size_mib} MiB of state per rank, XOR in sets of {SETTINGS['SCR_SET_SIZE']}")
    with Cluster(flavour, "cairn-demo") as cluster:
        reference_run(cluster, command)
        run_again(cluster, command, run_until_loss(cluster, command))
        compare(cluster, size_mib)


def main() -> int:
    """0 if the demo showed what it should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"), help="the build folder")
    parser.add_argument("--size", type=int, default=64, help="MiB of state per rank")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    try:
        demo(options.build, options.size)
    except Failure as failure:
        print(f"The demo failed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; nothing is left behind.", file=sys.stderr)
        return 130
    say(f"The demo took {time.monotonic() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
