"""Slurm's srun."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cairn.hosts import fold
from cairn.roles import Launcher

# From srun --help of Slurm 22.05, its manual, and later versions.
_SHORT = "AbcdDeFiJLmMnNopqrSTtwWxBCG"
_LONG = """
    accel-bind account acctg-freq bb bbf bcast bcast-exclude begin chdir cluster-constraint clusters comment constraint
    container container-id core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
    dependency distribution epilog error exclude export export-file extra extra-node-info gid gpu-bind gpu-freq gpus
    gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint input job-name jobid licenses mail-type
    mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network nodefile nodelist nodes ntasks
    ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output partition power prefer
    priority profile prolog qos relative reservation segment signal slurmd-debug sockets-per-node switches task-epilog
    task-prolog thread-spec threads threads-per-core time time-min tmp tree-width tres-bind tres-per-task uid wait wckey
    """.split()
# Options with a value only after "=", or without a value.
_FLAGS = """
    compress contiguous debugger-test disable-status exact exclusive external help hold immediate interactive
    kill-on-bad-exit label multi-prog nice no-allocate no-kill oom-kill-step overcommit overlap oversubscribe preserve-env
    propagate pty quiet quit-on-interrupt reboot resv-ports send-libs spread-job stepmgr test-only unbuffered usage
    use-min-nodes verbose version wait-for-children x11
    """.split()


class Srun(Launcher):
    """A step inside the allocation. It ends as soon as one process fails. For Slurm, a step that has lost a node keeps
    its processors until the controller notices, which takes minutes; with --overlap a new step starts all the same."""

    names = ("srun",)
    takes = {**{f"-{letter}": 1 for letter in _SHORT}, **{f"--{name}": 1 for name in _LONG}}
    flags = frozenset(f"--{name}" for name in _FLAGS)
    lost_patience_s = 0.5  # it ends its processes at once, and then waits for nodes that are dead
    ranks_options = ("-n", "--ntasks")
    nodes_options = ("-N", "--nodes")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        return [f"--nodes={len(nodes)}", f"--nodelist={fold(nodes)}", "--kill-on-bad-exit=1", "--overlap"]
