"""IBM's jsrun, on machines with LSF."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cairn.roles import Launcher

_SHORT = "aAbcdDeEfFgHhIJkKlLmMnoPprStUxXZ"
_LONG = """
    allocate_only appfile bind chdir cpu_per_rs env env_eval env_no_propagate erf_input erf_output erf_output_pidx
    exclude_hosts exit_on_error gpu_per_rs latency_priority launch_distribution launch_node_task memory_per_rs np nrs
    pre_post_exec print_placement progress rs_per_host rs_per_socket save_resources smpiargs stdin_rank stdio_input stdio_mode
    stdio_stderr stdio_stdout tasks_per_rs use_reservation use_resources use_spindle
    """.split()
_FLAGS = "debug help immediate usage version".split()


class Jsrun(Launcher):
    """It places its resource sets on the hosts of the allocation; only excluded hosts can be given. It passes the
    environment to the program."""

    names = ("jsrun",)
    takes = {**{f"-{letter}": 1 for letter in _SHORT}, **{f"--{name}": 1 for name in _LONG}}
    flags = frozenset(f"--{name}" for name in _FLAGS)
    ranks_options = ("-p", "--np")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        return [f"--exclude_hosts={','.join(left_out)}"] if left_out else []
