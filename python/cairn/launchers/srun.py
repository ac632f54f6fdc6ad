"""Slurm's srun."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cairn.hosts import fold
from cairn.roles import Launcher

_SHORT = ("-n", "-N", "-c", "-w", "-x", "-p", "-t", "-J", "-D", "-o", "-e", "-i", "-m", "-A", "-B", "-C", "-d",
          "-G", "-L", "-M", "-q", "-r", "-S", "-T", "-W")
_LONG = ("--ntasks", "--nodes", "--cpus-per-task", "--nodelist", "--exclude", "--partition", "--time",
         "--job-name", "--chdir", "--output", "--error", "--input", "--distribution", "--account",
         "--constraint", "--gpus", "--gpus-per-node", "--gpus-per-task", "--ntasks-per-node", "--mem",
         "--mem-per-cpu", "--mpi", "--cpu-bind", "--mem-bind", "--export", "--jobid", "--qos", "--relative",
         "--threads-per-core", "--wait", "--gres", "--het-group", "--hint", "--network", "--switches")


class Srun(Launcher):
    """A step inside the allocation. It ends as soon as one process ends badly. A step that has lost a node keeps its
    processors for Slurm until the controller finds that out, which takes minutes; --overlap goes on all the same."""

    names = ("srun",)
    takes = {name: 1 for name in (*_SHORT, *_LONG)}
    patience_s = lost_patience_s = 0.5  # it ends its processes at once, and then waits for nodes that are dead
    ranks_options = ("-n", "--ntasks")
    nodes_options = ("-N", "--nodes")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        return [f"--nodes={len(nodes)}", f"--nodelist={fold(nodes)}", "--kill-on-bad-exit=1", "--overlap"]
