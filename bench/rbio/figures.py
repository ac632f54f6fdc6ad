"""The figures of the talk on threaded rbIO (Fu, Min, Latham, Carothers 2012), as this machine gives them:

    python3 figures.py BUILD DOCS [--rounds 15] [--only NAME,...]

Writes DOCS/rbio-figures.md and DOCS/images/rbio_*.png. The talk had up to 32768 ranks on a Cray; a machine with few cores
shows the same shapes where they come from the order of events, and not those that come from its network.
"""

import argparse
import os
import statistics
from pathlib import Path
from typing import Any, Dict, List, Sequence

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

from backends import MIB, Backend, Noise, slow  # noqa: E402
from bench import ORDER, SLOW_BYTES_S, Bench, Result, blocked, cost, each, predicted_speed_up, quantile, spread  # noqa: E402
from mounts import keep_mounts_to_ourselves  # noqa: E402

GROUP = 2  # ranks that share a writer
RANKS = (1, 2, 4, 8)
ALL_ELEMENTS = 2048  # of all ranks: 50 MB in a checkpoint; the device takes 15 MiB at once
STEPS, INTERVALS = 4, 2
LENGTHS = (2, 4, 8, 16)  # of an interval, in steps
WRITERS = {"coIO, one file": "one:1:1:1:coio", "coIO, a file per group": "each:1:{groups}:1:coio",
           "rbIO": f"sync:1:1:0:mode=sync keep=1 group={GROUP}",
           "threaded rbIO": f"threaded:1:1:0:mode=threaded keep=1 pace=0 group={GROUP}"}
NONE = "none:0:1:0:none"


class Page:
    """What is found, as tables, and the pictures beside it."""

    def __init__(self, docs: Path) -> None:
        self.docs, self.lines = docs, []  # type: Path, List[str]

    def say(self, *lines: str) -> None:
        self.lines += lines

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.say("", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows), "")

    def picture(self, name: str, title: str, figure: Any) -> None:
        path = self.docs / "images" / f"rbio_{name}.png"
        figure.tight_layout()
        figure.savefig(path, dpi=90, metadata={"Software": None})
        pyplot.close(figure)
        self.say("", f"![{title}](images/{path.name})", "")

    def write(self) -> None:
        text = "\n".join(self.lines)
        while "\n\n\n" in text:
            text = text.replace("\n\n\n", "\n\n")
        (self.docs / "rbio-figures.md").write_text(text.strip() + "\n")


class Figures:
    def __init__(self, bench: Bench, backend: Backend, page: Page, elements: int) -> None:
        self.bench, self.backend, self.page, self.elements = bench, backend, page, elements
        self.size_mb = elements * (ORDER + 1) ** 3 * 6 * 8 / 1e6

    def compute(self, ranks: int, elements: int, steps: int, variants: Sequence[str]) -> Result:
        words = [self.bench.program("computing"), self.backend.directory, elements, ORDER, steps, INTERVALS,
                 self.bench.rounds, *variants]
        return self.backend.run_ranks(ranks, words, {"OMPI_MCA_io": "romio321"})

    def bandwidth(self) -> None:
        """And with what it has measured, the next figure."""
        found = {}
        for ranks in RANKS:
            groups = -(-ranks // GROUP)
            variants = [NONE, *(text.format(groups=groups) for text in WRITERS.values())]
            found[ranks] = self.compute(ranks, self.elements // ranks, STEPS, variants)
        rows, lines = [], {}  # type: List[List[str]], Dict[str, List[float]]
        for ranks, results in found.items():
            for name, text in WRITERS.items():
                rates = rates_of(results, text.split(":")[0], -(-ranks // GROUP))
                rows.append([str(ranks), name, *(f"{rate:.0f}" for rate in rates.values())])
                if name == "threaded rbIO":
                    for kind, rate in rates.items():
                        lines.setdefault(f"{name}, {kind}", []).append(rate)
                else:
                    lines.setdefault(name, []).append(rates["effective"])
        self.page.say("## Write bandwidth", "",
                      "Perceived: bytes of a checkpoint over the time that the program is blocked. Effective: over that "
                      "time and the slow-down", "of computing until the next checkpoint. Raw: the rate at which the first "
                      "writer wrote to the file system, times the writers.", "The line of a program that blocks is its "
                      "effective bandwidth. The thread does not pause (`pace=0`).", "A device that has rested takes 15 MiB at "
                      "once, so its raw rate may be higher than the limit. In MB/s:")
        self.page.table(["ranks", "way to write", "perceived", "effective", "raw"], rows)
        figure, axes = pyplot.subplots(figsize=(6.5, 4))
        for name, values in lines.items():
            axes.plot(RANKS, values, marker="o", label=name)
        axes.set(xscale="log", yscale="log", xlabel=f"ranks on {os.cpu_count()} cores", ylabel="MB/s",
                 title=f"{self.size_mb:.0f} MB per checkpoint, a device of {SLOW_BYTES_S // MIB} MiB/s")
        axes.set_xticks(RANKS, [str(ranks) for ranks in RANKS])
        axes.minorticks_off()
        axes.legend(fontsize=8)
        self.page.picture("bandwidth", "Write bandwidth over ranks", figure)
        self.profile(found[4])

    def profile(self, results: Result) -> None:
        self.page.say("## Compute time of each rank", "",
                      "Of the run with 4 ranks: the time of a step on each rank, without the Allreduce at its end. Ranks 0 and "
                      "2 have a writer's thread.")
        names = {"none": "no checkpoints", "threaded": "the thread writes"}
        means = {name: [1e3 * statistics.median(of_rank) for of_rank in zip(*(r["step_of_rank"] for r in results[name]))]
                 for name in names}
        self.page.table(["rank", *names.values(), "slower by %"],
                        [[str(rank), f"{none:.1f} ms", f"{threaded:.1f} ms", f"{100 * (threaded / none - 1):.1f}"]
                         for rank, (none, threaded) in enumerate(zip(means["none"], means["threaded"]))])
        figure, axes = pyplot.subplots(figsize=(6.5, 3.2))
        for at, (name, text) in enumerate(names.items()):
            axes.bar([rank + 0.4 * at - 0.2 for rank in range(4)], means[name], 0.4, label=text)
        axes.set(xlabel="rank", ylabel="ms per step", title=f"4 ranks on {os.cpu_count()} cores", xticks=range(4))
        axes.legend(fontsize=8, loc="lower right")
        self.page.picture("profile", "Compute time of each rank", figure)

    def allreduce(self) -> None:
        names = {"world": "all ranks", "duplicate": "a duplicate of these", "split": "without the first of each group"}
        times: Dict[int, Dict[str, float]] = {}
        for ranks in RANKS[1:]:
            runs = [self.backend.run_ranks(ranks, [self.bench.program("allreduce"), GROUP, 2000])
                    for _ in range(self.bench.rounds)]
            times[ranks] = {name: 1e6 * quantile([run[name] for run in runs], 0.5) for name in names}
        self.page.say("## Allreduce on a part of the ranks", "",
                      "Mode `split` takes the writers out of the computing. On the Blue Gene of the talk, that cost the network "
                      "for collectives:", "an Allreduce took 7 to 8 times as long. A machine without such a network shows no "
                      "such loss. Medians in microseconds;", "with more ranks than cores, the scheduler decides:")
        self.page.table(["ranks", *names.values()],
                        [[str(ranks), *(f"{time:.1f}" for time in of.values())] for ranks, of in times.items()])
        figure, axes = pyplot.subplots(figsize=(6.5, 3.2))
        for at, (name, text) in enumerate(names.items()):
            axes.bar([place + 0.27 * (at - 1) for place in range(len(times))], [of[name] for of in times.values()], 0.27,
                     label=text)
        axes.set(xlabel="ranks", ylabel="us", yscale="log", title="Allreduce of one number")
        axes.set_xticks(range(len(times)), [str(ranks) for ranks in times])
        axes.legend(fontsize=8)
        self.page.picture("allreduce", "Allreduce on a split communicator", figure)

    def speed_up(self) -> None:
        measured, predicted = [], []  # type: List[List[float]], List[List[float]]
        for steps in LENGTHS:
            results = self.compute(2, self.elements // 2, steps, [NONE, WRITERS["coIO, one file"], WRITERS["threaded rbIO"]])
            none, coio, threaded = (results[name] for name in ("none", "one", "threaded"))
            measured.append(each(lambda t, c: c["total"] / t["total"], threaded, coio))
            predicted.append(each(lambda t, c, n, s=steps: predicted_speed_up(t, c, n, s), threaded, coio, none))
        self.page.say("## Production speed-up over the checkpoint interval", "",
                      "The run time of 2 ranks with coIO over that with threaded rbIO, and what the published formula gives: "
                      "`(X_co + f) / (X_tr + f) * 1 / (1 + d)`,", "with the cost X of a checkpoint and its interval f in steps, "
                      "and the slow-down d of a step. Medians, 10 % and 90 % of the rounds:")
        self.page.table(["steps between checkpoints", "measured", "formula", "formula / measured"],
                        [[str(steps), spread(m), spread(p), spread([a / b for a, b in zip(p, m)], 3)]
                         for steps, m, p in zip(LENGTHS, measured, predicted)])
        figure, axes = pyplot.subplots(figsize=(6.5, 3.6))
        for values, text in ((measured, "measured"), (predicted, "formula")):
            axes.plot(LENGTHS, [quantile(of, 0.5) for of in values], marker="o", label=text)
        axes.set(xlabel="steps between checkpoints", ylabel="speed-up over coIO", xscale="log",
                 title=f"2 ranks, {self.size_mb:.0f} MB per checkpoint, {SLOW_BYTES_S // MIB} MiB/s")
        axes.set_xticks(LENGTHS, [str(steps) for steps in LENGTHS])
        axes.minorticks_off()
        axes.legend(fontsize=8)
        self.page.picture("speed_up", "Production speed-up", figure)


def rates_of(results: Result, name: str, writers: int) -> Dict[str, float]:
    """Medians in MB/s. The rate of the first writer stands for that of each."""
    size_mb = results["checkpoint_bytes"] / 1e6
    times = {"perceived": [blocked(r) for r in results[name]],
             "effective": each(lambda r, n: cost(r, n, STEPS), results[name], results["none"])}
    # The noise of computing may exceed the whole cost; then the effective bandwidth is only bounded by the perceived one.
    rates = {kind: size_mb / max(quantile(of, 0.5), quantile(times["perceived"], 0.5)) for kind, of in times.items()}
    raw = [writers * rate / 1e6 for result in results[name] for rate in result["raw"]]
    rates["raw"] = quantile(raw, 0.5) if raw else rates["perceived"]
    return rates


def main() -> None:
    parts = ["bandwidth", "allreduce", "speed_up"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--elements", type=int, default=ALL_ELEMENTS, help="of the solver, on all ranks together")
    parser.add_argument("--only", default=",".join(parts), help=f"of {', '.join(parts)}")
    arguments = parser.parse_args()
    keep_mounts_to_ourselves()
    bench, page, noise = Bench(arguments.build.resolve(), arguments.rounds, Path("/tmp")), Page(arguments.docs), Noise()
    page.say("# The figures of threaded rbIO", "", "Written by `make figures-rbio`; do not edit. The figures of the 2012 talk "
             "on threaded rbIO, in shape, on a machine that is", "nothing like its Cray and Blue Gene. They show what blocks, "
             "what overlaps and what the formula predicts; they show neither", "scaling nor the speed of a real file system.")
    with slow(bench.build, SLOW_BYTES_S) as backend:
        figures = Figures(bench, backend, page, arguments.elements)
        page.say("", "- The solver of `examples/nekcem`: six field components, and an Allreduce in each step. The ranks "
                 "together always", f"  have {arguments.elements} elements of order {ORDER}, {figures.size_mb:.0f} MB per checkpoint: more ranks "
                 "have less each. Open MPI with ROMIO.",
                 f"- {backend.name}, written and synced. {GROUP} ranks share a writer. {bench.rounds} rounds; the ways to "
                 "write take", "  turns in random order. coIO is a bare MPI-IO program, without checksums and publication.", "")
        for part in arguments.only.split(","):
            getattr(figures, part)()
    page.say("## The machine", "", f"{os.cpu_count()} cores, Linux {os.uname().release}. With more ranks than cores, ranks "
             f"take turns, and the figures show that too.", noise.text())
    page.write()


if __name__ == "__main__":
    main()
