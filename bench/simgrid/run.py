"""Runs the simulated encode over growing numbers of nodes: a table, and a plot that should be flat.

    python3 run.py PROGRAM [--nodes 64,128,...] [--mib 8] [--plot FILE.svg]
"""

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple

# One core of the machine that docs/performance.md was measured on, GB/s: CRC32C from memory, a sum of
# two blocks, a write into tmpfs.
RATES = ("6.9", "5.5", "2.6")
# No links but each node's own: a network with full bisection bandwidth.
NETWORK = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="100Gf" bw="12.5GBps" lat="1us"
           sharing_policy="SPLITDUPLEX"/>
</platform>
"""
SETTINGS = [
    "smpi/simulate-computation:no",  # charged by the program: the same on every machine
    "smpi/host-speed:100Gf",  # as in the platform: a second charged is a second
    "smpi/privatization:no",  # the ranks share no variables that change
    "smpi/grow-injected-times:no",
    "smpi/test:2e-6",
    "contexts/stack-size:256",
]


class Row(NamedTuple):
    nodes: int
    scheme: str
    checkpoint: float  # seconds
    rebuild: float


def simulate(program: Path, nodes: int, mib: int) -> List[Row]:
    with tempfile.TemporaryDirectory() as folder:
        platform = Path(folder) / "platform.xml"
        platform.write_text(NETWORK.format(last=nodes - 1))
        hosts = Path(folder) / "hosts"
        hosts.write_text("".join(f"n{i}\n" for i in range(nodes)))
        command = ["smpirun", "-np", str(nodes), "-platform", str(platform), "-hostfile", str(hosts),
                   *(f"--cfg={setting}" for setting in SETTINGS), "--log=root.thresh:error",
                   str(program), str(mib), *RATES]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split() for line in output.splitlines()]
    return [Row(int(n), scheme, float(a), float(b)) for n, scheme, a, b in rows]


def print_table(rows: List[Row], mib: int) -> None:
    print(f"{mib} MiB per node, one rank each\n")
    print("| nodes | scheme | checkpoint, ms | all nodes, GB/s | rebuild of one, ms |")
    print("|---|---|---|---|---|")
    for row in rows:
        rate = row.nodes * mib * 2**20 / row.checkpoint / 1e9
        rebuild = f"{1e3 * row.rebuild:.2f}" if row.rebuild else "-"
        print(f"| {row.nodes} | {row.scheme} | {1e3 * row.checkpoint:.2f} | {rate:.0f} | {rebuild} |",
              flush=True)


def plot(rows: List[Row], mib: int, path: Path) -> None:
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "cairn"  # the same figures, the same file
    from matplotlib import pyplot

    by_scheme: Dict[str, List[Row]] = {}
    for row in rows:
        by_scheme.setdefault(row.scheme, []).append(row)
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for scheme, line in by_scheme.items():
        axes.plot([r.nodes for r in line], [1e3 * r.checkpoint for r in line], marker="o", label=scheme)
    axes.set(xscale="log", xlabel="nodes", ylabel=f"ms per checkpoint of {mib} MiB per node", ylim=(0, None))
    ticks = sorted({row.nodes for row in rows})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--nodes", default="64,128,256,512,1024,2048")
    parser.add_argument("--mib", type=int, default=8)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    rows: List[Row] = []
    for nodes in map(int, arguments.nodes.split(",")):
        rows += simulate(arguments.program, nodes, arguments.mib)
        print(f"{nodes} nodes simulated", flush=True)
    print_table(rows, arguments.mib)
    if arguments.plot:
        plot(rows, arguments.mib, arguments.plot)


if __name__ == "__main__":
    main()
