"""What a checkpoint costs a program: through rbIO, and through collective MPI-IO (coIO) as it would write without it.

    python3 bench.py BUILD [--rounds 15] [--only NAME,...] [--disk DIRECTORY]

2 ranks, 4 fields of 8 MiB on each, one writer for both; the solver of examples/nekcem has its six. Variants take turns
in random order within a round, ratios are of one round: medians, 10 % and 90 % of the rounds. coIO does not sync on the
page cache, and writes neither checksums nor a table; rbIO always does. coIO is measured with both MPI-IO libraries of
Open MPI, and with one file, which is also one per group here, and one per rank; ratios are to the best of these four.
Mode collective of rbIO is coIO with the checksums, the table, the sync and the publication of the other modes. In the
part "slow" the bytes take their time, in the part "delay" each operation takes 1 ms.

What computing costs is less than what the speed of a machine drifts within a minute. So there each variant takes some
seconds, ratios are of variants that follow each other, there are 8 such turns in a round, and the median has an interval
in which it lies with 95 % confidence.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

from backends import MIB, Backend, Noise, delayed, in_memory, on_disk, slow

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/crfs"))

from mounts import keep_mounts_to_ourselves  # noqa: E402

Result = Dict[str, Any]
Results = Dict[str, List[Result]]

SLOW_BYTES_S = 150 * MIB
DELAY_US = 1000
RANKS, FIELDS, FIELD_MIB, CHECKPOINTS = 2, 4, 8, 3
COIO = {f"coIO, {library}, {files} file{'s'[:files - 1]}": (module, files)
        for library, module in (("ROMIO", "romio321"), ("OMPIO", "ompio")) for files in (1, 2)}
SYNC, THREADED, COLLECTIVE = "rbIO, sync", "rbIO, threaded", "rbIO, collective"
# As fast as it goes, unless computing goes on beside it.
MODES = {SYNC: "mode=sync keep=1", THREADED: "mode=threaded keep=1 pace=0", COLLECTIVE: "mode=collective files=1 keep=1"}
# 6 MiB for each of the six components of a rank. A throttled device takes what it may take in 0.1 s, 15 MiB, at once:
# a checkpoint must be more than twice as large, else its rate is not the limit.
ELEMENTS, ORDER, STEPS = 1536, 7, 3
TURNS = 8  # of the variants in one program, in each round
RESAMPLES = 2000


def quantile(values: Sequence[float], at: float) -> float:
    return sorted(values)[int(at * (len(values) - 1) + 0.5)]


def spread(values: Sequence[float], digits: int = 2) -> str:
    low, middle, high = (f"{quantile(values, at):.{digits}f}" for at in (0.1, 0.5, 0.9))
    return f"{middle} [{low} to {high}]"


def confident(values: Sequence[float], digits: int = 2) -> str:
    """The median, and where it lies with 95 % confidence, by resampling."""
    drawn = random.Random(1)
    medians = sorted(statistics.median(drawn.choices(values, k=len(values))) for _ in range(RESAMPLES))
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]
    return f"{statistics.median(values):.{digits}f} [95 % confidence: {low:.{digits}f} to {high:.{digits}f}]"


def each(function: Callable[..., float], *results: List[Result]) -> List[float]:
    """Of each round."""
    return [function(*of_round) for of_round in zip(*results)]


def blocked(result: Result) -> float:
    return statistics.median(result["blocked"])


def take_turns(variants: Dict[str, Callable[[], Result]], rounds: int) -> Results:
    results: Results = {name: [] for name in variants}
    for _ in range(rounds):
        for name in random.sample(list(variants), len(variants)):
            results[name].append(variants[name]())
    return results


def best_of(results: Results) -> str:
    return min(COIO, key=lambda name: quantile([blocked(r) for r in results[name]], 0.5))


class Bench:
    def __init__(self, build: Path, rounds: int, disk: Path) -> None:
        self.build, self.rounds, self.disk = build, rounds, disk

    def program(self, name: str) -> Path:
        return self.build / "bench" / f"bench_rbio_{name}"

    def blocked_once(self, backend: Backend, kind: str, files: int = 1, module: str = "") -> Result:
        words = [self.program("blocked"), kind, files, int(backend.is_slow), backend.directory, FIELDS, FIELD_MIB,
                 CHECKPOINTS]
        return backend.run_ranks(RANKS, words, {"OMPI_MCA_io": module} if module else None)

    def variants(self, backend: Backend) -> Dict[str, Callable[[], Result]]:
        found: Dict[str, Callable[[], Result]] = {
            name: lambda module=module, files=files: self.blocked_once(backend, "coio", files, module)
            for name, (module, files) in COIO.items()}
        for name, kind in MODES.items():
            found[name] = lambda kind=kind: self.blocked_once(backend, f"{kind} group={RANKS}")
        if backend.is_slow:
            total_mib = RANKS * FIELDS * FIELD_MIB
            found["device"] = lambda: backend.run([self.program("device"), backend.directory, total_mib])
        return found

    def compare(self, backend: Backend) -> None:
        noise = Noise()
        results = take_turns(self.variants(backend), self.rounds)
        best = best_of(results)
        print(f"\n{backend.name}: {RANKS} ranks, {FIELDS} fields of {FIELD_MIB} MiB. {noise.text()}\n")
        print(f"| | blocked, ms | best coIO / it ({backend.aim}) | perceived / memcpy (aim 0.7, outstanding 0.9) "
              "| written, MB/s |\n|---|---|---|---|---|")
        for name, of in results.items():
            if name == "device":
                continue
            rates = each(lambda r: r["bytes_per_rank"] / blocked(r) / r["memcpy"], of)
            raw = spread([statistics.median(r["raw"]) / 1e6 for r in of], 0) if of[0]["raw"] else ""
            print(f"| {name}{' (best coIO)' if name == best else ''} | {spread([1e3 * blocked(r) for r in of], 1)} "
                  f"| {spread(each(lambda b, r: blocked(b) / blocked(r), results[best], of))} | {spread(rates)} | {raw} |")
        if backend.is_slow:
            self.print_raw(results)

    @staticmethod
    def print_raw(results: Results) -> None:
        """The thread against a process that only writes; it may write either way."""
        print("\n| a process that only writes | MB/s | thread / it (aim 0.95, outstanding 0.98) |\n|---|---|---|")
        for way, text in (("cached", "page cache and fdatasync"), ("direct", "O_DIRECT")):
            rates = [r["bytes"] / r[way] for r in results["device"]]
            if min(rates) < 0:
                continue
            ratios = each(lambda r, d: statistics.median(r["raw"]) * d[way] / d["bytes"], results[THREADED],
                          results["device"])
            print(f"| {text} | {spread([rate / 1e6 for rate in rates], 0)} | {spread(ratios)} |")

    def adios2(self) -> None:
        """Beside it: ADIOS2, engine BP5, where its Python module is. That of the Python index has no MPI: one process."""
        program = Path(__file__).resolve().with_name("adios2_bp5.py")
        if subprocess.run([sys.executable, "-c", "import adios2"], stderr=subprocess.DEVNULL, check=False).returncode:
            print("\nADIOS2 is not compared: this Python has no module adios2 (python3 -m pip install adios2).")
            return
        with slow(self.build, SLOW_BYTES_S) as backend:
            sizes = [backend.directory, FIELDS, FIELD_MIB, CHECKPOINTS]
            variants: Dict[str, Callable[[], Result]] = {
                f"ADIOS2 BP5, AsyncWrite {way}": lambda way=way: backend.run([sys.executable, program, way, *sizes])
                for way in ("Off", "On")}
            variants[THREADED] = lambda: backend.run_ranks(
                1, [self.program("blocked"), MODES[THREADED], 1, 1, *sizes])
            results = take_turns(variants, self.rounds)
            print(f"\n{backend.name}: 1 process, {FIELDS} fields of {FIELD_MIB} MiB. ADIOS2 does not sync: what it has "
                  "written may be in the page cache.\n\n| | blocked, ms |\n|---|---|")
            for name, of in results.items():
                print(f"| {name} | {spread([1e3 * blocked(r) for r in of], 1)} |")

    # The parts of the table.

    def memory(self) -> None:
        with in_memory() as backend:
            self.compare(backend)

    def ext4(self) -> None:
        with on_disk(self.disk) as backend:
            self.compare(backend)

    def slow(self) -> None:
        with slow(self.build, SLOW_BYTES_S) as backend:
            self.compare(backend)

    def delay(self) -> None:
        with delayed(self.build, DELAY_US) as backend:
            self.compare(backend)

    def computing(self) -> None:
        for ranks in (1, 2):
            with slow(self.build, SLOW_BYTES_S) as backend:
                self.computed(backend, ranks)
            with in_memory() as backend:
                self.computed(backend, ranks)

    def computed(self, backend: Backend, ranks: int) -> None:
        noise = Noise()
        threaded = f"mode=threaded keep=1 group={ranks}"
        variants = ["none:0:1:0:none", f"sleeping:0:1:0:{threaded}", f"threaded:1:1:0:{threaded}",
                    f"coIO:1:{ranks}:{int(backend.is_slow)}:coio"]
        results: Result = {}
        for _ in range(self.rounds):
            turns = backend.run_ranks(ranks, [self.program("computing"), "--briefly", backend.directory, ELEMENTS, ORDER, STEPS, 1,
                                              TURNS, *variants], {"OMPI_MCA_io": "romio321"})
            results["checkpoint_bytes"] = turns.pop("checkpoint_bytes")
            for name, of in turns.items():
                results.setdefault(name, []).extend(of)
        print(f"\n{backend.name}: {ranks} rank{'s'[:ranks - 1]} on 2 cores, the solver with {STEPS} steps between "
              f"checkpoints of {results['checkpoint_bytes'] / 1e6:.0f} MB. {noise.text()}\n")
        self.print_computed(results, ranks)

    @staticmethod
    def print_computed(results: Result, ranks: int) -> None:
        none, sleeping, threaded, coio = (results[name] for name in ("none", "sleeping", "threaded", "coIO"))
        aim = "3, outstanding 1" if ranks == 1 else "6, outstanding 4"
        slower = each(slow_down, threaded, none)
        asleep = each(lambda s, n: 100 * (sum(s["steps"]) / sum(n["steps"]) - 1), sleeping, none)
        against_asleep = each(slow_down, threaded, sleeping)
        size_mb = results["checkpoint_bytes"] / 1e6
        costs = {name: each(cost, of, none) for name, of in (("threaded", threaded), ("coIO", coio))}
        cost_of = {name: quantile(of, 0.5) for name, of in costs.items()}
        others = [1e3 * statistics.mean(t["other_threads"]) for t in threaded]
        rates = [statistics.median(t["raw"]) / 1e6 for t in threaded if t["raw"]]
        late = sum(1 for t in threaded if not t["raw"])
        predicted = each(predicted_speed_up, threaded, coio, none)
        measured = each(lambda t, c: c["total"] / t["total"], threaded, coio)
        rows = [
            ("a step, ms", spread([1e3 * step(n) for n in none])),
            ("a step while the thread writes, slower by %", f"{confident(slower)} (aim {aim})"),
            ("the same against a thread that sleeps, %", confident(against_asleep)),
            ("the same against both", confident(slower + against_asleep)),
            ("a step while the thread sleeps, slower by %", confident(asleep)),
            ("the first row, turn by turn", spread(slower)),
            ("rate of the thread, MB/s", spread(rates, 0) if rates else "not known"),
            ("turns in which the thread was not done at the end", f"{late} of {len(threaded)}"),
            ("blocked, threaded, ms", spread([1e3 * blocked(t) for t in threaded], 1)),
            ("blocked, coIO, ms", spread([1e3 * blocked(c) for c in coio], 1)),
            ("processor time of the thread per checkpoint, ms", spread(others, 1)),
            *((f"a checkpoint costs, {name}, ms: blocked, and slower steps", confident([1e3 * c for c in of], 1))
              for name, of in costs.items()),
            ("effective bandwidth, threaded; coIO; ratio (aim 10, outstanding 20)",
             f"{size_mb / cost_of['threaded']:.0f}; {size_mb / cost_of['coIO']:.0f} MB/s; "
             f"{cost_of['coIO'] / cost_of['threaded']:.1f}" if min(cost_of.values()) > 0 else "lost in the noise"),
            ("speed-up over coIO, measured", confident(measured, 3)),
            ("speed-up by the published formula", confident(predicted, 3)),
            ("formula / measured", f"{confident([p / m for p, m in zip(predicted, measured)], 3)} (aim within 5 %)"),
        ]
        print("| | |\n|---|---|")
        for name, text in rows:
            print(f"| {name} | {text} |")


def step(result: Result) -> float:
    return statistics.median(result["steps"])


def slow_down(writing: Result, other: Result) -> float:
    """Of the first steps after a begin, at whose ends the thread was still writing, against the same steps of another
    variant in the same turn. In %."""
    steps = max(1, len(writing["writing_steps"]))
    return 100 * (sum(writing["steps"][:steps]) / sum(other["steps"][:steps]) - 1)


def cost(result: Result, none: Result, steps: int = STEPS) -> float:
    """Seconds for one checkpoint: blocked, and computing that became slower. Noise may make it negative."""
    slower = steps * (statistics.mean(result["steps"]) - statistics.mean(none["steps"]))
    return statistics.mean(result["blocked"]) + slower


def predicted_speed_up(threaded: Result, coio: Result, none: Result, steps: int = STEPS) -> float:
    """(X_co + f) / (X_tr + f) / (1 + d), with the cost X of a checkpoint and its interval f in steps that nothing slows."""
    plain = statistics.mean(none["steps"])
    slower = statistics.mean(threaded["steps"]) / plain - 1
    cost = {name: statistics.mean(of["blocked"]) / plain for name, of in (("co", coio), ("tr", threaded))}
    return (cost["co"] + steps) / (cost["tr"] + steps) / (1 + slower)


def main() -> None:
    parts = ["memory", "ext4", "slow", "delay", "computing", "adios2"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default=",".join(parts), help=f"of {', '.join(parts)}")
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    keep_mounts_to_ourselves()
    bench = Bench(arguments.build.resolve(), arguments.rounds, arguments.disk)
    for part in arguments.only.split(","):
        getattr(bench, part)()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
