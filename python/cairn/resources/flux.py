"""Flux: the job is an instance of its own (`flux batch`, `flux alloc`)."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

from cairn.hosts import expand
from cairn.native import Trouble
from cairn.remote import BySsh
from cairn.resources.leftovers import end_all, leftovers_text
from cairn.roles import Ended

NO_LIMIT_S = 2**32 - 1  # `flux job timeleft` prints this or more if there is no limit

GONE_S = 10.0  # Flux sends SIGTERM to a cancelled job, and by default 5 s later SIGKILL
AT_ITS_END = "CLEANUP"  # the state of a job that has ended or was cancelled, until all of it is gone


class Flux(BySsh):
    """Uses flux resource, flux job timeleft, flux jobs and flux cancel."""

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
        """A job in the state CLEANUP, for which an epilog may run, need not be cancelled. Processes of a job that was
        cancelled or failed may still exist, so this waits for it."""
        if not run.name:
            return ""
        states: Dict[str, str] = {}

        def listed() -> Optional[List[str]]:
            found = self._states_of(run.name)
            states.update(found or {})
            return None if found is None else list(found)

        def cancel(jobs: List[str]) -> None:
            running = [job for job in jobs if states[job] != AT_ITS_END]
            if running:
                self.ask(["flux", "cancel", *running])
        left = end_all(listed, cancel, 0.0 if run.returned_0 else GONE_S)
        is_reported = not run.returned_0 and (left or run.by_force)
        return leftovers_text(left, "Flux", "flux cancel", "flux jobs") if is_reported else ""

    def _states_of(self, name: str) -> Optional[Dict[str, str]]:
        """The states of this user's jobs of that name that are not gone; None without an answer."""
        answer = self.ask(["flux", "jobs", "-n", "-c", "100000", "-o", "{id.hex} {state} {name}"])
        if answer.code != 0:
            return None
        found = (line.split(" ", 2) for line in answer.text.splitlines())
        return {words[0]: words[1] for words in found if words[2:] == [name]}

    def _nodes_in(self, state: str) -> List[str]:
        answer = self.ask(["flux", "resource", "list", "-n", "-s", state, "-o", "{nodelist}"])
        try:
            return expand(answer.text) if answer.code == 0 else []
        except Trouble:
            return []
