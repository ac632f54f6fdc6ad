"""Hosts that the user has listed (SCR_NODELIST), where there is no resource manager."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

from cairn.hosts import expand
from cairn.remote import BySsh


class ListedHosts(BySsh):
    """Nobody knows more of them than what they answer."""

    name = "listed hosts"

    def __init__(self, environment: Mapping[str, str], listed: str) -> None:
        super().__init__(environment)
        self._hosts = expand(listed)

    @classmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        return False  # only where the setting says it

    def job_id(self) -> Optional[str]:
        return None

    def nodes(self) -> List[str]:
        return list(self._hosts)

    def seconds_left(self, now_s: float) -> Optional[float]:
        return None

    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {}
