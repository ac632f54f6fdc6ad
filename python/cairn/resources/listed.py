"""Hosts that the user has listed (SCR_NODELIST), without a resource manager."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

from cairn.hosts import expand
from cairn.remote import BySsh


class ListedHosts(BySsh):
    """Listed hosts: their state is known only by their answers."""

    name = "listed hosts"

    def __init__(self, environment: Mapping[str, str], listed: str) -> None:
        super().__init__(environment)
        self._hosts = expand(listed)

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return False  # only if SCR_NODELIST is set

    def job_id(self) -> Optional[str]:
        return None

    def nodes(self) -> List[str]:
        return list(self._hosts)

    def seconds_left(self, now_s: float) -> Optional[float]:
        return None

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {}
