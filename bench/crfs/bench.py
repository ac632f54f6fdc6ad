"""What CRFS costs and gains: checkpoints written through it, natively, and through a plain FUSE passthrough.

    python3 bench.py BUILD [--rounds 15] [--only NAME,...] [--disk FOLDER] [--plot FILE.svg]

The writes are those of LU.C.64 (src/aggregate/lu_c_64.hpp), 8 processes on a node unless it says otherwise. Variants
take turns in random order within a round, ratios are of one round: medians, 10 % and 90 % of the rounds. The plain
passthrough and the slow backing file systems are tests/crfs/slowfs, without attributes and the kernel's page cache,
which it is fastest without.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/crfs"))

from mounts import Mount, Workshop, keep_mounts_to_ourselves  # noqa: E402

Result = Dict[str, Any]
Results = Dict[str, List[Result]]

MIB = 1 << 20
IMAGES = {"LU.B": 3_900_000, "LU.C": 23_000_000, "LU.D": 108_000_000}  # bytes of a process
PLAIN = ("--direct", "--no-xattr")
PROCESSES = 8
HANDING_OVER = "(handing over alone: CRFS, --discard)"  # no CRFS can be faster than that
SLOW_US = 1000
THROTTLED_BYTES_S = 150 * MIB


def quantile(values: Sequence[float], at: float) -> float:
    return sorted(values)[int(at * (len(values) - 1) + 0.5)]


def spread(values: Sequence[float], unit: str = "") -> str:
    low, middle, high = (quantile(values, at) for at in (0.1, 0.5, 0.9))
    return f"{middle:.2f}{unit} [{low:.2f} to {high:.2f}]"


def ratios(results: Results, one: str, other: str, what: str = "seconds") -> List[float]:
    return [a[what] / b[what] for a, b in zip(results[one], results[other])]


def take_turns(variants: Dict[str, Callable[[], Result]], rounds: int) -> Results:
    """The first round warms up and is not kept."""
    results: Results = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name in random.sample(list(variants), len(variants)):
            result = variants[name]()
            if number > 0:
                results[name].append(result)
    return results


class Bench:
    def __init__(self, build: Path, rounds: int, disk: Path) -> None:
        self.build, self.rounds, self.disk = build, rounds, disk
        self.each: Dict[str, List[float]] = {}  # variant: the seconds of each process, for the plot

    def replay(self, *words: object) -> Result:
        output = subprocess.run([self.build / "tests/crfs/crfs_replay", *map(str, words)], check=True,
                                stdout=subprocess.PIPE).stdout
        return json.loads(output)

    def write(self, folder: Path, processes: int = PROCESSES, image: int = IMAGES["LU.C"], *more: str) -> Result:
        """Writes a checkpoint and removes it."""
        result = self.replay("write", folder, processes, image, *more)
        for path in folder.glob("image.*"):
            path.unlink()
        return result

    def counted(self, mount: Mount, image: int = IMAGES["LU.C"], processes: int = PROCESSES) -> Result:
        """write() through CRFS, with what it counted."""
        before = mount.stats()
        result = self.write(mount.path, processes, image)
        after = mount.stats()
        return {**result, **{name: after[name] - before[name] for name in ("writes_in", "writes_out", "waits")}}

    def workshop(self, folder: Path = Path("/dev/shm")) -> Workshop:
        return Workshop(self.build, parent=folder)

    # The rows of the table, in its order.

    def delayed(self) -> None:
        workshop = self.workshop()
        try:
            slow = workshop.slowfs(*PLAIN, "--delay-us", str(SLOW_US))
            plain = workshop.slowfs(*PLAIN, backing=self.below(slow, "plain"))
            mounts = {"CRFS": workshop.crfs(backing=self.below(slow, "crfs")),
                      "CRFS, writeback": workshop.crfs("--mode", "writeback", backing=self.below(slow, "writeback")),
                      "CRFS, --icpp2011": workshop.crfs("--icpp2011", backing=self.below(slow, "icpp")),
                      HANDING_OVER: workshop.crfs("--discard", backing=self.below(slow, "discard"))}
            native = self.below(slow, "native")
            results = take_turns({"native": lambda: self.write(native),
                                  "passthrough": lambda: self.write(plain.path),
                                  **{name: lambda mount=mount: self.counted(mount) for name, mount in mounts.items()}},
                                 self.rounds)
        finally:
            workshop.close()
        self.each = {name: [quantile([sorted(r["each"])[i] for r in results[name]], 0.5) for i in range(PROCESSES)]
                     for name in ("native", "passthrough", "CRFS")}
        print(f"\nBacking file system with {SLOW_US / 1000:g} ms per operation, close=wait\n")
        print("| | seconds | passthrough / it (aim 9) | native / it | slowest / fastest process (aim 1.15) "
              "| requests in | out | writes of the processes / out (aim 43) |\n|---|---|---|---|---|---|---|---|")
        for name, of in results.items():
            even = spread([max(r["each"]) / min(r["each"]) for r in of])
            counts = "| | |"
            if of[0].get("writes_out"):
                requests, out = (quantile([r[count] for r in of], 0.5) for count in ("writes_in", "writes_out"))
                counts = f"| {requests} | {out} | {of[0]['writes'] / out:.1f} |"
            print(f"| {name} | {spread([r['seconds'] for r in of])} | {spread(ratios(results, 'passthrough', name))} "
                  f"| {spread(ratios(results, 'native', name))} | {even} {counts}")

    @staticmethod
    def below(mount: Mount, name: str) -> Path:
        folder = mount.path / name
        folder.mkdir()
        return folder

    def quick(self) -> None:
        self._without_fsync("tmpfs", Path("/dev/shm"))

    def on_disk(self) -> None:
        self._without_fsync("disk", self.disk)

    def _without_fsync(self, name: str, parent: Path) -> None:
        workshop = self.workshop(parent)
        try:
            native = workshop.new_folder("native")
            plain, cached = workshop.slowfs(*PLAIN), workshop.slowfs("--no-xattr")
            direct, writeback = workshop.crfs(), workshop.crfs("--mode", "writeback")

            def settled(work: Callable[[], Result]) -> Callable[[], Result]:
                def run() -> Result:
                    if parent == self.disk:
                        subprocess.run(["sync", "-f", str(parent)], check=True)
                    return work()
                return run

            results = take_turns({
                "native": settled(lambda: self.write(native)),
                "passthrough": settled(lambda: self.write(plain.path)),
                "passthrough, cached": settled(lambda: self.write(cached.path)),
                "CRFS": settled(lambda: self.counted(direct)),
                "CRFS, writeback": settled(lambda: self.counted(writeback))}, self.rounds)
        finally:
            workshop.close()
        print(f"\nNo fsync, on {name}\n")
        print("| | seconds | native / it (aim 0.85) | passthrough / it (aim 1.3) |\n|---|---|---|---|")
        for variant, of in results.items():
            print(f"| {variant} | {spread([r['seconds'] for r in of])} | {spread(ratios(results, 'native', variant))} "
                  f"| {spread(ratios(results, 'passthrough', variant))} |")

    def sizes(self) -> None:
        print("\nSizes of the images, 8 processes; delayed: 1 ms per operation\n")
        print("| | bytes of a process | delayed: passthrough / CRFS | writes / writes out | tmpfs: native / CRFS "
              "| files only made and closed: native, ms | CRFS, ms |\n|---|---|---|---|---|---|---|")
        for name, image in IMAGES.items():
            workshop = self.workshop()
            try:
                slow = workshop.slowfs(*PLAIN, "--delay-us", str(SLOW_US))
                plain = workshop.slowfs(*PLAIN, backing=self.below(slow, "plain"))
                crfs = workshop.crfs(backing=self.below(slow, "crfs"))
                quick, native = workshop.crfs(), workshop.new_folder("native")
                results = take_turns({"plain": lambda: self.write(plain.path, PROCESSES, image),
                                      "CRFS": lambda: self.counted(crfs, image),
                                      "native": lambda: self.write(native, PROCESSES, image),
                                      "quick": lambda: self.write(quick.path, PROCESSES, image),
                                      "native, empty": lambda: self.write(native, PROCESSES, 0),
                                      "quick, empty": lambda: self.write(quick.path, PROCESSES, 0)},
                                     self.rounds)
            finally:
                workshop.close()
            merged = [r["writes"] / r["writes_out"] for r in results["CRFS"]]
            print(f"| {name} | {image:,} | {spread(ratios(results, 'plain', 'CRFS'))} | {quantile(merged, 0.5):.1f} "
                  f"| {spread(ratios(results, 'native', 'quick'))} "
                  f"| {spread([1e3 * r['seconds'] for r in results['native, empty']])} "
                  f"| {spread([1e3 * r['seconds'] for r in results['quick, empty']])} |")

    def throttled(self) -> None:
        workshop = self.workshop()
        try:
            slow = workshop.slowfs(*PLAIN, "--bandwidth", str(THROTTLED_BYTES_S))
            native = self.below(slow, "native")
            later = workshop.crfs("--close", "async", "--pool", "256M", backing=self.below(slow, "async"))
            wait = workshop.crfs("--pool", "256M", backing=self.below(slow, "wait"))
            discard = workshop.crfs("--discard", backing=self.below(slow, "discard"))

            def drained() -> Result:
                start = time.monotonic()
                result = self.replay("write", later.path, PROCESSES, IMAGES["LU.C"])
                while later.stats()["pool_used_bytes"] > 0:
                    time.sleep(0.005)
                result["drained"] = time.monotonic() - start
                for path in later.path.glob("image.*"):
                    path.unlink()
                return result

            image = IMAGES["LU.C"]
            results = take_turns({
                "native, fdatasync": lambda: self.write(native, PROCESSES, image, "sync"),
                "CRFS, close=async": drained,
                HANDING_OVER: lambda: self.write(discard.path),
                "CRFS, close=wait": lambda: self.write(wait.path),
                "CRFS, close=wait, fdatasync": lambda: self.write(wait.path, PROCESSES, image, "sync")},
                max(3, self.rounds // 2))
        finally:
            workshop.close()
        print("\nBacking file system of 150 MiB/s\n\n| | seconds | native / it (aim 10 with close=async) | drained after "
              "|\n|---|---|---|---|")
        for name, of in results.items():
            after = spread([r["drained"] for r in of], " s") if "drained" in of[0] else ""
            print(f"| {name} | {spread([r['seconds'] for r in of])} "
                  f"| {spread(ratios(results, 'native, fdatasync', name))} | {after} |")

    def latency(self) -> None:
        workshop = self.workshop()
        try:
            folders = {"native": workshop.new_folder("native"), "passthrough": workshop.slowfs(*PLAIN).path,
                       "passthrough, cached": workshop.slowfs("--no-xattr").path, "CRFS": workshop.crfs().path,
                       "CRFS, writeback": workshop.crfs("--mode", "writeback").path}
            results = take_turns({name: lambda folder=folder: self.replay("latency", folder, 64, 20_000)
                                  for name, folder in folders.items()}, self.rounds)
        finally:
            workshop.close()
        print("\nOne write of 64 bytes on tmpfs, us (aim with writeback 0.6)\n\n| | median | 99 % |\n|---|---|---|")
        for name, of in results.items():
            print(f"| {name} | {spread([r['median_ns'] / 1e3 for r in of])} "
                  f"| {spread([r['p99_ns'] / 1e3 for r in of])} |")

    def restart(self) -> None:
        """Cold: a new mount, and nothing of the files in the page cache. The second native shows what chance makes."""
        workshop = self.workshop(self.disk)
        try:
            images = workshop.new_folder("images")
            self.replay("write", images, PROCESSES, IMAGES["LU.C"], "sync")
            mounts: Dict[str, Callable[[], Optional[Mount]]] = {
                "native": lambda: None, "native once more": lambda: None,
                "passthrough": lambda: workshop.slowfs("--no-xattr", backing=images),
                "CRFS": lambda: workshop.crfs(backing=images),
                "CRFS, direct": lambda: workshop.crfs("--mode", "direct", backing=images),
                "CRFS, writeback": lambda: workshop.crfs("--mode", "writeback", backing=images)}
            cold: Results = {name: [] for name in mounts}
            warm: Results = {name: [] for name in mounts}
            for number in range(self.rounds + 1):
                for name in random.sample(list(mounts), len(mounts)):
                    mount = mounts[name]()
                    folder = mount.path if mount else images
                    forget(images)
                    both = [self.replay("read", folder, PROCESSES) for _ in range(2)]
                    if number > 0:
                        cold[name].append(both[0])
                        warm[name].append(both[1])
                    if mount:
                        mount.unmount()
        finally:
            workshop.close()
        print("\nRestart: 8 images read, 128 KiB at a time (aim 0.95)\n")
        print("| | cold, s | cold: native / it | warm, s | warm: native / it |\n|---|---|---|---|---|")
        for name in cold:
            print(f"| {name} | {spread([r['seconds'] for r in cold[name]])} | {spread(ratios(cold, 'native', name))} "
                  f"| {spread([r['seconds'] for r in warm[name]])} | {spread(ratios(warm, 'native', name))} |")

    def processes(self) -> None:
        print("\nProcesses on a node, 1 ms per operation\n\n| processes | native, s | passthrough, s | CRFS, s | "
              "passthrough / CRFS | slowest / fastest |\n|---|---|---|---|---|---|")
        for count in (1, 2, 4, 8):
            workshop = self.workshop()
            try:
                slow = workshop.slowfs(*PLAIN, "--delay-us", str(SLOW_US))
                native, plain = self.below(slow, "native"), workshop.slowfs(*PLAIN, backing=self.below(slow, "plain"))
                crfs = workshop.crfs(backing=self.below(slow, "crfs"))
                results = take_turns({"native": lambda: self.write(native, count),
                                      "plain": lambda: self.write(plain.path, count),
                                      "CRFS": lambda: self.write(crfs.path, count)}, max(3, self.rounds // 3))
            finally:
                workshop.close()
            times = " | ".join(spread([r["seconds"] for r in of]) for of in results.values())
            even = spread([max(r["each"]) / min(r["each"]) for r in results["CRFS"]])
            print(f"| {count} | {times} | {spread(ratios(results, 'plain', 'CRFS'))} | {even} |")

    def sweep(self) -> None:
        """As the authors chose theirs: how fast 8 processes hand over what is then thrown away."""
        print("\nHanded over and thrown away (--discard), MB/s of 8 processes\n\n| pool | threads | chunk 64K | 128K | 256K "
              "| 1M | 4M |\n|---|---|---|---|---|---|---|")
        total_mb = PROCESSES * IMAGES["LU.C"] / 1e6
        for pool in ("4M", "16M", "64M", "256M"):
            for threads in (1, 4, 8):
                workshop = self.workshop()
                try:
                    mounts = {chunk: workshop.crfs("--discard", "--pool", pool, "--chunk", chunk,
                                                   "--write", "16M" if pool != "4M" else "4M", "--threads", str(threads))
                              for chunk in ("64K", "128K", "256K", "1M", "4M")}
                    results = take_turns({chunk: lambda mount=mount: self.write(mount.path)
                                          for chunk, mount in mounts.items()}, max(3, self.rounds // 3))
                finally:
                    workshop.close()
                cells = " | ".join(f"{quantile([total_mb / r['seconds'] for r in of], 0.5):.0f}"
                                   for of in results.values())
                print(f"| {pool} | {threads} | {cells} |", flush=True)


def forget(folder: Path) -> None:
    """Nothing of the files stays in the page cache."""
    for path in folder.iterdir():
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def plot(each: Dict[str, List[float]], path: Path) -> None:
    """When each process was done, fastest first."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "cairn"  # the same figures, the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for number, (name, seconds) in enumerate(each.items()):
        axes.bar([i + 0.27 * (number - 1) for i in range(len(seconds))], seconds, width=0.25, label=name)
    axes.set(xlabel="process, fastest first", ylabel="s until its image is written and closed", ylim=(0, None))
    axes.set_title(f"LU.C.64, {PROCESSES} processes, {SLOW_US / 1000:g} ms per operation")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parts = ["delayed", "quick", "on_disk", "throttled", "latency", "restart", "sizes", "processes", "sweep"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default=",".join(parts), help=f"of {', '.join(parts)}")
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--plot", type=Path, help="of the part `delayed`")
    arguments = parser.parse_args()
    keep_mounts_to_ourselves()
    bench = Bench(arguments.build.resolve(), arguments.rounds, arguments.disk)
    for part in arguments.only.split(","):
        getattr(bench, part)()
        sys.stdout.flush()
    if arguments.plot and bench.each:
        plot(bench.each, arguments.plot)


if __name__ == "__main__":
    main()
