"""Flux: `flux run`."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cairn.hosts import fold
from cairn.roles import Launcher

_ONE = ("-n", "-N", "-c", "-g", "-t", "-o", "-l", "--ntasks", "--nodes", "--cores-per-task", "--gpus-per-task",
        "--time-limit", "--setopt", "--setattr", "--env", "--env-remove", "--env-file", "--output", "--error",
        "--input", "--cwd", "--urgency", "--job-name", "--queue", "--bank", "--requires", "--tasks-per-node",
        "--cores", "--rlimit", "--conf", "--flags", "--taskmap", "--dependency", "--begin-time", "--signal")


class FluxRun(Launcher):
    """A job inside the instance."""

    names = ("flux",)
    subcommand = 1
    takes = {name: 1 for name in _ONE}
    ranks_options = ("-n", "--ntasks")
    nodes_options = ("-N", "--nodes")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        return [f"--nodes={len(nodes)}", f"--requires=hosts:{fold(nodes)}"]
