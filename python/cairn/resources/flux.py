"""Flux: the job is an instance of its own (`flux batch`, `flux alloc`)."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

from cairn.hosts import expand
from cairn.native import Trouble
from cairn.remote import BySsh
from cairn.resources.leftovers import end_all, told_of
from cairn.roles import Ended

NO_LIMIT_S = 2**32 - 1  # what `flux job timeleft` says, or more, where there is no limit

GONE_S = 10.0  # Flux sends SIGTERM to what is cancelled, and 5 s later SIGKILL, if its administrator has not changed that


class Flux(BySsh):
    """By flux resource, flux job timeleft, flux jobs and flux cancel."""

    name = "flux"

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return "FLUX_URI" in environment

    def job_id(self) -> Optional[str]:
        return self.environment.get("FLUX_JOB_ID") or self.environment.get("FLUX_ENCLOSING_ID")

    def nodes(self) -> List[str]:
        nodes = self._nodes_in("all")
        if not nodes:
            raise Trouble("flux resource list names no nodes; set SCR_NODELIST")
        return nodes

    def seconds_left(self, now_s: float) -> Optional[float]:
        answer = self.ask(["flux", "job", "timeleft"])
        text = answer.text.strip()
        if answer.code != 0 or not text.isdigit() or int(text) >= NO_LIMIT_S:
            return None
        return int(text)

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        found = set(self._nodes_in("down"))
        return {node: "down" for node in nodes if node in found}

    def end_leftovers(self, run: Ended) -> str:
        if not run.name:
            return ""
        left = end_all(lambda: self._jobs_of(run.name), lambda jobs: self.ask(["flux", "cancel", *jobs]), GONE_S)
        return told_of(left, "Flux", "flux cancel", "flux jobs") if left or run.by_force else ""

    def _jobs_of(self, name: str) -> Optional[List[str]]:
        """Those of this user whose programs have not ended; None if that is not told."""
        answer = self.ask(["flux", "jobs", "-n", "-c", "100000", "-o", "{id.hex} {state} {name}"])
        if answer.code != 0:
            return None
        found = [line.split(" ", 2) for line in answer.text.splitlines()]
        return [words[0] for words in found if len(words) == 3 and words[2] == name and words[1] != "CLEANUP"]

    def _nodes_in(self, state: str) -> List[str]:
        answer = self.ask(["flux", "resource", "list", "-n", "-s", state, "-o", "{nodelist}"])
        try:
            return expand(answer.text) if answer.code == 0 else []
        except Trouble:
            return []
