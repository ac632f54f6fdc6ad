"""PBS Professional, OpenPBS and Torque."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence

from cairn.native import Trouble
from cairn.remote import BySsh
from cairn.resources.clock_words import seconds_of

# An offline node gets no new jobs, and continues its jobs.
DOWN = ("down", "unknown", "stale", "state-unknown", "unresolvable")
CUT = 20  # Torque's list truncates names to this length


class Pbs(BySsh):
    """Uses the node file, qstat and pbsnodes."""

    name = "pbs"

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return "PBS_JOBID" in environment

    def job_id(self) -> Optional[str]:
        return self.environment.get("PBS_JOBID")

    def nodes(self) -> List[str]:
        path = self.environment.get("PBS_NODEFILE", "")
        try:
            with open(path, encoding="utf-8") as lines:
                return list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        except OSError as error:
            raise Trouble(f"PBS_NODEFILE: {error}; set SCR_NODELIST") from error

    def seconds_left(self, now_s: float) -> Optional[float]:
        answer = self.ask(["qstat", "-f", self.job_id() or ""])
        if answer.code != 0:
            return None
        limit = self._span(answer.text, "Resource_List.walltime")
        used = self._span(answer.text, "resources_used.walltime")
        return None if limit is None else max(0, limit - (used or 0))

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        answer = self.ask(["pbsnodes", "-l"])
        found = {}
        for words in map(str.split, answer.text.splitlines() if answer.code == 0 else []):
            node = _node_of(words[0], nodes) if len(words) >= 2 else None
            if node and set(words[1].split(",")) & set(DOWN):
                found[node] = words[1]
        return found

    @staticmethod
    def _span(text: str, name: str) -> Optional[int]:
        match = re.search(rf"^\s*{re.escape(name)} = (\S+)$", text, re.MULTILINE)
        return seconds_of(match[1], "s") if match else None


def _node_of(printed: str, nodes: Sequence[str]) -> Optional[str]:
    """The node of a printed name: the node file or the list may have the domain too, and Torque truncates names."""
    fits = [node for node in nodes if node == printed or node.startswith(printed + ".") or printed.startswith(node + ".")]
    if len(printed) == CUT and not fits:
        fits = [node for node in nodes if node.startswith(printed)]
    return printed if printed in fits else fits[0] if len(fits) == 1 else None
