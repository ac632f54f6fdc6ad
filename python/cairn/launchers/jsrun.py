"""IBM's jsrun, on machines with LSF."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cairn.roles import Launcher

_ONE = ("-n", "-a", "-c", "-g", "-r", "-p", "-b", "-d", "-l", "-m", "-E", "-F", "-K", "-h", "-k", "-o", "-t", "-U",
        "-M", "-X", "-S", "--nrs", "--tasks_per_rs", "--cpu_per_rs", "--gpu_per_rs", "--rs_per_host", "--np",
        "--bind", "--launch_distribution", "--latency_priority", "--memory_per_rs", "--env", "--erf_input",
        "--smpiargs", "--exit_on_error")


class Jsrun(Launcher):
    """Its resource sets are put on the hosts of the allocation; it can be told only those to be
    left out."""

    names = ("jsrun",)
    takes = {name: 1 for name in _ONE}
    ranks_options = ("-p", "--np")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        return [f"--exclude_hosts={','.join(left_out)}"] if left_out else []
