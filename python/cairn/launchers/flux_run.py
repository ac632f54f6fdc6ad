"""Flux: `flux run`."""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence

from cairn.hosts import fold
from cairn.native import WrongUsage
from cairn.roles import Launcher, Parts

# From its manual, flux-run(1).
_SHORT = "nNcgtoSqB"
_LONG = """
    add-file bank begin-time conf cores cores-per-task cwd dependency env env-file env-remove error flags gpus-per-node
    gpus-per-task input job-name nodes ntasks output queue requires rlimit setattr setopt signal taskmap tasks-per-core
    tasks-per-node time-limit urgency wait-event
    """.split()
_FLAGS = "debug dry-run exclusive help label-io quiet unbuffered verbose".split()


class FluxRun(Launcher):
    """A job inside the instance. `flux run` is only its client, whose death does not end it: the resource manager ends
    it, and finds it by its name."""

    names = ("flux",)
    subcommand = 1
    takes = {**{f"-{letter}": 1 for letter in _SHORT}, **{f"--{name}": 1 for name in _LONG}}
    flags = frozenset(f"--{name}" for name in _FLAGS)
    colon_joins = False
    ranks_options = ("-n", "--ntasks")
    nodes_options = ("-N", "--nodes")
    name_option = "--job-name"

    def split(self, words: Sequence[str], also: Mapping[str, int]) -> Parts:
        """Allows only `flux run`: other commands, such as `flux submit`, return at once, and the job would go on
        unwatched."""
        if list(words[:1]) != ["run"]:
            raise WrongUsage("of flux only flux run can be watched and started again: cairn run flux run ...")
        return super().split(words, also)

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        return [f"--nodes={len(nodes)}", f"--requires=hosts:{fold(nodes)}"]
