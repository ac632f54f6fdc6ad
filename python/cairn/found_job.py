"""The job that the commands look for in a prefix directory: what the native command makes of what its last run wrote down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

RUNS, ENDED, DIED, UNKNOWN = "runs", "ended", "died", "unknown"  # states of a run, as the native command prints them

# By these the native command finds the caches of a job: by what the environment sets, else by what the last run wrote down.
PLACES = ("SCR_JOB_ID", "SCR_USER_NAME", "SCR_CACHE_BASE", "SCR_CNTL_BASE")


@dataclass(frozen=True)
class LastRun:
    """What the last run of a program wrote down of itself."""

    job: str
    state: str  # RUNS, ENDED, DIED, or UNKNOWN: it is of another machine
    host: str
    process: int
    started_s: float
    ended_s: float  # 0: it is not known to have ended
    by_cairn_run: bool
    ranks: int
    nodes: Tuple[Tuple[str, str], ...]  # the name of each, and its host

    @staticmethod
    def of_json(record: Mapping[str, Any]) -> "LastRun":
        """As the native command prints it."""
        nodes = tuple((node["name"], node["host"]) for node in record["nodes"])
        return LastRun(record["job"], record["state"], record["host"], record["process"], record["started_s"],
                       record["ended_s"], record["by_cairn_run"], record["ranks"], nodes)

    def names(self) -> List[str]:
        """Of its nodes."""
        return [name for name, _ in self.nodes]

    def hosts(self) -> List[str]:
        """Of its nodes, each once."""
        return list(dict.fromkeys(host for _, host in self.nodes))


@dataclass(frozen=True)
class FoundJob:
    """What the commands look for, and where."""

    prefix: str
    job: str
    user: str
    text: str  # of the job, for people: with how it is known
    is_default: bool  # nothing has named a job
    job_of_last_run: str  # where SCR_JOB_ID names another; empty: it does not
    stores: List[str]  # %n is the node's name
    control_base: str
    caches: List[str]  # that are seen on this machine
    this_host: str
    last_run: Optional[LastRun] = None
    trouble: str = ""  # why what the last run wrote down cannot be read
    left_caches: Tuple[str, ...] = ()  # texts: caches with datasets that runs here do not use, why, and what to do

    @staticmethod
    def of_json(record: Mapping[str, Any]) -> "FoundJob":
        """As the native command prints it."""
        run = record["last_run"]
        return FoundJob(record["prefix"], record["job"], record["user"], record["text"], record["is_default"],
                        record["job_of_last_run"], record["stores"], record["control_base"], record["caches"],
                        record["this_host"], LastRun.of_json(run) if run else None, record["trouble"],
                        tuple(record["left_caches"]))

    def is_on_this_host(self) -> bool:
        """Whether all nodes of the last run are on this machine."""
        return self.last_run is not None and self.last_run.hosts() == [self.this_host]

    def nodes(self) -> List[str]:
        """Of the last run, where that was of this job: by their names, and by those of their hosts."""
        if self.last_run is None or self.last_run.job != self.job:
            return []
        return [*self.last_run.names(), *self.last_run.hosts()]

    def bases(self) -> List[str]:
        """Below which the job has folders on a node; %n is the node's name."""
        return sorted({*self.stores, self.control_base})

    def settings_for_nodes(self, all_settings: Mapping[str, str], environment: Mapping[str, str]) -> Dict[str, str]:
        """In which the native command finds the same caches on a node: what it reads there of the last run is not to be
        overridden by settings of files."""
        kept = {key: value for key, value in all_settings.items()
                if not self.last_run or key not in PLACES or environment.get(key)}
        return {**kept, "SCR_JOB_ID": self.job}
