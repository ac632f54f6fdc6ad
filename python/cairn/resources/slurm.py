"""Slurm. The allocation must outlive the loss of a node: `sbatch --no-kill`."""

from __future__ import annotations

import re
import socket
from typing import Dict, List, Mapping, Optional, Sequence

from cairn.hosts import expand, fold
from cairn.native import Trouble
from cairn.resources.clock_words import seconds_of
from cairn.resources.leftovers import end_all, leftovers_text
from cairn.resources.steps import Steps
from cairn.roles import Ask, Ended, RemoteExecution, ResourceManager, ask_here

# States in sinfo's %T whose nodes run nothing. A draining node continues its jobs.
DOWN = ("down", "fail", "failing", "error", "unknown", "drained", "power_down", "powered_down",
        "powering_down", "future", "reboot", "perfctrs")

NO_STEP = re.compile(r"Job step \S+ not found")  # scontrol reports this as an error

GONE_S = 10.0  # scancel kills a step at once


class Slurm(ResourceManager):
    """Uses squeue, sinfo, scontrol, scancel and srun."""

    name = "slurm"

    def __init__(self, environment: Mapping[str, str], ask: Ask = ask_here) -> None:
        super().__init__(environment, ask)
        self._steps = Steps(environment, self.job_id() or "", ask)

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return "SLURM_JOB_ID" in environment or "SLURM_JOBID" in environment

    def job_id(self) -> Optional[str]:
        return self.environment.get("SLURM_JOB_ID") or self.environment.get("SLURM_JOBID")

    def nodes(self) -> List[str]:
        # The list at the start of the job: in squeue's list dead nodes are missing.
        nodes = (self.environment.get("SLURM_JOB_NODELIST") or self.environment.get("SLURM_NODELIST")
                 or self._asked("%N"))
        if not nodes:
            raise Trouble("Slurm does not say which nodes the job has: SLURM_JOB_NODELIST is not set, "
                          "and squeue does not know; set SCR_NODELIST")
        return expand(nodes)

    def seconds_left(self, now_s: float) -> Optional[float]:
        return seconds_of(self._asked("%L"), "s")

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        answer = self.ask(["sinfo", "-h", "-N", "-n", fold(nodes), "-o", "%N %T"])
        found = {}
        for words in map(str.split, answer.text.splitlines() if answer.code == 0 else []):
            # A star: the node does not answer to the controller.
            if len(words) == 2 and words[0] in nodes and (
                    words[1].rstrip("*~#!%$@^-+") in DOWN or words[1].endswith("*")):
                found[words[0]] = words[1]
        return found

    def remote(self) -> RemoteExecution:
        return self._steps

    def end_leftovers(self, run: Ended) -> str:
        """Finds the steps by the srun that started them: a name for the step would change the program's SLURM_JOB_NAME.
        Does not wait for a step of a dead node, which Slurm keeps for minutes."""
        left = end_all(lambda: self._steps_of(run.launcher), lambda steps: self.ask(["scancel", *steps]),
                       GONE_S if run.by_force else 0.0)
        return leftovers_text(left, "Slurm", "scancel", f"squeue --steps --jobs={self.job_id()}") if run.by_force else ""

    def _steps_of(self, launcher: int) -> Optional[List[str]]:
        """The ids of the steps; None without an answer."""
        answer = self.ask(["scontrol", "--oneliner", "show", "step", self.job_id() or ""])
        if answer.code != 0:
            return [] if NO_STEP.search(answer.text) else None
        started_by = f"SrunHost:Pid={socket.gethostname().partition('.')[0]}:{launcher}"
        return [words[0].partition("=")[2] for words in map(str.split, answer.text.splitlines()) if started_by in words]

    def _asked(self, field: str) -> str:
        answer = self.ask(["squeue", "-h", "-j", self.job_id() or "", "-o", field])
        return answer.text.strip() if answer.code == 0 else ""
