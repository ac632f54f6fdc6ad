"""LSF. The allocation must outlive the loss of a node: LSB_DJOB_COMMFAIL_ACTION=KILL_TASKS."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

from cairn.native import Trouble
from cairn.remote import BySsh
from cairn.resources.clock_words import seconds_of

# A closed host gets no new jobs, and continues its jobs.
DOWN = ("unavail", "unreach")


class Lsf(BySsh):
    """Uses the host file, bjobs and bhosts. If the first host has one slot and the others have more, it runs only the
    batch script, as on machines with jsrun, and gets no rank."""

    name = "lsf"

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return "LSB_JOBID" in environment

    def job_id(self) -> Optional[str]:
        return self.environment.get("LSB_JOBID")

    def nodes(self) -> List[str]:
        slots = self._slots()
        hosts = list(dict.fromkeys(slots))
        if not hosts:
            raise Trouble("LSF does not say which hosts the job has: neither LSB_DJOB_HOSTFILE nor "
                          "LSB_MCPU_HOSTS does; set SCR_NODELIST")
        batch_only = slots.count(hosts[0]) == 1 and all(slots.count(host) > 1 for host in hosts[1:])
        return hosts[1:] if batch_only and len(hosts) > 1 else hosts

    def seconds_left(self, now_s: float) -> Optional[float]:
        answer = self.ask(["bjobs", "-noheader", "-o", "time_left", self.job_id() or ""])
        words = answer.text.split()
        return seconds_of(words[0], "min") if answer.code == 0 and words else None

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        answer = self.ask(["bhosts", "-w", *nodes])
        found = {}
        for words in map(str.split, answer.text.splitlines() if answer.code == 0 else []):
            if len(words) >= 2 and words[0] in nodes and words[1] in DOWN:
                found[words[0]] = words[1]
        return found

    def _slots(self) -> List[str]:
        try:
            with open(self.environment.get("LSB_DJOB_HOSTFILE", ""), encoding="utf-8") as lines:
                return [line.strip() for line in lines if line.strip()]
        except OSError:
            words = self.environment.get("LSB_MCPU_HOSTS", "").split()  # "hostA 2 hostB 4"
            return [host for host, slots in zip(words[::2], words[1::2]) for _ in range(int(slots))]
