#!/usr/bin/env python3
"""Runs one rank of an MPI program as if on a simulated node: on_node.py PROGRAM ARGS...

The launcher starts this once per rank. It takes the rank's node from CLUSTER_PLACEMENT (a node name
per rank, joined by commas), tells Cairn, writes who it is into the folder CLUSTER_PIDS, and becomes
the program, so that the recorded process is the program itself. Imports little: it runs in every
rank of every test.
"""

import os
import sys

# The package is not installed where tests run.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from cairn.on_node import started_at  # noqa: E402


def main() -> None:
    """Becomes the program named on the command line."""
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
    os.environ["SCR_NODE_NAME"] = os.environ["CLUSTER_PLACEMENT"].split(",")[rank]
    record = os.path.join(os.environ["CLUSTER_PIDS"], str(rank))
    with open(record + ".new", "w", encoding="utf-8") as out:
        out.write(f"{os.getpid()} {started_at(os.getpid())}")
    os.rename(record + ".new", record)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
