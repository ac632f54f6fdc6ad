"""The job of a prefix directory, as the native command finds it from the record of its last run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

RUNS, ENDED, DIED, UNKNOWN = "runs", "ended", "died", "unknown"  # states of a run in the output of the native command

# With these settings the native command finds the caches of a job. The environment has precedence over the record of
# the last run.
PLACES = ("SCR_JOB_ID", "SCR_USER_NAME", "SCR_CACHE_BASE", "SCR_CNTL_BASE")


@dataclass(frozen=True)
class LastRun:
    """The record of the last run of a program."""

    job: str
    state: str  # RUNS, ENDED, DIED, or UNKNOWN: it ran on another machine
    host: str
    process: int
    started_s: float
    ended_s: float  # 0: its end is not known
    by_cairn_run: bool
    ranks: int
    nodes: Tuple[Tuple[str, str], ...]  # name and host of each

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
    """The job, and the places of its data."""

    prefix: str
    job: str
    user: str
    text: str  # a description of the job, with the source of its id
    is_default: bool  # no setting and no record has a job id
    job_of_last_run: str  # if SCR_JOB_ID names another job; else empty
    stores: List[str]  # %n stands for the name of the node
    control_base: str
    caches: List[str]  # visible on this machine
    this_host: str
    last_run: Optional[LastRun] = None
    trouble: str = ""  # why the record of the last run cannot be read
    left_caches: Tuple[str, ...] = ()  # messages about caches with datasets that runs here do not use, with reason and remedy

    @staticmethod
    def of_json(record: Mapping[str, Any]) -> "FoundJob":
        """As the native command prints it."""
        run = record["last_run"]
        return FoundJob(record["prefix"], record["job"], record["user"], record["text"], record["is_default"],
                        record["job_of_last_run"], record["stores"], record["control_base"], record["caches"],
                        record["this_host"], LastRun.of_json(run) if run else None, record["trouble"],
                        tuple(record["left_caches"]))

    def is_on_this_host(self) -> bool:
        """True if all nodes of the last run are on this machine."""
        return self.last_run is not None and self.last_run.hosts() == [self.this_host]

    def nodes(self) -> List[str]:
        """The nodes of the last run if it belongs to this job: their names, and those of their hosts."""
        if self.last_run is None or self.last_run.job != self.job:
            return []
        return [*self.last_run.names(), *self.last_run.hosts()]

    def bases(self) -> List[str]:
        """The directories below which the job has its files on a node; %n stands for the name of the node."""
        return sorted({*self.stores, self.control_base})

    def settings_for_nodes(self, all_settings: Mapping[str, str], environment: Mapping[str, str]) -> Dict[str, str]:
        """The settings with which the native command finds the same caches on a node. Settings of files must not override
        the record of the last run there."""
        kept = {key: value for key, value in all_settings.items()
                if not self.last_run or key not in PLACES or environment.get(key)}
        return {**kept, "SCR_JOB_ID": self.job}
