"""The rate at which outputs arrive in the prefix directory (SCR_FLUSH_ASYNC=1), against dd with O_DIRECT.

    python3 flush_rate.py BUILD [--rounds 15] [--mib 256] [--limit 150] [--ranks 1,2]

The prefix directory is on a device of --limit MiB/s, which takes data from a loop device with a blkio cgroup, or, without
root, is a FUSE file system that waits. In each round the flush and dd take turns in random order, and write as many
bytes: --mib, by so many ranks together. dd syncs at its end, as the flush does. Its rate over that of dd is of one round:
median, 10 % and 90 % of the rounds. The flush is measured from the return of Complete, and also with Complete. Before
each, nothing is written for 0.7 s: after small writes the kernel lets a cgroup write up to two of its slices, of 100 ms, at
once, which made dd after a flush up to 10 % faster.
"""

import argparse
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent / "rbio"))

from backends import MIB, Backend, Noise, slow  # noqa: E402
from mounts import keep_mounts_to_ourselves  # noqa: E402

REST_S = 0.7  # as in flush_rate.cpp
TIMES = 2  # outputs of a program in a round, after one that warms up


def spread(values: List[float]) -> str:
    ordered = sorted(values)
    low, middle, high = (ordered[int(at * (len(ordered) - 1) + 0.5)] for at in (0.1, 0.5, 0.9))
    return f"{middle:.3f} [{low:.3f} to {high:.3f}]"


def dd(backend: Backend, source: Path) -> float:
    """Seconds."""
    target = backend.directory / "dd"
    time.sleep(REST_S)
    said = backend.finish(["dd", f"if={source}", f"of={target}", "bs=4M", "oflag=direct", "conv=fdatasync"],
                          {"LC_ALL": "C"}, stderr=subprocess.PIPE).stderr.decode()
    target.unlink()
    found = re.search(r"copied, ([0-9.e+-]+) s", said)
    if not found:
        raise RuntimeError(f"dd says no time: {said}")
    return float(found[1])


class Rates:
    """Of one number of ranks, in MiB/s and as parts of the rate of dd."""

    def __init__(self) -> None:
        self.dd: List[float] = []
        self.copied: List[float] = []
        self.with_complete: List[float] = []

    def add(self, mib: int, dd_s: float, flush: Dict[str, List[float]]) -> None:
        copied = statistics.median(flush["copied"])
        whole = statistics.median(a + b for a, b in zip(flush["copied"], flush["completed"]))
        self.dd.append(mib / dd_s)
        self.copied.append(dd_s / copied)
        self.with_complete.append(dd_s / whole)

    def row(self, ranks: int) -> str:
        return (f"| {ranks} | {statistics.median(self.dd):.1f} | {spread(self.copied)} | {spread(self.with_complete)} |")


def measure(build: Path, backend: Backend, ranks: int, mib: int, rounds: int) -> Rates:
    program = build / "bench/bench_flush_rate_openmpi"
    rates = Rates()
    with tempfile.NamedTemporaryFile(prefix="cairn-dd-", dir="/dev/shm") as source:
        for _ in range(mib):
            source.write(b"x" * MIB)
        source.flush()
        turns = {"dd": lambda: dd(backend, Path(source.name)),
                 "flush": lambda: backend.run_ranks(ranks, [program, mib // ranks, TIMES, backend.directory])}
        for _ in range(rounds):
            taken = {name: turns[name]() for name in random.sample(list(turns), len(turns))}
            rates.add(mib // ranks * ranks, taken["dd"], taken["flush"])
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--limit", type=int, default=150)
    parser.add_argument("--ranks", default="1,2")
    arguments = parser.parse_args()
    keep_mounts_to_ourselves()
    noise = Noise()
    with slow(arguments.build.resolve(), arguments.limit * MIB) as backend:
        print(f"{backend.name}: {arguments.mib} MiB, {arguments.rounds} rounds\n")
        print("| ranks | dd oflag=direct, MiB/s | flush / dd (aim 0.95, outstanding 1.0) | the same with Complete |\n"
              "|---|---|---|---|", flush=True)
        for ranks in map(int, arguments.ranks.split(",")):
            rates = measure(arguments.build.resolve(), backend, ranks, arguments.mib, arguments.rounds)
            print(rates.row(ranks), flush=True)
    print(f"\n{noise.text()}")


if __name__ == "__main__":
    main()
