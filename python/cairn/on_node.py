#!/usr/bin/env python3
"""Runs one rank of an MPI program as if on a simulated node: on_node.py FOLDER RANKS_PER_NODE NODES PROGRAM ...

The launcher starts this once per rank. Consecutive ranks share a node (NODES: names with commas between).
It tells Cairn the node's name, writes who it is into FOLDER, and becomes the program, so that the recorded
process is the program itself. Imports little: it runs in every rank of every test.
"""

import os
import sys


def started_at(pid: int) -> str:
    """When the process started, in the kernel's ticks: with its id it names one process for ever.
    Empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def main() -> None:
    """Becomes the program named on the command line."""
    folder, ranks_per_node, nodes = sys.argv[1:4]
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or 0)
    node = nodes.split(",")[rank // int(ranks_per_node)]
    if not os.path.isdir(os.path.join(folder, "nodes", node)):
        sys.exit(f"cairn run: {node} is off; no process can be started on it")
    os.environ["SCR_NODE_NAME"] = node
    record = os.path.join(folder, "processes", f"{node}.{rank}")
    with open(record + ".new", "w", encoding="utf-8") as out:
        out.write(f"{os.getpid()} {started_at(os.getpid())}")
    os.rename(record + ".new", record)
    try:
        os.execvp(sys.argv[4], sys.argv[4:])
    except OSError as error:
        print(f"cairn run: {sys.argv[4]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)  # as a shell: cairn run knows by it that another run would fail too


if __name__ == "__main__":
    main()
