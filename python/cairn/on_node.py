#!/usr/bin/env python3
"""Runs one rank of an MPI program on a simulated node: on_node.py DIRECTORY RANKS_PER_NODE NODES PROGRAM ...

The launcher starts this once per rank. Consecutive ranks share a node (NODES: names separated by commas). It sets the
name of the node for Cairn, records its process in DIRECTORY, and becomes the program, so that the recorded process is the
program itself. It has few imports, as it runs in every rank of every test.
"""

import os
import sys


def started_at(pid: int) -> str:
    """When the process started, in the kernel's ticks. Id and start identify a process uniquely. Empty if there is no
    such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def main() -> None:
    """Becomes the program named on the command line."""
    directory, ranks_per_node, nodes = sys.argv[1:4]
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or 0)
    node = nodes.split(",")[rank // int(ranks_per_node)]
    if not os.path.isdir(os.path.join(directory, "nodes", node)):
        sys.exit(f"cairn run: {node} is off; no process can be started on it")
    os.environ["SCR_NODE_NAME"] = node
    record = os.path.join(directory, "processes", f"{node}.{rank}")
    with open(record + ".new", "w", encoding="utf-8") as out:
        out.write(f"{os.getpid()} {started_at(os.getpid())}")
    os.rename(record + ".new", record)
    try:
        os.execvp(sys.argv[4], sys.argv[4:])
    except OSError as error:
        print(f"cairn run: {sys.argv[4]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)  # like a shell: for cairn run it means that another run would fail too


if __name__ == "__main__":
    main()
